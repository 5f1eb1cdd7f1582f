"""One-line breaks of the records room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "records"

TESTS = ("records", "contracts/test_several_rows.py")
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
    (
        "means of persons that feel how long a piece is",
        "records/collapsing.py",
        "np.rint(cells[said] / self._step).astype(np.int64))  # proof: whole-steps",
        "np.rint(cells[said] / self._step + 0.01 * len(who)).astype(np.int64))  # proof: whole-steps",
    ),
    (
        "persons in the order of first sight",
        "records/collapsing.py",
        "return matrix[_shuffled(len(matrix))]",
        "return matrix",
    ),
    (
        "waiting rows parted by row instead of by person",
        "records/spilling.py",
        "homes = rows[:, 0] % _FILES",
        "homes = np.arange(len(rows)) % _FILES",
    ),
    (
        "a person in memory and on disk at once",
        "records/collapsing.py",
        "        if key not in self:\n            if self.count >= self._room:\n",
        "        if True:\n            if self.count >= self._room:\n",
    ),
    (
        "rows without an id are one person's",
        "records/collapsing.py",
        "        if not key:\n            return -1\n",
        "",
    ),
    (
        "persons in pieces of a stream",
        "regression/statistic.py",
        "                if isinstance(piece, Persons):\n",
        "                if False:\n",
    ),
    (
        "another order of persons at each reading",
        "records/sources.py",
        '        if "rows" not in self._once:',
        "        if True:",
    ),
)
