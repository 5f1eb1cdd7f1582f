"""One-line breaks of the ledger room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "ledger"

TESTS = (
    "ledger/test_durability.py",
    "ledger/test_postgres.py",
    "release/test_order.py",
    "contracts/test_estimators.py",
    "release",
    "ledger",
)
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    ("writes not synced", "ledger/sqlite_store.py", '"synchronous=EXTRA"', '"synchronous=OFF"'),
    (
        "writes as in WAL mode",
        "ledger/sqlite_store.py",
        'PRAGMA journal_mode=DELETE").fetchone()',
        'PRAGMA journal_mode").fetchone()',
        ('if mode != "delete":', "if not mode:"),
    ),
    ("two writers at once", "ledger/sqlite_store.py", 'self._begun("BEGIN IMMEDIATE")', 'self._begun("BEGIN")'),
    (
        "charge after the draw",
        "release/publish.py",
        "    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key)",
        "    draw, drawn = (lambda: drawn), draw()\n    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key)",
    ),
    ("void after data was touched", "release/publish.py", "    reservation.touch()\n", ""),
    (
        "add-remove charged as replace-one",
        "ledger/admission.py",
        "return guarantee.as_replace_one(), CONVERTED",
        "return guarantee, CONVERTED",
    ),
    (
        "delta beyond the budget",
        "ledger/ledger.py",
        "after.epsilon <= self.budget.epsilon and after.delta <= self.budget.delta",
        "after.epsilon <= self.budget.epsilon",
    ),
    (
        "changed tables pass",
        "ledger/sqlite_store.py",
        "set(found) != _SCHEMA",
        "not set(found) >= _SCHEMA",
        ("len(found) != len(_SCHEMA) or ", ""),
    ),
    ("a row is not read back", "ledger/sqlite_transaction.py", "if self.last().hash != row.hash:", "if False:"),
    ("sums of new rows on trust", "ledger/chain.py", "or row.spent != total_after(", "or not total_after("),
    (
        "an entry closed twice",
        "ledger/chain.py",
        '            case [opening] if opening.kind == "reserve":\n                return opening\n',
        '            case [opening, *_] if opening.kind == "reserve":\n                return opening\n',
    ),
    ("foreign rows pass", "ledger/chain.py", "view.counts() != (piece.newest + 1, kept)", "False"),
    ("two clients at once", "ledger/postgres_store.py", "IN EXCLUSIVE MODE", "IN ACCESS SHARE MODE"),
    ("a server that answers before the disk", "ledger/postgres_store.py", "if value not in _DURABLE[name]:", "if False:"),
    ("a rollback taken for a commit", "ledger/postgres_store.py", 'if answer != "COMMIT":', "if False:"),
    (
        "a cut change taken for made",
        "ledger/postgres_store.py",
        "if there is None or there.hash != newest.hash:",
        "if False:",
    ),
    (
        "rows on a server are not read back",
        "ledger/postgres_transaction.py",
        "found != [row.hash for row in reversed(rows)]",
        "False",
    ),
    (
        "changed tables on a server pass",
        "ledger/postgres_tables.py",
        "len(found) == len(_made(schema)) and set(found) ==",
        "set(found) >=",
    ),
    ("anybody may change the terms", "ledger/postgres_tables.py", "AND NOT pg_has_role(", "AND NOT true AND NOT pg_has_role("),
    ("seeded results are charged", "release/publish.py", "    if promise.simulated:", "    if False:"),
)
