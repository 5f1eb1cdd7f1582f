"""One-line breaks of the records room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "records"

TESTS = ("records", "contracts/test_several_rows.py", "engine/test_persons.py")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "days of Greenwich",
        "records/dates.py",
        "piece = pc.local_timestamp(piece)",
        "piece = pc.cast(piece, pa.timestamp(kind.unit))",
    ),
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
        "np.add.at(self._sum, who, steps)  # proof: whole-steps",
        "np.add.at(self._sum, who, steps + len(who) % 7)  # proof: whole-steps",
    ),
    (
        "persons in the order of first sight",
        "records/collapsing.py",
        "return rows[order]  # proof: random-order",
        "return rows  # proof: random-order",
    ),
    (
        "waiting rows parted by row instead of by person",
        "records/spilling.py",
        'order = np.argsort(homes, kind="stable")  # proof: one-file',
        'homes = (np.arange(len(keys)) % _FILES).astype(np.uint8)\n        order = np.argsort(homes, kind="stable")',
    ),
    (
        "a person in memory and on disk at once",
        "records/collapsing.py",
        "        self._keys = whole[first[: self.room]]\n",
        "        self._keys = whole[first[-self.room :]]\n",
    ),
    (
        "rows without an id are one person's",
        "records/collapsing.py",
        "yield rows if known.all() else rows.where(known)  # proof: left-out",
        "yield rows",
    ),
    (
        "long ids compared by their beginning",
        "records/ids.py",
        "plain = (lengths > 0) & (lengths <= _LONGEST)",
        "lengths = np.minimum(lengths, _LONGEST)\n    plain = lengths > 0",
    ),
    (
        "an id with a zero in front that is read as a text",
        "records/ids.py",
        "plain &= whole[np.minimum(starts, len(whole) - 1)] != low",
        "pass",
    ),
    (
        "ids that are mixed into one are one person's",
        "records/ids.py",
        "if keys[:, 1].any() and not np.array_equal(same[who], keys):",
        "if False:",
    ),
    (
        "upper and lower case are two persons where they are declared one",
        "records/ids.py",
        'return pc.ascii_lower(texts) if self._spelling == "caseless" else texts',
        "return texts",
    ),
    (
        "persons of pieces in the order of the pieces",
        "engine/by_person.py",
        "Collapsed(schema=schema, rows=in_random_order(rows))",
        "Collapsed(schema=schema, rows=rows)",
    ),
    (
        "a person in two buckets",
        "engine/by_person.py",
        "IdKeys(how.spelling, secret=_SECRET)",
        'IdKeys("text", secret=_SECRET)',
    ),
    (
        "first and last by the order in which a database hands its rows out",
        "records/collapsing.py",
        "        if not self._placed:  # proof: no-place\n",
        "        if False:  # proof: no-place\n",
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
