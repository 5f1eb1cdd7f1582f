"""One-line breaks of the records room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "records"

TESTS = ("records",)
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "arrays not clipped",
        "records/matrix.py",
        "        np.clip(block, lower, upper, out=block)\n        block += 0.0",
        "        block += 0.0",
    ),
    (
        "columns clipped 1 % too wide",
        "records/columns.py",
        "np.clip(values, self.lower, self.upper) + 0.0",
        "np.clip(values, self.lower, self.upper * 1.01) + 0.0",
    ),
)
