"""One-line breaks of the regression room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "regression"

TESTS = ("contracts/test_calibration.py -k regression", "regression")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("add for replace", "regression/sensitivity.py", "one = Fraction(9, 2)", "one = Fraction(9, 4)"),
    (
        "rows of a person not squared",
        "regression/sensitivity.py",
        "return one * int(records_per_person) ** 2",
        "return one * int(records_per_person)",
    ),
    (
        "half of the half variance",
        "regression/sufficient.py",
        "discrete_gaussian(variance / 2, ",
        "discrete_gaussian(variance / 4, ",
    ),
    (
        "full variance halved",
        "regression/sufficient.py",
        "discrete_gaussian(variance, coin=coin, size=2 * width)",
        "discrete_gaussian(variance / 2, coin=coin, size=2 * width)",
    ),
    (
        "count nearly without noise",
        "regression/sufficient.py",
        "per_row = variance / (count_weight(study.relation) * _GRID) ** 2",
        "per_row = variance / (2 * _GRID) ** 2",
    ),
    (
        "Laplace for 2 epsilon",
        "regression/sufficient.py",
        "sqrt_up(l2_squared) / Fraction(study.epsilon)",
        "sqrt_up(l2_squared) / (2 * Fraction(study.epsilon))",
    ),
    ("gradient halved", "regression/sensitivity.py", "return 2 * (coef_bound + 1)", "return coef_bound + 1"),
    ("determinant for free", "regression/sensitivity.py", "left = epsilon - people * log_up(1 + 1 / total)", "left = epsilon"),
    (
        "rows leave the ball",
        "regression/design.py",
        "np.maximum(np.sqrt(self.fine_squares(values, out)), FINE * self.scale)",
        "FINE * self.scale * np.ones_like(self.fine_squares(values, out))",
    ),
    (
        "targets on twice the scale",
        "regression/design.py",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * UNIT * weights)",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * 2 * UNIT * weights)",
    ),
    ("residuals for 2", "regression/sensitivity.py", "one = 4 + weight if", "one = 2 + weight if"),
    ("the budget twice", "regression/sharing.py", "left = budget * (1 - radius)", "left = 2 * budget"),
    ("two rounds on one budget", "regression/sharing.py", "fits = 2 * _budget(", "fits = _budget("),
    (
        "residuals of either way for twice their share",
        "regression/sharing.py",
        "_up(moved[2] / (left - first))",
        "_up(moved[2] / (2 * (left - first)))",
    ),
    (
        "a round promises half of its epsilon",
        "regression/promise.py",
        "        epsilon=epsilon,\n        delta=delta,",
        "        epsilon=epsilon / 2,\n        delta=delta,",
    ),
    (
        "the price of a round left out",
        "regression/sharing.py",
        "spent[2]) if second else (*spent[:2],",
        "spent[2]) if second else (spent[0], spent[0],",
    ),
    (
        "mu doubled",
        "regression/sharing.py",
        "Fraction(math.floor(2**80 / sigma**2), 2**80)",
        "Fraction(math.floor(2**82 / sigma**2), 2**80)",
    ),
    (
        "residuals are not cut",
        "regression/stages.py",
        "np.rint(np.clip(off / (2.0**START_BITS * level_of(self.level)), -UNIT, UNIT))",
        "np.rint(off / (2.0**START_BITS * level_of(self.level)))",
    ),
    (
        "shares above one",
        "regression/stages.py",
        "return np.asarray(np.minimum(filled, 1.0) - 0.75)",
        "return np.asarray(np.minimum(filled, 2.0) - 0.75)",
    ),
    ("weights above one", "regression/design.py", "(FINE * self.scale) / longest if", "longest / (FINE * self.scale) if"),
    (
        "first sums with half the noise",
        "regression/staged.py",
        "(variance, 2 * width),",
        "(variance / 4, 2 * width),",
    ),
    (
        "residual sums with half the noise",
        "regression/staged.py",
        "(variance, study.width),",
        "(variance / 4, study.width),",
    ),
    (
        "the weight of rows nearly without noise",
        "regression/staged.py",
        "(variance / (weight * UNIT**2), 1),",
        "(variance / UNIT**4, 1),",
    ),
    ("promise of half epsilon", "regression/promise.py", "else Fraction(study.epsilon),", "else Fraction(study.epsilon) / 2,"),
)
