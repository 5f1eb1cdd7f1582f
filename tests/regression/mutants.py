"""One-line breaks of the regression room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "regression"

TESTS = ("contracts/test_calibration_regression.py", "regression")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("add for replace", "regression/sensitivity.py", "one = Fraction(9, 2)", "one = Fraction(9, 4)"),
    (
        "rows of a person not squared",
        "regression/sensitivity.py",
        "one * int(records_per_person) ** 2",
        "one * int(records_per_person)",
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
        "np.maximum(np.sqrt(squares), _FINE * self.scale)",
        "(_FINE * self.scale * np.ones_like(squares))",
    ),
    (
        "targets on twice the scale",
        "regression/design.py",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * UNIT)",
        "np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * 2 * UNIT)",
    ),
    ("promise of half epsilon", "regression/promise.py", "else Fraction(study.epsilon),", "else Fraction(study.epsilon) / 2,"),
)
