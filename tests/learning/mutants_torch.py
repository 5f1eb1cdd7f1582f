"""One-line breaks of the torch room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "torch"

TESTS = ("contracts/test_calibration_torch.py", "learning")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("margin of norms gone", "learning/torch_modules/ghost.py", "MARGIN = 2.0**-30", "MARGIN = 0.0"),
    (
        "clipping removed",
        "learning/torch_modules/ghost.py",
        "share = norms.clamp_(min=self._clip_norm).reciprocal_()",
        "share = norms.mul_(0).clamp_(min=self._clip_norm).reciprocal_()",
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
        "return halved(self.epsilon, delta)",
        "return Target(epsilon=self.epsilon, delta=delta)",
    ),
)
