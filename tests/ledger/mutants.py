"""One-line breaks of the ledger room's privacy: name, file, what stands there once, what takes its place."""

ROOM = "ledger"

TESTS = (
    "ledger/test_durability.py",
    "ledger/test_postgres.py",
    "ledger/test_roles.py",
    "ledger/test_servers.py",
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
        "    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key, price=price)",
        "    draw, drawn = (lambda: drawn), draw()\n"
        "    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key, price=price)",
    ),
    ("void after data was touched", "release/publish.py", "    reservation.touch()\n", ""),
    (
        "add-remove charged as replace-one",
        "ledger/admission.py",
        "return guarantee.as_replace_one(), CONVERTED",
        "return guarantee, CONVERTED",
    ),
    ("delta beyond the budget", "ledger/shares.py", " and delta <= self.part * self.delta", ""),
    ("stated deltas beyond their share", "ledger/shares.py", "if used.loose > self.part * self.shares.stated:", "if False:"),
    ("sums that forget stated deltas", "ledger/shares.py", " and used.extra <= self.part * sums  #", "  #"),
    ("all of delta for the order", "ledger/shares.py", '"tail": tail * left}', '"tail": left}'),
    (
        "old charges priced anew",
        "ledger/standing.py",
        "return Usage(epsilon, delta, Fraction(0), epsilon)",
        "return Usage(epsilon, delta, Fraction(0), Fraction(0))",
    ),
    ("raised above the ceiling", "ledger/standing.py", "not before.limit < limit <= ceiling", "not before.limit < limit"),
    ("accounts without limits", "ledger/standing.py", "for account in self.accounts.values()", "for account in ()"),
    ("a price over one step", "ledger/admission.py", "return 2 * terms.group", "return terms.group"),
    (
        "groups for free",
        "ledger/admission.py",
        "grouped(*restated.cost, steps=terms.group)",
        "grouped(*restated.cost, steps=1)",
    ),
    ("forged prices pass", "ledger/chain.py", "        check_booked(row.body, before, terms)\n", "        pass\n"),
    (
        "amounts below their guarantee pass",
        "ledger/admission.py",
        "if not wanted.epsilon <= stated.epsilon or not wanted.delta <= stated.delta:",
        "if False:",
    ),
    (
        "a row by sums keeps its price",
        "ledger/row.py",
        'if kind == "reserve" and ("tau" in opening)',
        'if False and ("tau" in opening)',
    ),
    (
        "a rule given up while charges stand",
        "ledger/row.py",
        '"rule" in opening and after.used == NOTHING:',
        '"rule" in opening:',
    ),
    (
        "an account decides for all",
        "ledger/admission.py",
        '("shares",) if account else ("shares", "sums")',
        '("shares", "sums")',
    ),
    ("a conversion beyond an account's limit", "ledger/standing.py", "if not after.admits():", "if False:"),
    ("a threshold rounded up", "privacy/renyi.py", "    return epsilon - _conversion(order, tail)", "    return epsilon"),
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
    ("a rollback taken for a commit", "ledger/postgres_transaction.py", 'if answer.statusmessage != "COMMIT":', "if False:"),
    (
        "a cut change taken for made",
        "ledger/postgres_store.py",
        "if there is None or there.hash != newest.hash:",
        "if False:",
    ),
    (
        "rows on a server are not read back",
        "ledger/postgres_transaction.py",
        "        if rows or kept:\n",
        "        if False:\n",
    ),
    ("a cut commit taken for certain", "ledger/postgres_transaction.py", "self.ending = True", "self.ending = False"),
    (
        "changed tables on a server pass",
        "ledger/postgres_tables.py",
        "len(found) == len(made) and set(found) ==",
        "set(found) >=",
    ),
    ("anybody may change the terms", "ledger/postgres_tables.py", "AND NOT pg_has_role(", "AND NOT true AND NOT pg_has_role("),
    (
        "a charge that raises the limit on a server",
        "ledger/postgres_tables.py",
        "AND 1 < (\n",
        "AND 2 < (\n",
    ),
    ("a base beyond the promise", "ledger/chain.py", "standing.limit <= terms.promised.epsilon", "standing.limit > 0"),
    ("seeded results are charged", "release/publish.py", "    if promise.simulated:", "    if False:"),
)
