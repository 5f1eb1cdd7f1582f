"""One-line breaks of the density room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "density"

TESTS = ("contracts/test_calibration.py -k density", "density/test_kernel.py", "density")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("add for replace", "density/rkhs.py", "self._euclidean(grid.joint(),", "self._euclidean(grid.add,"),
    (
        "add for replace, told alike",
        "density/rkhs.py",
        "self._euclidean(grid.joint(),",
        "self._euclidean(grid.add,",
        ("Fraction(2**0.5)", "Fraction(1)"),
    ),
    (
        "counts not in the sensitivity",
        "density/embedding.py",
        "max(sqrt_up(max(self.add, unit) ** 2 + unit**2), self.replace)",
        "self.add",
    ),
    ("uncovered rows counted twice", "density/rkhs.py", "int(off.sum())", "2 * int(off.sum())"),
    ("uncovered rows embedded too", "density/rkhs.py", "whole[off] = 0", "whole[:0] = 0"),
    (
        "uncovered rows without noise",
        "density/rkhs.py",
        '"uncovered": noisy[-1] / size',
        '"uncovered": int(seen.sums[-1]) / size',
    ),
    ("support depends on the other rows", "density/support.py", "~(inside & near)", "~(inside & near) & near.any()"),
    (
        "spherical scale halved",
        "density/mechanism.py",
        "spherical_laplace(self.l2 / self.epsilon,",
        "spherical_laplace(self.l2 / (2 * self.epsilon),",
    ),
    ("Gaussian variance halved", "density/mechanism.py", "l2_squared=l2**2,", "l2_squared=l2**2 / 2,"),
    (
        "Laplace for 2 epsilon",
        "density/mechanism.py",
        "(l1=self.l1, epsilon=self.epsilon)",
        "(l1=self.l1, epsilon=2 * self.epsilon)",
    ),
    ("both halves get all", "density/paper.py", "epsilon=self.target.epsilon / 2", "epsilon=self.target.epsilon"),
    ("one coordinate for all", "density/paper.py", "l1=Fraction(self.basis.size * span)", "l1=Fraction(span)"),
    ("too much amplification", "density/paper.py", "(exp_down(epsilon) - 1) *", "(exp_down(epsilon) - 1) * 2 *"),
    ("delta of one raw record", "density/paper.py", "delta=Fraction(self.wanted, size)", "delta=Fraction(1, size)"),
    ("add for replace in logistic", "density/logistic.py", "Fraction(2, max(size, 1))", "Fraction(1, max(size, 1))"),
    ("features not clipped", "density/logistic.py", "largest * ratio <= room", "largest * ratio < np.inf"),
    (
        "basis not clipped",
        "density/basis.py",
        "np.clip(np.where(np.isnan(numbers), 0.0, numbers), self.lower, self.upper)",
        "np.where(np.isnan(numbers), 0.0, numbers)",
    ),
    (
        "kernel rounding forgotten",
        "density/kernel.py",
        "WHOLE_ERROR = Fraction(1, 2) + Fraction(1, 1024)",
        "WHOLE_ERROR = Fraction(0)",
    ),
    ("a copy of a part counted again", "engine/statistic.py", "if self.names & other.names:", "if False:"),
    (
        "a part with new rows forgets its name",
        "engine/statistic.py",
        "names=self.names or frozenset((os.urandom(16),))",
        "names=frozenset((os.urandom(16),))",
    ),
    ("a piece counted again", "engine/statistic.py", "if twice := self.seen & other.seen:", "if twice := 0:"),
    (
        "sums of other tables merged",
        "density/rkhs.py",
        'plan = f"rkhs {digest.hexdigest()} on {table}"',
        'plan = f"rkhs {digest.hexdigest()}"',
    ),
)
