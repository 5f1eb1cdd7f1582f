"""One-line breaks of the outliers room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "outliers"

TESTS = ("contracts/test_calibration.py -k outliers", "outliers/test_calibration.py", "outliers")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "regions: a rung that grows by one",
        "outliers/sensitivity.py",
        "2 * t + 2 + max(int(bands.most[t]), old) + new",
        "t + 2 + max(int(bands.most[t]), old) + new",
    ),
    ("slabs: a rim of one radius", "outliers/slabs.py", "for _ in range(radii):", "for _ in range(min(radii, 1)):"),
    ("slabs: a rim too narrow", "outliers/slabs.py", "self.radius * _SLACK", "self.radius * 0.99"),
    ("slabs: bands of one slab only", "outliers/slabs.py", "np.maximum(left.most, right.most),", "right.most,"),
    ("slabs: rim degrees believed", "outliers/ladder.py", "rank = np.where(self._whole, rank, rungs)", "rank = rank + 0"),
    (
        "slabs: borders owned twice",
        "outliers/slabs.py",
        "(low <= column) & (column < high)",
        "(low <= column) & (column <= high)",
    ),
    ("shares: lists of the inner half", "outliers/replicated.py", "- self.k) < self.rungs", "- self.k) < self.rungs // 2"),
    ("shares: new neighbours forgotten", "outliers/replicated.py", "- (self.k - 1)) < self.rungs", "- (self.k - 1)) < 1"),
    ("choice spends 2 epsilon", "outliers/subspace.py", "(scores, epsilon=epsilon,", "(scores, epsilon=2 * epsilon,"),
    ("limit of the proof raised", "outliers/laws.py", "_LARGEST_PROVED = Fraction(2)", "_LARGEST_PROVED = Fraction(20)"),
    ("one side of theta forgotten", "outliers/laws.py", "min(slide, stretch, _", "min(slide, _"),
    ("Laplace scale halved", "outliers/laws.py", "2 * bound / self._proved  #", "bound / self._proved  #"),
    ("Laplace beta doubled", "outliers/laws.py", "self._proved / 2 / max(", "self._proved / max("),
    ("Gaussian scale a fifth lower", "outliers/laws.py", "return 5 * sqrt_up(", "return 4 * sqrt_up("),
    ("published log for Gaussian", "outliers/laws.py", "log_up((1 + Fraction(grown)) / self.delta)", "log_up(2 / self.delta)"),
    ("error bar for free", "outliers/settings.py", "return (1 - share) * epsilon", "return epsilon"),
    (
        "global noise for 2 epsilon",
        "outliers/count.py",
        "(l1=cap, epsilon=amounts.epsilon)",
        "(l1=cap, epsilon=2 * amounts.epsilon)",
    ),
    ("global variance not squared", "outliers/count.py", "l2_squared=cap * cap", "l2_squared=cap"),
    ("bar's scale halved", "outliers/error_bar.py", "(_STEPS + 2) / self.epsilon", "(_STEPS + 2) / (2 * self.epsilon)"),
    (
        "add for replace in the cap",
        "outliers/kissing.py",
        "min(int(n), neighbours * kissing_bound(d) + 1)",
        "min(int(n), neighbours * kissing_bound(d))",
    ),
    ("add for replace in the ladder", "outliers/sensitivity.py", 'step = 1 if relation == "replace-one" else 0', "step = 0"),
    ("touching balls missed", "outliers/ladder.py", "_TOUCH = (1.0 + 1e-9) ** 2", "_TOUCH = (1.0 - 1e-9) ** 2"),
    ("vector noise of one output", "outliers/vector.py", "beta=self.beta, outputs=self.outputs)", "beta=self.beta, outputs=1)"),
    (
        "regions: bar gets everything",
        "outliers/regions.py",
        "ErrorBar(epsilon=ask.epsilon * share,",
        "ErrorBar(epsilon=ask.epsilon,",
    ),
)
