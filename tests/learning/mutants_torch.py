"""One-line breaks of the torch room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "torch"

TESTS = (
    *("contracts/test_calibration.py -k torch", "learning/test_torch_forgeries.py", "contracts/test_estimators.py"),
    "learning",
)
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "torch's noise of one step for all",
        "learning/torch_modules/loop.py",
        "self._stream.words(NOISE, self.step, 1)",
        "self._stream.words(NOISE, 0, 1)",
    ),
    (
        "one setting takes back the others",
        "asking/settings.py",
        "fold(given, lambda group: getattr(self, group))",
        "fold(given, usual.__getitem__)",
    ),
    ("margin of norms gone", "learning/torch_modules/ghost.py", "MARGIN = 2.0**-30", "MARGIN = 0.0"),
    (
        "clipping removed",
        "learning/torch_modules/ghost.py",
        "share = norms.clamp_(min=self._clip_norm).reciprocal_()",
        "share = norms.mul_(0).clamp_(min=self._clip_norm).reciprocal_()",
    ),
    (
        "a norm by hand without the inputs",
        "learning/torch_modules/by_hand.py",
        "norms = factors.prod(0).sum(0)",
        "norms = factors[1].sum(0)",
    ),
    (
        "a norm by hand without a layer",
        "learning/torch_modules/by_hand.py",
        "norms = factors.prod(0).sum(0)",
        "norms = factors.prod(0)[:1].sum(0)",
    ),
    (
        "the bias left out of a norm by hand",
        "learning/torch_modules/by_hand.py",
        "place[-1] = float(layer.bias is not None)",
        "place[-1] = 0.0",
    ),
    (
        "class numbers in a column paired with every row",
        "learning/torch_modules/ghost.py",
        "if self._plain and y.dtype == torch.int64 and y.dim() == 1:",
        "if self._plain and y.dtype == torch.int64:",
    ),
    (
        "filling rows counted by hand",
        "learning/torch_modules/ghost.py",
        "passes.add(rows, self._shares(squares[:count]))",
        "passes.add(rows, self._shares(squares))",
    ),
    (
        "one number of rows tried of six",
        "learning/torch_modules/ghost.py",
        "for count in sizes_below(most))",
        "for count in sizes_below(1))",
    ),
    (
        "filling rows counted",
        "learning/torch_modules/ghost.py",
        "share = self._shares(squares[:count])",
        "share = self._shares(squares)",
    ),
    (
        "rows tried nowhere",
        "learning/torch_modules/ghost.py",
        "return not clipper.by_hand(x) or all(",
        "return True or all(",
    ),
    (
        "certified sigma halved",
        "learning/torch_modules/loop.py",
        "rounded_gaussian(centre, sigma=float(loop.multiplier),",
        "rounded_gaussian(centre, sigma=float(loop.multiplier) / 2,",
    ),
    (
        "torch sigma halved",
        "learning/torch_modules/loop.py",
        ".normal_(0.0, float(loop.multiplier),",
        ".normal_(0.0, float(loop.multiplier) / 2,",
    ),
    (
        "add for replace",
        "learning/torch_modules/trainer.py",
        "return halved(ask.epsilon, delta)",
        "return Target(epsilon=ask.epsilon, delta=delta)",
    ),
    (
        "a noisy count for nothing",
        "learning/torch_modules/trainer.py",
        "count_epsilon=price.count",
        "count_epsilon=100 * price.count",
    ),
    (
        "a private number of records taken as public",
        "learning/torch_modules/trainer.py",
        'n_records if ask.relation == "replace-one" else stated',
        "n_records",
    ),
    (
        "links of a checkpoint folder followed",
        "learning/run_files.py",
        "if not stat.S_ISREG(file.lstat().st_mode):",
        "if not stat.S_ISREG(file.stat().st_mode):",
    ),
    (
        "drawn before the charge",
        "learning/torch_modules/trainer.py",
        "run = self._run(ask, X, y)",
        "run = self._run(ask, X, y); ask.coin.words(1)",
    ),
)
