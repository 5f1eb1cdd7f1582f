"""One-line breaks of the collector's laws: name, file, what stands there once, what takes its place."""

ROOM = "service"

TESTS = (
    "service/test_report_store.py",
    "service/test_closing.py",
    "service/test_enrolment.py",
    "service/test_operators.py",
    "service/test_picture.py",
    "service/test_bodies.py",
    "service/test_application.py",
    "service/test_dashboard.py",
    "service/test_faults.py",
)
"""Who is asked whether they notice, in this order."""

MUTANTS = (
    (
        "what was known counts again",
        "service/adding.py",
        "for id, answer in first.items() if id not in known}",
        "for id, answer in first.items()}",
    ),
    (
        "the last answer under an id counts",
        "service/adding.py",
        "dict(zip(reversed(ids), reversed(answers), strict=True))",
        "dict(zip(ids, answers, strict=True))",
    ),
    ("another answer passes for the same", "service/adding.py", "elif stored[id] == answer:", "elif id in stored:"),
    ("closed rounds take reports", "service/adding.py", 'return "late" if opened.state != "open" or', 'return "late" if'),
    ("ids are kept as they came", "service/adding.py", "scramble(id, key=key, digest_size=16).digest()", "bytes(id)"),
    ("anybody counts", "service/adding.py", '        if rule_in(session, served) == "tickets":\n', "        if False:\n"),
    ("another folder of keys passes", "service/adding.py", "if key is None or check_of(key) != check:", "if key is None:"),
    (
        "a rolled-back change is answered",
        "service/sqlite_session.py",
        '                connection.execute("COMMIT")',
        '                connection.execute("ROLLBACK")',
    ),
    ("deleted rows stay in the file", "service/sqlite_session.py", '"secure_delete=ON"', '"secure_delete=OFF"'),
    (
        "deleted rows stay in the log",
        "service/sqlite_session.py",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA wal_checkpoint(PASSIVE)",
    ),
    (
        "released without a recount",
        "service/closing.py",
        "    require_equal(store.recount(served, number), store.counters(served, number))\n",
        "",
    ),
    (
        "the key outlives its round",
        "service/closing.py",
        "    store.keys.destroy_round(served.task, number)\n    _open_next",
        "    _open_next",
    ),
    (
        "closed below the minimum",
        "service/closing.py",
        "        store.require_batch(served, opened.number, store.counters_in(session, served, opened.number))\n",
        "",
    ),
    ("an abandoned round is released", "service/closing.py", "SET state = 'abandoned' WHERE", "SET state = 'closed' WHERE"),
    (
        "one lost key stops everybody",
        "service/report_store.py",
        "except KeyLost as error:",
        "except ZeroDivisionError as error:",
    ),
    (
        "the monitor is told of small batches",
        "service/metrics.py",
        'if outcomes["accepted"] >= served.study.terms.min_batch:',
        "if True:",
    ),
    ("headers without end", "service/connections.py", "if self._announced > _MOST_HEAD or not within:", "if False:"),
    (
        "a ticket throws again",
        "service/enrolment.py",
        "elif not hmac.compare_digest(bytes(found[0][0]), promise):",
        "elif False:",
    ),
    (
        "any secret opens a promise",
        "service/enrolment.py",
        "if found[0][0] is None or not hmac.compare_digest(bytes(found[0][0]), promise):",
        "if found[0][0] is None:",
    ),
    ("the device alone throws", "service/enrolment.py", "+ task + secret + nonce).digest()", "+ task + secret).digest()"),
    (
        "tokens never end",
        "service/operators.py",
        "if found is not None and store.today < found.expires else None",
        "if found is not None else None",
    ),
    (
        "tokens open every study",
        "service/operators.py",
        "return known and (self.study is None or (served is not None and served.number == self.study))",
        "return known",
    ),
    (
        "tokens are kept as they are",
        "service/operators.py",
        'return hashlib.sha256(token.encode("utf-8", "replace")).digest()',
        'return token.encode("utf-8", "replace")',
    ),
    ("small batches are shown", "service/picture.py", "    if reports < terms.min_batch:\n", "    if False:\n"),
    ("bodies without end", "service/bodies.py", "if held.size + len(piece) > limit:", "if False:"),
    ("what stalls is never given up", "service/bodies.py", "if one is not held and one.size), None)", "if False), None)"),
    (
        "a body that was given up counts on",
        "service/bodies.py",
        '        if held.given_up:\n            raise Problem("busy")\n        while',
        "        while",
        ('        if held.given_up:  # and its last piece came at the same moment\n            raise Problem("busy")\n', ""),
    ),
    ("who is silent keeps others out", "service/connections.py", "            longest.transport.abort()\n", ""),
    ("who was heard goes first", "service/connections.py", "            self.crowd.heard(self)\n", ""),
    (
        "who administers one study gives tokens for all",
        "service/pages_admin.py",
        '    if asked.operator.may("admin", None):\n        found[0] = None',
        "    found[0] = None",
    ),
    (
        "anybody administers",
        "service/pages_admin.py",
        'if asked.operator.may("admin", served)',
        'if asked.operator.may("read", served)',
    ),
    (
        "anybody makes studies",
        "service/pages_admin.py",
        'if asked.operator is None or not asked.operator.may("admin", None):',
        "if asked.operator is None:",
    ),
    ("reporters may close", "service/endpoints.py", "        await self.operator(request, served, scope)\n", ""),
    ("addresses in the log", "service/process.py", "access_log=False,", "access_log=True, ", ("log_config=None,", "")),
)
