"""One-line breaks of the learning room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "learning"

TESTS = (
    "contracts/test_calibration_learning.py",
    "learning/test_calibration.py",
    "learning/test_poisson.py",
    "learning/test_dpsgd.py",
    "learning",
)
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("DP-SGD: add for replace", "learning/dpsgd.py", 'if self.problem.relation == "add-remove":', "if True:"),
    (
        "DP-SGD: sigma halved",
        "learning/dpsgd.py",
        "rounded_gaussian(total, sigma=multiplier,",
        "rounded_gaussian(total, sigma=multiplier / 2,",
    ),
    (
        "DP-SGD: sigma 1 % less",
        "learning/dpsgd.py",
        "rounded_gaussian(total, sigma=multiplier,",
        "rounded_gaussian(total, sigma=multiplier * 0.99,",
    ),
    (
        "DP-SGD: count for 4 epsilon",
        "learning/dpsgd.py",
        "discrete_laplace(1 / self.count_epsilon,",
        "discrete_laplace(Fraction(1, 4) / self.count_epsilon,",
    ),
    ("DP-Adam: add for replace", "learning/dpadam.py", 'return 1 if self.problem.relation == "add-remove" else 2', "return 1"),
    (
        "DP-Adam: sigma 1 % less",
        "learning/dpadam.py",
        "rounded_gaussian(total, sigma=multiplier,",
        "rounded_gaussian(total, sigma=multiplier * 0.99,",
    ),
    (
        "DP-Adam: count for 4 epsilon",
        "learning/dpadam.py",
        "discrete_laplace(1 / self.count_epsilon,",
        "discrete_laplace(Fraction(1, 4) / self.count_epsilon,",
    ),
    (
        "DP-Adam: the true count decides",
        "learning/dpadam.py",
        "count is not None and count >= self.plenty",
        "count is not None and len(data.labels) >= self.plenty",
    ),
    (
        "DP-Adam: inputs scaled for nothing",
        "learning/accounting.py",
        "    if scaled:\n        found.append(",
        "    if False:\n        found.append(",
    ),
    (
        "DP-Adam: squares not paid for",
        "learning/standardizing.py",
        "sqrt_up(Fraction(5, 4) * len(self.numbers)",
        "sqrt_up(Fraction(4, 4) * len(self.numbers)",
    ),
    (
        "DP-Adam: numbers beyond their bounds",
        "learning/standardizing.py",
        "np.clip(2.0 * rows[:, self.numbers] - 1.0, -1.0, 1.0)",
        "(2.0 * rows[:, self.numbers] - 0.5)",
    ),
    (
        "DP-Adam: scaling and last step share noise",
        "learning/standardizing.py",
        "stream=stream, step=steps)",
        "stream=stream, step=steps - 1)",
    ),
    (
        "centroids: add for replace",
        "learning/centroids.py",
        'return 1 if self.problem.relation == "add-remove" else 2',
        "return 1",
    ),
    (
        "centroids: scale 1 % less",
        "learning/centroids.py",
        "self.moved * sums.unit / epsilon",
        "self.moved * sums.unit * 99 / (100 * epsilon)",
    ),
    (
        "centroids: each stage at full price",
        "learning/centroids.py",
        "return first, self.problem.epsilon - first",
        "return first, self.problem.epsilon",
    ),
    (
        "centroids: numbers beyond their bounds",
        "learning/centroids.py",
        "t = np.clip((z - means) / spreads, -1.0, 1.0)",
        "t = (z - means) / spreads",
    ),
    ("epsilon not halved", "learning/accounting.py", "half = epsilon / 2", "half = epsilon"),
    ("delta not shared", "learning/accounting.py", "share = delta / growth if", "share = delta if"),
    (
        "clipping removed",
        "learning/clipping.py",
        "1.0 / np.maximum(norms, self._clip_norm)",
        "1.0 / np.maximum(0.0 * norms, self._clip_norm)",
    ),
    ("pure SGD: add for replace", "learning/laplace_sgd.py", '(1 if self.problem.relation == "add-remove" else 2)', "1"),
    (
        "pure SGD: scale halved",
        "learning/laplace_sgd.py",
        "+ self.network.n_weights) / self.step_epsilon",
        "+ self.network.n_weights) / (2 * self.step_epsilon)",
    ),
    (
        "objective: gradient moves one",
        "learning/objective.py",
        "return 2 / (self.objective_epsilon",
        "return 1 / (self.objective_epsilon",
    ),
    ("objective: curvature for free", "learning/objective.py", " - log_up(1 + Fraction(1, 4) / self.regularisation)", ""),
    (
        "objective: rows not shortened",
        "learning/objective.py",
        "design /= norms[:, None]",
        "design /= self.problem.features.norm_bound",
    ),
    (
        "objective: output noise halved",
        "learning/objective.py",
        "return distance / self.output_epsilon",
        "return distance / (2 * self.output_epsilon)",
    ),
    (
        "LearningFirst: half the range",
        "learning/ranges.py",
        "return self.high - self.low",
        "return self.high",
    ),
    (
        "AnonymizedLearning: one pass paid",
        "learning/anonymized_learning.py",
        "return self.update_epsilon / self.epochs",
        "return self.update_epsilon",
    ),
    (
        "AnonymizedLearning: sum not cut",
        "learning/ranges.py",
        "grid.index(cut(numbers, parts)), np.empty",
        "grid.index(numbers), np.empty",
    ),
    (
        "histogram: add for replace",
        "learning/synthesis/histogram.py",
        'changed = 1 if self.relation == "add-remove" else 2',
        "changed = 1",
    ),
    (
        "marginals: add for replace",
        "learning/synthesis/marginals.py",
        'changed = 1 if relation == "add-remove" else 2',
        "changed = 1",
    ),
    (
        "tree: twice the rate",
        "learning/synthesis/structure.py",
        "each / (2 * SENSITIVITY[relation])",
        "each / SENSITIVITY[relation]",
    ),
    (
        "counts: every column gets all",
        "learning/synthesis/bayes_net.py",
        "shape, _COUNTS / columns, coin)",
        "shape, _COUNTS, coin)",
    ),
    (
        "means: one group changes",
        "learning/synthesis/microaggregation.py",
        "return self.groups * self.record_steps / self.epsilon",
        "return self.record_steps / self.epsilon",
    ),
    ("band too narrow", "learning/gaussian.py", "_BAND = 2.0**-18", "_BAND = 2.0**-60"),
    (
        "step not in the stream",
        "learning/stream.py",
        '        start = purpose.to_bytes(1, "big") + step.to_bytes(7, "big") + bytes(8)\n        return',
        '        start = purpose.to_bytes(1, "big") + bytes(15)\n        return',
    ),
    ("more rows than accounted", "learning/poisson.py", "drawn < self.threshold)", "drawn < 2 * self.threshold)"),
    (
        "forged states believed",
        "learning/checkpoint.py",
        "if tagged and not hmac.compare_digest(tag, _tag(key, body)):",
        "if False:",
    ),
    ("attempts to hand over overlooked", "learning/checkpoint.py", "while number <= len(states) + 1:", "while number <= 1:"),
    ("promise never confirmed", "learning/recompute.py", "return math.inf, delta", "return 2 * epsilon, delta"),
)
