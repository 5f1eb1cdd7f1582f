"""One-line breaks of the keyvalue room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "keyvalue"

TESTS = ("contracts/test_calibration.py -k keyvalue", "keyvalue/client", "keyvalue", "clients/test_upload.py")
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "tables for 2 epsilon",
        "keyvalue/client/probabilities.py",
        "exp_down(min(epsilon, Fraction(_LARGEST_EXPONENT)))",
        "exp_down(min(2 * epsilon, Fraction(_LARGEST_EXPONENT)))",
    ),
    (
        "every later round gets all",
        "keyvalue/client/probabilities.py",
        "_growth(epsilon / 2 / rounds)\n",
        "_growth(epsilon / 2)\n",
    ),
    (
        "no dummies",
        "keyvalue/client/device.py",
        "secrets.randbelow(max(len(own), padding))",
        "secrets.randbelow(max(len(own), 1))",
    ),
    ("a report costs nothing", "keyvalue/client/device.py", "Fraction(0) if paid else self.terms.certified", "Fraction(0)"),
    (
        "truth more often than the table",
        "keyvalue/client/channel.py",
        "    if word < table.keep:\n        return state",
        "    if word < table.keep + table.keep // 64:\n        return state",
    ),
    (
        "fewer bits than the table",
        "keyvalue/client/device.py",
        "0 if picked is None else picked[1], secrets.randbits(table.bits))",
        "0 if picked is None else picked[1], secrets.randbits(table.bits - 1))",
    ),
    (
        "borders of a unary table not read on",
        "keyvalue/client/channel.py",
        "bytes(first if first == last else _READ_ON for",
        "bytes(first for",
    ),
    (
        "classic: others forgotten",
        "keyvalue/client/classic.py",
        "(exp_down(min(self.epsilon, Fraction(100))) + others)",
        "(2 * exp_down(min(self.epsilon, Fraction(100))) + others)",
    ),
    ("a book in memory forgets", "keyvalue/client/diary.py", "self._book.update(staged.written)", "self._book.update({})"),
    (
        "pages within pages",
        "keyvalue/client/diary.py",
        'self._open.setdefault("page", token) is not token',
        "self._open is None",
    ),
    (
        "signs from fewer bits",
        "keyvalue/client/device.py",
        "threshold, secrets.randbits(SIGN_BITS))",
        "threshold, secrets.randbits(SIGN_BITS - 1))",
    ),
    ("a forked device answers again", "keyvalue/client/diary.py", "if os.getpid() != self._process:", "if False:"),
    (
        "triggers of others in a diary",
        "keyvalue/client/diary.py",
        "len(found) != len(TABLES) or set(found) != _SCHEMA",
        "len(found) < len(TABLES)",
    ),
    (
        "sets that miss are kept too rarely",
        "keyvalue/client/subsets.py",
        "math.ceil((1 << bits) / growth)",
        "math.ceil((1 << bits) / growth**2)",
    ),
    ("sets with a dummy too few", "keyvalue/client/subsets.py", "subset.padding - len(own))", "subset.padding - len(own) - 1)"),
    (
        "a set of one person's own is cut to the first keys",
        "keyvalue/client/device.py",
        "_COIN.sample(own, most)",
        "own[:most]",
    ),
    (
        "a yes too often",
        "keyvalue/client/probabilities.py",
        "_ceil(size / (growth + 1))  # proof: yes-no",
        "_ceil(size / (growth**2 + 1))  # proof: yes-no",
    ),
    (
        "an absent key says minus where there are no signs",
        "keyvalue/client/channel.py",
        "word < table.signs * table.each",
        "word < 2 * table.each",
    ),
    (
        "who says no holds it all the same",
        "keyvalue/client/device.py",
        "return _WHOLE if held else None",
        "return _WHOLE if held or value is None else None",
    ),
    ("diary not synced", "keyvalue/client/diary.py", "PRAGMA synchronous=EXTRA", "PRAGMA synchronous=OFF"),
    (
        "a server may aim at a key",
        "keyvalue/client/upload.py",
        "if not hmac.compare_digest(credential, credential_of(terms, secret, nonce)):",
        "if not credential:",
    ),
    (
        "another number at each try of an enrolment",
        "keyvalue/client/outbox.py",
        'self._first(task, ticket, "promise", secrets.token_bytes(_PROMISE_BYTES))',
        "secrets.token_bytes(_PROMISE_BYTES)",
    ),
    (
        "a server may say another number once it has heard the device's",
        "keyvalue/client/upload.py",
        "if not hmac.compare_digest(nonce, outbox.nonce(terms.task_id, ticket, nonce)):",
        "if not nonce:",
    ),
    (
        "a number that was revealed for another ticket",
        "keyvalue/client/outbox.py",
        'b"sabun ticket\\0" + ticket.encode()',
        'b"sabun ticket\\0"',
    ),
    ("a repeated report of a file counts", "keyvalue/once.py", "self.held = both[first]", "self.held = both"),
    (
        "another answer under a taken id passes for a repetition",
        "keyvalue/once.py",
        'same = later["said"] == self.held["said"][np.cumsum(first)[~first] - 1]',
        "same = np.ones(len(later), dtype=bool)",
    ),
    (
        "a short report meets an id that ends in zeros",
        "keyvalue/once.py",
        'report[ID].ljust(20, b"\\xff")',
        "report[ID]",
    ),
    (
        "an id has another bucket in each block",
        "keyvalue/once.py",
        "mixed = np.full(len(words), self.factors[5], dtype=np.uint64)",
        "mixed = np.full(len(words), len(words) << 33, dtype=np.uint64)",
    ),
)
