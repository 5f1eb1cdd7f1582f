"""The API as clients see it: the contract, problems with codes, limits, and nothing that breaks it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from sabun.keyvalue import Study, Tally
from sabun.release import Release
from sabun.service.application import application
from sabun.service.arrivals import REASONS
from sabun.service.bodies import Intake
from sabun.service.closing import close_round
from sabun.service.endpoints import Collecting
from sabun.service.enrolment import issue_tickets
from sabun.service.limits import RateLimit
from sabun.service.operators import add_operator
from sabun.service.problems import CODES
from sabun.service.process import listening, web_server
from sabun.service.report_store import Served, Store
from sabun.service.round_keys import RoundKeys
from sabun.service.session import StoreUnavailable
from sabun.service.settings import Settings
from sabun.service.sqlite_session import SqliteDatabase
from sabun.service.writer import Busy, Writer
from service.devices import KV3, made_up
from service.test_arrivals import mutated
from service.test_report_store import agrees

TWO = Study(keys=["a", "b", "c"], epsilon=2, protocol="privkvm", rounds=2, min_batch=30)


class Here:
    """A server in this process with one open study, one by tickets, and tokens."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(SqliteDatabase(folder / "s"), RoundKeys(folder / "keys"))
        self.writer = Writer(self.store)
        self._ends: list[Any] = []
        self._clients: list[httpx.Client] = []
        self.open, self.closed = self.store.register(KV3), self.store.register(TWO, tickets=True)
        self.tokens = {
            scope: add_operator(self.store, scope, scopes=[scope], served=self.open) for scope in ("read", "close")
        } | {"admin": add_operator(self.store, "admin", scopes=["admin"])}
        # A clock that stands: otherwise a minute may end between two attempts.
        attempts = RateLimit(most=30, seconds=60, clock=lambda: 0.0)
        self.collecting = Collecting(store=self.store, writer=self.writer, attempts=attempts)
        self.client = self.served_by(self.collecting)

    def served_by(self, collecting: Collecting) -> httpx.Client:
        """A client of a server on a port of this machine, in a thread."""
        made = listening("127.0.0.1", 0, shared=False)
        server = web_server(application(collecting), Settings(database="", keys=""))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [made]})
        thread.start()
        self._ends.append((server, thread))
        self._clients.append(httpx.Client(base_url=f"http://127.0.0.1:{made.getsockname()[1]}", timeout=60))
        return self._clients[-1]

    def path(self, served: Served, *rest: object) -> str:
        return "/".join(["", "v1", "studies", served.task, *map(str, rest)])

    def send(self, body: bytes, served: Served | None = None, number: int = 0, **headers: str) -> Any:
        return self.client.post(self.path(served or self.open, "rounds", number, "reports"), content=body, headers=headers)

    def asked(self, scope: str, *rest: object, method: str = "GET", served: Served | None = None, **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens.get(scope, scope)}"}
        return self.client.request(method, self.path(served or self.open, *rest), headers=headers, **named)

    def end(self) -> None:
        for client in self._clients:
            client.close()
        for server, thread in self._ends:
            server.should_exit = True
            thread.join()
        self.writer.end()
        self.store.database.close()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Here]:
    made = Here(tmp_path)
    yield made
    made.end()


def is_problem(response: Any, code: str) -> None:
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert (said["code"], said["status"]) == (code, response.status_code)
    assert response.status_code == CODES[code][0]


def test_the_front_page_answers_without_login(here: Here) -> None:
    response = here.client.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")


def test_a_study_is_told_letter_for_letter(here: Here) -> None:
    for name in (here.open.task, KV3.task_id):
        response = here.client.get(f"/v1/studies/{name}")
        assert Study.from_json(response.text).task_id == KV3.task_id
        assert response.headers["access-control-allow-origin"] == "*"
    for name in ("0" * 32, here.open.task + "0" * 32, "x", here.open.task.upper(), "%00"):
        is_problem(here.client.get(f"/v1/studies/{name}"), "unknown-study")


def test_reports_come_as_bytes_or_as_json_and_count_once(here: Here) -> None:
    reports = made_up(KV3, 50, seed=1)
    first = here.send(b"".join(reports[:30]), **{"Content-Type": "application/vnd.sabun.reports"})
    assert first.json() == {"accepted": 30, "duplicate": 0, "rejected": []}
    listed = {"reports": [base64.b64encode(report).decode() for report in reports[20:]] + ["!", ""]}
    second = here.client.post(here.path(here.open, "rounds", 0, "reports"), json=listed)
    refused = [{"index": 30, "reason": "length"}, {"index": 31, "reason": "length"}]
    assert second.json() == {"accepted": 20, "duplicate": 10, "rejected": refused}
    agrees(here.store, here.open, reports)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"", "", "empty"),
        (b'{"reports": []}', "application/json", "empty"),
        (b'{"reports": "x"}', "application/json", "bad-json"),
        (b'{"reports": [], "more": 1}', "application/json", "bad-json"),
        (b"[" * 100_000, "application/json", "bad-json"),
        (b'{"reports": ["\xff"]}', "application/json", "bad-json"),
        (b"x" * 38, "text/plain;charset=UTF-8", "media-type"),
        (b"x" * (1 << 21), "", "too-large"),
        (b"x" * 38 * 10_001, "", "too-many"),
    ],
)
def test_a_bad_request_is_refused_with_its_code_and_changes_nothing(here: Here, body: bytes, kind: str, code: str) -> None:
    is_problem(here.send(body, **({"Content-Type": kind} if kind else {})), code)
    assert list(here.store.outcomes(here.open)) == []


def test_a_body_that_announces_nothing_is_counted_as_it_comes_and_cut_off(here: Here) -> None:
    """The rest is not read: the answer comes while the sender still sends, and the line is closed."""
    with socket.create_connection(("127.0.0.1", here.client.base_url.port), timeout=20) as line:
        path = here.path(here.open, "rounds", 0, "reports")
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            for _ in range(2000):
                line.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            pytest.fail("the server read on")
        with contextlib.suppress(ConnectionResetError):
            assert b"too-large" in line.recv(10_000)


def _said_to(here: Here, *pieces: bytes) -> bytes:
    """All that the server answers to some bytes until it hangs up."""
    with socket.create_connection(("127.0.0.1", here.client.base_url.port), timeout=20) as line:
        found = b""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                line.sendall(piece)
            while piece := line.recv(10_000):
                found += piece
    return found


@pytest.mark.parametrize(
    "head",
    [
        [b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 34_000 + b"\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: x\r\n" * 9000 + b"\r\n"],
        [b"GET / HTTP/1.1\r\nHost: x\r\nA: ", *[b"x" * 1000] * 400],
        [b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: " + b"x" * 34_000 + b"\r\n\r\n"],
    ],
    ids=["address", "a long header", "many headers", "a header without end", "trailers"],
)
def test_what_a_request_announces_is_bounded(here: Here, head: list[bytes], caplog: pytest.LogCaptureFixture) -> None:
    said = _said_to(here, *head)
    assert b" 431 " in said or len(head) > 1  # who sends on may only hear that the line is closed
    assert here.client.get("/health", headers={"A": "x" * 30_000}).status_code == 200
    assert caplog.text == ""


def test_what_is_no_request_costs_no_line_in_the_log(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    answer = _said_to(here, b"\x16\x03\x01 nonsense\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"bad-request"' in answer
    assert caplog.text == ""


@pytest.mark.parametrize("n", ["9" * 5000, "9" * 11, "-1", "x"])
def test_what_is_no_number_of_a_round_is_not_found(here: Here, n: str) -> None:
    assert here.client.get(here.path(here.open, "rounds", n)).status_code == 404
    is_problem(here.client.post(here.path(here.open, "rounds", n, "reports"), content=b"x"), "not-found")
    is_problem(here.client.get(here.path(here.open, "rounds", "9" * 10)), "unknown-round")


def test_an_address_with_one_slash_more_is_not_found(here: Here) -> None:
    is_problem(here.client.get(here.path(here.open, "rounds", 0) + "/"), "not-found")


def test_a_packed_body_is_refused(here: Here) -> None:
    report = made_up(KV3, 1, seed=5)[0]
    is_problem(here.send(report, **{"Content-Encoding": "gzip"}), "encoding")
    assert here.send(report, **{"Content-Encoding": "identity"}).json()["accepted"] == 1


def test_a_round_that_cannot_be_signed_is_a_problem_and_stays_open(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    (here.store.keys.folder / "signing.pem").write_text("no key")
    here.send(b"".join(made_up(KV3, 60, seed=4)))
    is_problem(here.asked("close", "rounds", 0, "close", method="POST"), "cannot-close")
    assert here.client.get(here.path(here.open, "rounds", 0)).json()["state"] == "open"
    assert "Ed25519" in caplog.text


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("wanted", ["h2c", "websocket"])
def test_a_client_that_would_rather_speak_another_protocol_is_answered_in_this_one(
    here: Here, chunked: bool, wanted: str
) -> None:
    reports = b"".join(made_up(KV3, 5, seed=6))
    asking = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": wanted}
    for body in (reports, iter([reports[:50], reports[50:]])) if chunked else (reports, reports):
        path = here.path(here.open, "rounds", 0, "reports")
        answer = here.client.post(path, content=body, headers=asking).json()
        assert answer["accepted"] + answer["duplicate"] == 5
    assert here.client.get("/health", headers=asking).json()["status"] == "ok"
    path = here.path(here.open, "rounds", 0, "reports").encode()
    head = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: %d\r\n\r\n"
    twice = head % len(reports) + reports + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert _said_to(here, twice[:70], twice[70:300], twice[300:]).count(b"HTTP/1.1 200") == 2


def test_many_who_would_speak_another_protocol_at_once_are_answered(here: Here) -> None:
    many = b"GET /openapi HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" * 1100
    last = b"GET /openapi HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert _said_to(here, many + last).count(b"HTTP/1.1 404") == 1101


def test_too_much_at_once_is_sent_away_and_may_come_again(tmp_path: Path) -> None:
    made = Here(tmp_path)
    tight = Collecting(store=made.store, writer=made.writer, intake=Intake(most_together=500))
    client = made.served_by(tight)
    path = made.path(made.open, "rounds", 0, "reports")
    response = client.post(path, content=b"".join(made_up(KV3, 20, seed=2)))
    is_problem(response, "busy")
    assert int(response.headers["Retry-After"]) >= 1
    assert client.post(path, content=b"".join(made_up(KV3, 5, seed=2))).json()["accepted"] == 5
    made.end()


@pytest.mark.parametrize(("error", "code"), [(Busy(), "busy"), (StoreUnavailable("gone"), "unavailable")])
def test_a_store_that_cannot_write_says_when_to_come_again(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(Writer, "add", refuse)
    response = here.send(b"".join(made_up(KV3, 2, seed=3)))
    is_problem(response, code)
    assert int(response.headers["Retry-After"]) >= 1


def test_an_unexpected_error_tells_nothing_of_itself(
    here: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("SECRET")

    monkeypatch.setattr("sabun.service.endpoints.read_reports", broken)
    response = here.send(b"".join(made_up(KV3, 2, seed=3)))
    is_problem(response, "internal")
    assert "SECRET" not in response.text + caplog.text


def test_enrolment_goes_over_the_wire(here: Here) -> None:
    [ticket] = issue_tickets(here.store, here.closed, 1)
    secret = "11" * 32
    begin = {"ticket": ticket, "promise": hashlib.sha256(bytes.fromhex(secret)).hexdigest()}
    path = here.path(here.closed, "enrolment")
    first, again = here.client.post(path, json=begin), here.client.post(path, json=begin)
    assert first.json() == again.json()
    assert len(first.json()["nonce"]) == 64
    is_problem(here.client.post(path, json=begin | {"promise": "22" * 32}), "other-promise")
    is_problem(here.client.post(path, json=begin | {"ticket": "33" * 16}), "unknown-ticket")
    is_problem(here.client.post(path, json=begin | {"ticket": "zz" * 16}), "bad-json")
    is_problem(here.client.post(here.path(here.open, "enrolment"), json=begin), "no-enrolment")
    reveal = here.client.post(path + "/reveal", json={"ticket": ticket, "secret": secret})
    assert reveal.json() == here.client.post(path + "/reveal", json={"ticket": ticket, "secret": secret}).json()
    credential = bytes.fromhex(reveal.json()["credential"])
    from sabun.keyvalue.client import Diary

    report = TWO.client(credential=credential, diary=Diary.in_memory()).report({"a": 1})
    assert here.send(report, here.closed).json()["accepted"] == 1


def test_enrolment_begins_where_another_process_changed_the_rule(here: Here) -> None:
    asked = {"ticket": "00" * 16, "promise": "00" * 32}
    is_problem(here.client.post(here.path(here.open, "enrolment"), json=asked), "no-enrolment")
    with here.store.database.change() as session:
        session.rows("UPDATE study SET enrolment = 'tickets'")
    is_problem(here.client.post(here.path(here.open, "enrolment"), json=asked), "unknown-ticket")


def test_privkvm_over_the_wire_with_devices_that_read_the_feedback(here: Here) -> None:
    from sabun.keyvalue.client import Diary, report_id

    devices = [TWO.client(credential=bytes([i]) * 16, diary=Diary.in_memory()) for i in range(40)]
    with here.store.database.change() as session:
        for i in range(40):
            session.rows("INSERT INTO credential VALUES (?, ?)", here.closed.number, report_id(TWO.terms, bytes([i]) * 16))
    status = here.client.get(here.path(here.closed, "rounds", 1)).json()
    assert (status["state"], status["feedback"]) == ("waiting", None)
    assert here.send(b"".join(one.report({"a": 0.5}) for one in devices), here.closed).json()["accepted"] == 40
    is_problem(here.asked("close", "rounds", 0, "close", method="POST", served=here.closed), "forbidden")
    assert here.asked("admin", "rounds", 0, "close", method="POST", served=here.closed).json()["state"] == "frozen"
    status = here.client.get(here.path(here.closed, "rounds", 1)).json()
    means = dict(zip(TWO.keys, status["feedback"], strict=True))
    assert status["state"] == "open"
    second = b"".join(one.report({"a": 0.5}, round=1, means=means) for one in devices)
    assert here.send(second, here.closed, 1).json()["accepted"] == 40
    found = here.asked("admin", "rounds", 1, "estimates", served=here.closed).json()
    assert found["method"] == "ye"
    assert len(found["rows"]["mean"]) == 3


def test_operators_see_estimates_tally_and_release_of_their_study(here: Here) -> None:
    reports = made_up(KV3, 60, seed=4)
    here.send(b"".join(reports))
    expected = KV3.tally()
    expected.add_reports(reports)
    assert here.asked("read", "rounds", 0, "estimates").json() == json.loads(json.dumps(expected.estimate().to_dict()))
    assert Tally.from_bytes(here.asked("read", "rounds", 0, "tally").content, study=KV3) == expected
    is_problem(here.asked("read", "rounds", 0, "release"), "no-release")
    is_problem(here.asked("read", "rounds", 0, "close", method="POST"), "forbidden")
    assert here.asked("close", "rounds", 0, "close", method="POST").json() == {
        "round": 0,
        "state": "frozen",
        "released": True,
    }
    release = Release.from_json(here.asked("admin", "rounds", 0, "release").content)
    assert release.verify(here.store.keys.signing.public_key()).trusted
    late = here.send(b"".join(reports[:2])).json()["rejected"]
    assert late == [{"index": 0, "reason": "late"}, {"index": 1, "reason": "late"}]


def test_nothing_is_shown_below_the_minimum_batch(here: Here) -> None:
    for what in ("estimates", "tally"):
        is_problem(here.asked("admin", "rounds", 0, what, served=here.closed), "too-few")
    is_problem(here.asked("admin", "rounds", 0, "close", method="POST", served=here.closed), "too-few")
    is_problem(here.asked("admin", "rounds", 1, "estimates", served=here.closed), "not-open")
    is_problem(here.asked("admin", "rounds", 2, "estimates", served=here.closed), "unknown-round")
    closed = here.asked("admin", "rounds", 0, "close", method="POST", served=here.closed, json={"abandon": True})
    assert closed.json() == {"round": 0, "state": "purged", "released": False}


def test_who_guesses_tokens_is_slowed_down(here: Here) -> None:
    codes = [here.asked("sabun-guess", "rounds", 0, "estimates").status_code for _ in range(40)]
    assert codes == [401] * 30 + [429] * 10
    is_problem(here.asked("read", "rounds", 0, "release"), "no-release")  # nobody locks out who has a token


def test_reporters_cannot_do_what_operators_do(here: Here) -> None:
    for method, what in (("GET", "estimates"), ("GET", "tally"), ("GET", "release"), ("POST", "close")):
        response = here.client.request(method, here.path(here.open, "rounds", 0, what))
        is_problem(response, "unauthorised")
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert "access-control-allow-origin" not in response.headers


def test_metrics_tell_nothing_of_a_round_below_the_minimum_batch(here: Here) -> None:
    served = here.store.register(Study(keys=["a", "b"], epsilon=1, protocol="kv3", min_batch=20))
    reports = made_up(served.study, 20, seed=3)
    for start, told in ((0, False), (19, True)):
        here.send(b"".join(reports[start : start + 19]) + b"cut", served)
        text = here.client.get("/metrics").text
        assert ('sabun_reports_total{outcome="accepted"} 20' in text) is told
        assert ("sabun_reports_total{outcome=" in text) is told


def test_health_and_metrics(here: Here) -> None:
    here.send(b"".join([*made_up(KV3, 7, seed=5), b"?"]))
    assert here.client.get("/health").json()["status"] == "ok"
    text = here.client.get("/metrics").text
    assert 'sabun_reports_total{outcome="accepted"} 7' in text
    assert 'sabun_reports_total{outcome="length"} 1' in text
    assert all(here.open.task not in line for line in text.splitlines())
    here.writer.end()
    is_problem(here.client.get("/health"), "unavailable")


def test_what_is_unknown_is_a_problem_too(here: Here) -> None:
    is_problem(here.client.get("/v2/x"), "not-found")
    is_problem(here.client.get(here.path(here.open, "rounds", "x")), "not-found")
    is_problem(here.client.get(here.path(here.open, "rounds", 10**9)), "unknown-round")
    response = here.client.put(here.path(here.open))
    is_problem(response, "not-allowed")
    assert "GET" in response.headers["allow"]


def test_a_page_of_any_origin_may_report(here: Here) -> None:
    path = here.path(here.open, "rounds", 0, "reports")
    preflight = here.client.options(path, headers={"Origin": "https://a.example", "Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in preflight.headers
    assert "access-control-allow-origin" not in here.client.options(here.path(here.open, "rounds", 0, "close")).headers


def test_every_route_is_described_and_every_code_is_known(here: Here) -> None:
    described = here.client.get("/openapi.json").json()
    assert set(described["paths"]) >= {"/health", "/v1/studies/{task}", "/v1/studies/{task}/rounds/{n}/reports"}
    assert all(code in described["info"]["description"] for code in REASONS)
    statuses = {status for path in described["paths"].values() for one in path.values() for status in one["responses"]}
    assert statuses <= {"200", *(str(status) for status, _ in CODES.values())}


@pytest.mark.parametrize("rounds", [600, pytest.param(2000, marks=pytest.mark.long)])
def test_fuzzed_bodies_never_break_the_server_and_change_only_outcomes(here: Here, rounds: int) -> None:
    accepted = b"".join(made_up(KV3, 5, seed=6))
    here.send(accepted)
    before = here.store.tally(here.open, 0)
    fuzz(here, rounds=rounds, seed=1)
    assert here.store.tally(here.open, 0) == before
    agrees(here.store, here.open, made_up(KV3, 5, seed=6))


def fuzz(here: Here, *, rounds: int, seed: int) -> None:
    """Bodies that must not count: damaged reports, noise, JSON that is none; only 200 and 4xx may come back."""
    rng = np.random.default_rng(seed)
    pool = [report for report in mutated(KV3, 4000, seed=seed) if _refused(report)]
    kinds = [
        "",
        "application/json",
        "application/vnd.sabun.reports",
        "application/octet-stream",
        "text/plain",
        "application/json; x",
    ]
    requests = []
    for _ in range(rounds):
        kind = kinds[rng.integers(0, len(kinds))]
        some = [pool[place] for place in rng.integers(0, len(pool), rng.integers(0, 5))]
        requests.append((_body(rng, some, kind), {"Content-Type": kind} if kind else {}))

    def answered(request: tuple[bytes, dict[str, str]]) -> None:
        response = here.send(request[0], **request[1])
        assert response.status_code in (200, 400, 413, 415), response.text
        assert response.status_code != 200 or response.json()["accepted"] == 0

    with ThreadPoolExecutor(16) as pool_of_senders:  # together: the server writes what waits in one change
        for _ in pool_of_senders.map(answered, requests):
            pass


def _refused(report: bytes) -> bool:
    from sabun.service.arrivals import read_reports

    return not read_reports(KV3, 0, [report]).ids


def _body(rng: np.random.Generator, some: list[bytes], kind: str) -> bytes:
    if "json" not in kind:
        # Padded to whole reports: two damaged ones must not make a good one between them.
        return b"".join(report.ljust(38, b"?")[:38] if _refused(report.ljust(38, b"?")[:38]) else b"?" * 38 for report in some)
    text = json.dumps({"reports": [base64.b64encode(report).decode() for report in some]}).encode()
    if rng.integers(0, 2):
        content = bytearray(text)
        for _ in range(rng.integers(1, 4)):
            content[rng.integers(0, len(content))] = rng.integers(0, 256)
        return bytes(content) if b"AAAA" not in content else text[: rng.integers(0, len(text))]
    return text


def test_the_description_keeps_its_word(here: Here) -> None:
    """Requests made up from the description itself are answered as it says."""
    checks = [content_type_conformance, response_schema_conformance, status_code_conformance, unsupported_method]
    schema = schemathesis.openapi.from_url(f"{here.client.base_url}/openapi.json")
    for operation in schema.get_all_operations():
        found = operation.ok()

        @given(case=found.as_strategy())
        @settings(max_examples=15, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def holds(case: Any) -> None:
            response = case.call()
            assert response.status_code < 500, response.text
            case.validate_response(response, checks=checks)

        holds()


def test_a_round_closed_by_another_process_is_seen(here: Here) -> None:
    here.send(b"".join(made_up(KV3, 40, seed=7)))
    close_round(here.store, here.open, 0)
    assert here.client.get(here.path(here.open, "rounds", 0)).json()["state"] == "frozen"
    assert here.send(made_up(KV3, 1, seed=8)[0]).json()["rejected"] == [{"index": 0, "reason": "late"}]
