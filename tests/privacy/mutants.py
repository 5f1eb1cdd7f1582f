"""One-line breaks of the privacy room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "privacy"

TESTS = ("privacy", "distribution")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "Laplace losses of one step of the grid",
        "privacy/events.py",
        "sensitivity=self.sensitivity, value_discretization_interval",
        "sensitivity=1, value_discretization_interval",
    ),
    (
        "a sum tells the first one's assumptions",
        "privacy/guarantee.py",
        "assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),",
        "assumptions=self.assumptions,",
    ),
    (
        "cube: one geometric too few",
        "privacy/noise/cubical.py",
        "for _ in range(size + 1)",
        "for _ in range(size)",
    ),
    (
        "cube: nothing thrown away",
        "privacy/noise/cubical.py",
        "while not _kept(half :=",
        "while not bool(half :=",
    ),
    ("an event prices itself", "privacy/pricing.py", "type(event) in KINDS", "isinstance(event, Event)"),
    (
        "sampled steps between any neighbours",
        "privacy/pricing.py",
        "if event.only_relation not in (None, self.relation):",
        "if False:",
    ),
    ("a multiplier rounded up", "privacy/events.py", "float_below(ratio(sigma)", "float_above(ratio(sigma)"),
    (
        "rounded normals without the doubt of floats",
        "privacy/noise/normal.py",
        "open_ = (np.abs(values - nearest) + error >= 0.5)",
        "open_ = (np.abs(values - nearest) - error >= 0.5)",
    ),
    (
        "normals a tenth too short",
        "privacy/noise/normal.py",
        "values = deviations * normals",
        "values = deviations * normals * 0.9",
    ),
    (
        "a proposal is always kept",
        "privacy/noise/choice.py",
        "if exponent == 0:\n        return True",
        "if exponent >= 0:\n        return True",
    ),
    (
        "e^x rounded down",
        "privacy/certified.py",
        "return Fraction(_UP.next_plus(_UP.exp(",
        "return Fraction(_DOWN.next_minus(_DOWN.exp(",
    ),
    (
        "rho not checked",
        "privacy/conversion.py",
        "    while delta_of_rho(rho, epsilon=epsilon_exact) > delta_exact:",
        "    rho *= Fraction(1001, 1000)\n    while False:",
    ),
    (
        "variance rounded down",
        "privacy/calibration.py",
        "Fraction(math.ceil(needed * 2**bits), 2**bits)",
        "Fraction(math.floor(needed * 2**bits), 2**bits)",
    ),
    (
        "no margin for the accountant",
        "privacy/composition.py",
        "_PLD_MARGIN = Fraction(1, 10**11)",
        "_PLD_MARGIN = Fraction(-1, 10**9)",
    ),
    (
        "group of two as one",
        "privacy/guarantee.py",
        "min(delta + exp_up(epsilon) * delta, Fraction(1))",
        "min(2 * delta, Fraction(1))",
    ),
    ("discrete band too narrow", "privacy/noise/discrete.py", "_BAND = 1 << 15", "_BAND = 1 << 6"),
    ("uniform without rejection", "privacy/noise/exact.py", "drawn[drawn < limit]])", "drawn % limit])"),
    (
        "Laplace tail cut off",
        "privacy/noise/discrete.py",
        "        while bernoulli_exp((1 << count) / scale, coin=coin):",
        "        while False and bernoulli_exp((1 << count) / scale, coin=coin):",
    ),
)
