"""One-line breaks of the summaries room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "summaries"

TESTS = ("contracts/test_calibration.py -k summaries", "summaries")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("noise for 2 epsilon", "summaries/laws.py", "l1=change.l1, epsilon=ask.epsilon", "l1=change.l1, epsilon=2 * ask.epsilon"),
    (
        "L1 for L2",
        "summaries/laws.py",
        "discrete_gaussian_variance(l2_squared=change.l2_squared",
        "discrete_gaussian_variance(l2_squared=change.l1",
    ),
    ("add for replace in counts", "summaries/sensitivity.py", "moved = 2 if relation", "moved = 1 if relation"),
    (
        "one group for two in sums",
        "summaries/sensitivity.py",
        "Change(2 * most, max(width**2, 2 * most**2))",
        "Change(max(width, most), max(width, most) ** 2)",
    ),
    ("the wide pair forgotten in sums", "summaries/sensitivity.py", "max(width**2, 2 * most**2))  #", "2 * most**2)  #"),
    (
        "add for replace in means",
        "summaries/sensitivity.py",
        "return Change(2 * width, 2 * width**2)",
        "return Change(width, width**2)",
    ),
    (
        "add for replace in variances",
        "summaries/sensitivity.py",
        "return Change(2 * square, 2 * square**2)",
        "return Change(square, square**2)",
    ),
    ("end to end for the parabola", "summaries/sensitivity.py", "Fraction(9, 4) * square", "2 * square"),
    ("one group for two in ranks", "summaries/sensitivity.py", "max(Fraction(1), 2 * joined)", "Fraction(1)"),
    ("half a person in ranks", "summaries/sensitivity.py", "joined = max(share, 1 - share)", "joined = min(share, 1 - share)"),
    ("a condition leaves the size public", "summaries/people.py", "self.by is None and not self.where", "self.by is None"),
    ("marks beyond the bounds", "summaries/ruler.py", "np.clip(marks, 0, self.steps)", "(2 * marks)"),
    ("every share gets everything", "summaries/quantiles.py", "terms.ask.epsilon / len(shares)", "terms.ask.epsilon"),
    ("intervals for free", "summaries/quantiles.py", "(1 - bar) * each / moved", "each / moved"),
    ("ends at full price each", "summaries/quantiles.py", "bar / 2 * each / moved", "bar * each / moved"),
    ("the denominator forgotten", "summaries/quantiles.py", "rate=rate / self.share.denominator", "rate=rate"),
    ("twice the rate forgotten", "summaries/quantiles.py", "moved = 2 * cost_of_ranks", "moved = cost_of_ranks"),
)
