"""The pages of the collector as a browser without a script would see them: who gets in, what is shown, what can be done."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from reports.html_checks import Page
from sabun.keyvalue import Study, Tally
from sabun.keyvalue.client import Report, assigned_index
from sabun.release import Release
from sabun.service import dashboard
from sabun.service.arrivals import REASONS
from sabun.service.operators import add_operator, operators, revoke_operator
from sabun.service.pages_try import inferred
from sabun.service.picture import KeyRow, RoundPicture
from sabun.service.problems import CODES
from sabun.service.session import StoreUnavailable
from sabun.service.told import days, key_rows
from sabun.telling.language import catalogue
from sabun.web.guard import HEADERS
from service.dashboards import APPS, Dashboard
from service.devices import made_up

JAVASCRIPT = Path(__file__).parents[2] / "js" / "src"
PROXY = "https://collector.example"


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Dashboard]:
    made = Dashboard(tmp_path)
    made.fill()
    yield made
    made.end()


class Visitor:
    """A browser that follows the rules: cookies by path, Origin with forms."""

    def __init__(self, board: Dashboard, token: str = "", **headers: str) -> None:
        self.board = board
        self.client = httpx.Client(base_url=board.origin, timeout=60, headers={"Accept-Language": "en", **headers})
        board.visitors.append(self.client)
        self.home = self.signed_in(token) if token else ""

    def get(self, path: str, **named: Any) -> httpx.Response:
        return self.client.get(path, **named)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        return self.client.post(path, data=fields, headers={"Origin": self.board.origin, **headers})

    def form(self, path: str, **fields: str) -> dict[str, str]:
        return {"token": token_in(self.get(path).text), **fields}

    def signed_in(self, token: str) -> str:
        response = self.post("/sign-in", self.form("/sign-in", operator=token))
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def study(self, rest: str = "") -> str:
        return f"{self.home}/{self.board.apps.task}{rest}"


def token_in(page: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


def words(response: httpx.Response) -> str:
    """The words of a page that is well formed, loads nothing and has one heading after the other."""
    page = Page(response.text)
    own = re.compile(r"<(link|form|script)>|(a|link|form|script) (href|action|src)=(/(?!/)|\?|data:,$)|an? (svg|picture) ")
    assert [problem for problem in page.problems if not own.match(problem)] == []
    assert response.text.count("<svg") == response.text.count('aria-hidden="true"><line') + response.text.count(
        'role="img" aria-label="'
    )
    assert "style=" not in response.text
    assert "<b>Video" not in response.text
    return page.text


def test_pages_for_everybody_answer_without_signing_in(board: Dashboard) -> None:
    anybody = Visitor(board)
    for path, heading in (("/", "without telling us"), ("/try", "leaves your device"), ("/sign-in", "Operator's token")):
        response = anybody.get(path)
        assert response.status_code == 200
        assert heading in words(response)
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
        assert "set-cookie" not in response.headers
        assert board.apps.task not in response.text


def test_pages_for_operators_lead_to_the_sign_in(board: Dashboard) -> None:
    anybody = Visitor(board)
    task = board.apps.task
    for path in ("/studies", f"/studies/{task}", f"/at/{'0' * 32}/studies/{task}", f"/studies/{task}/rounds/0/estimates.csv"):
        response = anybody.get(path)
        assert (response.status_code, response.headers["location"]) == (303, "/sign-in")


def test_an_operator_signs_in_and_out(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    page = operator.get(operator.home)
    assert page.status_code == 200
    assert "720" in words(page)
    assert "fewer than 500" in words(page)
    ended = operator.post(operator.home.replace("studies", "sign-out"), {"token": token_in(page.text)})
    assert (ended.status_code, ended.headers["location"]) == (303, "/")
    assert operator.get(operator.home).status_code == 303


def test_a_wrong_token_is_told_nothing_and_not_for_ever(board: Dashboard) -> None:
    anybody = Visitor(board)
    fields = anybody.form("/sign-in", operator="sabun-" + "0" * 64)
    for _ in range(30):
        assert anybody.post("/sign-in", fields).status_code == 403
    assert anybody.post("/sign-in", fields).status_code == 429
    fields["operator"] = board.tokens["admin"]
    assert anybody.post("/sign-in", fields).status_code == 303, "nobody locks out who has a right one"


@pytest.mark.parametrize("token", ["", "0" * 64, "é\udcff"])
def test_a_form_without_its_token_is_refused_and_changes_nothing(board: Dashboard, token: str) -> None:
    operator = Visitor(board, board.tokens["admin"])
    sent = {"token": token.encode("utf-8", "replace").decode()}
    assert operator.post(operator.study("/rounds/0/close"), sent).status_code == 403
    assert operator.post("/sign-in", sent | {"operator": board.tokens["admin"]}).status_code == 403
    assert operator.post("/try", sent).status_code == 403
    opened = board.store.round(board.apps, 0)
    assert opened is not None
    assert opened.state == "open"


def test_a_form_of_another_visit_or_another_origin_is_refused(board: Dashboard) -> None:
    operator, other = Visitor(board, board.tokens["admin"]), Visitor(board, board.tokens["admin"])
    close = operator.study("/rounds/0/close")
    fields = operator.form(close)
    assert operator.post(close, other.form(other.study("/rounds/0/close"))).status_code == 403
    for headers in (
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ):
        assert operator.post(close, fields, **headers).status_code == 403
    assert operator.client.post(close, data=fields).status_code == 403, "without Origin"
    opened = board.store.round(board.apps, 0)
    assert opened is not None
    assert opened.state == "open"


def test_a_visit_ends_with_its_token(board: Dashboard) -> None:
    operator, other = Visitor(board, board.tokens["admin"]), Visitor(board, board.tokens["looks"])
    revoke_operator(board.store, "admin")
    assert operator.get(operator.home).status_code == 303
    assert other.get(other.home).status_code == 200
    add_operator(board.store, "looks", scopes=["read"], served=board.apps)
    assert other.get(other.home).status_code == 303, "a renewed token asks for signing in anew"


def test_a_visit_ends_after_eight_hours(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    operator.client.cookies.jar.clear_expired_cookies = lambda: None  # type: ignore[method-assign]
    board.now += 8 * 3600 - 60
    assert operator.get(operator.home).status_code == 200
    board.now += 61
    assert operator.get(operator.home).status_code == 303


def test_an_operator_of_one_study_sees_that_one(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["looks"])
    assert "naps" not in words(operator.get(operator.home))
    assert operator.get(f"{operator.home}/{board.sleep.task}").status_code == 404
    assert "Close this round" not in words(operator.get(operator.study()))
    assert operator.get(operator.study("/rounds/0/close")).status_code == 403
    for task in ("x", "0" * 32, "%00", board.apps.task.upper()):
        assert operator.get(f"{operator.home}/{task}").status_code == 404


def test_behind_a_proxy_with_tls_the_cookie_is_bound_to_the_host(tmp_path: Path) -> None:
    board = Dashboard(tmp_path, url=PROXY)
    anybody = Visitor(board, Host="collector.example")
    fields = anybody.form("/sign-in", operator=board.tokens["admin"])
    response = anybody.post("/sign-in", fields, Origin=PROXY)
    assert response.headers["location"] == "/studies"
    assert response.headers["set-cookie"].startswith("__Host-sabun-visit=")
    assert {"Secure", "HttpOnly", "Path=/"} <= {part.strip() for part in response.headers["set-cookie"].split(";")}
    cookie = response.headers["set-cookie"].partition(";")[0]
    assert anybody.get("/studies", headers={"Cookie": cookie}).status_code == 200
    assert anybody.get("/studies", headers={"Cookie": cookie.replace("__Host-", "")}).status_code == 303
    board.end()


def test_a_study_shows_what_arrived_and_what_it_says(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    page = words(operator.get(operator.study()))
    for part in ("720", "sent again, counted once", REASONS["version"], "no sign of aiming", "What is promised to each person"):
        assert part in page
    assert "30 days after the round is closed" in page
    found = board.store.shown(board.apps, 0).estimate()
    for key, share in zip(APPS.keys, found.frequency, strict=True):
        assert re.search(rf"{re.escape(str(key))}\s+{100 * share:.0f} %", page)


def test_a_study_with_too_few_reports_shows_none_of_its_numbers(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    address = f"{operator.home}/{board.sleep.task}"
    page = words(operator.get(address))
    assert "fewer than 500 reports" in page
    assert "What arrived" not in page
    assert "20" not in re.sub(r"[0-9a-f]{32,}", "", page.partition("What is promised")[0])
    for file in ("estimates.csv", "counts.tally", "release.json", "report.html"):
        assert operator.get(f"{address}/rounds/0/{file}").status_code == 409
    assert operator.post(f"{address}/rounds/0/close", operator.form(f"{address}/rounds/0/close")).status_code == 409
    opened = board.store.round(board.sleep, 0)
    assert opened is not None
    assert opened.state == "open"


def test_the_list_of_studies_tells_no_number_of_reports_below_the_smallest_batch(board: Dashboard) -> None:
    """720 of one study are shown; what the process wrote in all would tell the 20 of the other, to whoever signs in."""
    for name in ("admin", "looks"):
        operator = Visitor(board, board.tokens[name])
        page = re.sub(r"[0-9a-f]{32,}", "", words(operator.get(operator.home)))
        assert "720" in page
        assert "740" not in page
        assert not re.search(r"\b20\b", page)


def test_aimed_reports_raise_the_alarm(board: Dashboard) -> None:
    """Some 200 reports more about one key of five, where there are about 144 about each: far beyond 1 in 1,000."""
    aimed = [report for report in made_up(APPS, 3000, seed=99) if assigned_index(APPS.terms, report[21:37], b"") == 2]
    board.send(aimed[:200])
    operator = Visitor(board, board.tokens["admin"])
    page = operator.get(operator.study())
    assert 'class="alarm" role="alert"' in page.text
    assert "somebody may be aiming" in words(page)


@pytest.mark.parametrize(
    ("order", "rising"), [("share", False), ("-share", True), ("key", True), ("-key", False), ("mean", False)]
)
def test_keys_are_sorted_as_asked(board: Dashboard, order: str, rising: bool) -> None:
    operator = Visitor(board, board.tokens["admin"])
    text = operator.get(operator.study(f"?sort={order}")).text
    assert text.count(f'aria-sort="{"ascending" if rising else "descending"}"') == 1
    keys = [
        key.replace("&lt;", "<").replace("&gt;", ">")
        for key in re.findall(r'role="rowheader" scope="row"><bdi>([^/]*)</bdi>', text)
    ]
    found = board.store.shown(board.apps, 0).estimate()
    by = {"key": dict(zip(APPS.keys, APPS.keys, strict=True)), "mean": dict(zip(APPS.keys, found.mean, strict=True))}
    rule = by.get(order.removeprefix("-"), dict(zip(APPS.keys, found.frequency, strict=True)))
    assert keys == sorted(APPS.keys, key=lambda key: rule[key], reverse=not rising)


def test_keys_without_a_number_stand_last_either_way() -> None:
    rows = tuple(
        KeyRow(key=key, reports=1, frequency=0.5, frequency_low=0.4, frequency_high=0.6, mean=mean, mean_reason=None)
        for key, mean in (("a", None), ("b", 1.0), ("c", -1.0))
    )
    shown = RoundPicture(number=0, state="open", least=1, reports=3, rows=rows)
    assert [row.key for row in key_rows(shown, (-1, 1), "mean")] == ["b", "c", "a"]
    assert [row.key for row in key_rows(shown, (-1, 1), "-mean")] == ["c", "b", "a"]


@pytest.mark.parametrize("protocol", ["rr-f", "privkvm", "pckv-ue", "pckv-grr", "set"])
def test_every_protocol_has_its_page_before_and_after_a_round(board: Dashboard, protocol: str) -> None:
    rounds = 2 if protocol == "privkvm" else 1
    study = Study(keys=["a", "b", "c"], epsilon=2, protocol=protocol, min_batch=40, rounds=rounds)
    served = board.store.register(study)
    board.send(made_up(study, 60, seed=3), served)
    operator = Visitor(board, board.tokens["admin"])
    address = f"{operator.home}/{served.task}"
    page = words(operator.get(address))
    assert "60 reports count" in page
    assert ("no spread over keys" in page) == (protocol in ("pckv-ue", "pckv-grr", "set"))
    assert ("mean" in page.partition("What people hold")[2].partition("What is promised")[0]) == (protocol != "rr-f")
    assert operator.post(f"{address}/rounds/0/close", operator.form(f"{address}/rounds/0/close")).status_code == 303
    assert "closed and signed" in words(operator.get(f"{address}?round=0"))
    if rounds == 2:
        assert "Round 2 of 2" in words(operator.get(address))
        assert "fewer than 40 reports" in words(operator.get(address))
    for odd in ("?round=9", "?round=x&sort=nothing", "?sort=-", f"?round={'9' * 5000}"):
        assert operator.get(address + odd).status_code == 200


def test_days_without_reports_are_shown_as_empty(board: Dashboard) -> None:
    board.now += 2 * 86_400
    board.send(made_up(APPS, 5, seed=10))
    operator = Visitor(board, board.tokens["admin"])
    assert re.search(r"2027-01-18\s+0", words(operator.get(operator.study())))
    assert days(RoundPicture(number=0, state="open", least=1)) is None


def test_a_clock_that_once_stood_at_1970_does_not_fill_the_page_with_bars() -> None:
    hours = ((datetime(1970, 1, 1, 5, tzinfo=UTC), 3), (datetime(2027, 1, 17, 9, tzinfo=UTC), 4))
    shown = days(RoundPicture(number=0, state="open", least=1, reports=7, by_hour=hours))
    assert shown is not None
    assert len(shown.rows) <= 400
    assert [n for _, n in shown.rows if n] == [3, 4]
    assert shown.rows[0][0] == "1970-01-01"
    assert shown.title == "Reports by 53 days"


def test_a_round_is_closed_by_form_and_its_files_can_be_had(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    before = csv.DictReader(io.StringIO(operator.get(operator.study("/rounds/0/estimates.csv")).text))
    assert [row["key"] for row in before] == list(APPS.keys)
    assert operator.get(operator.study("/rounds/0/release.json")).status_code == 409
    close = operator.study("/rounds/0/close")
    assert "720 reports count so far" in words(operator.get(close))
    done = operator.post(close, operator.form(close))
    assert (done.status_code, done.headers["location"]) == (303, operator.study("?round=0"))
    assert "closed already" in words(operator.get(close))
    page = words(operator.get(done.headers["location"]))
    assert "closed and signed on 2027-01-18" in page
    assert "on 2027-02-17; the counts stay" in page
    saved = operator.get(operator.study("/rounds/0/release.json"))
    assert saved.headers["content-disposition"].startswith('attachment; filename="sabun-')
    release = Release.from_json(saved.text)
    release.verify(board.store.keys.signing.public_key())
    assert "<h1>" in operator.get(operator.study("/rounds/0/report.html?lang=ja")).text
    tally = operator.get(operator.study("/rounds/0/counts.tally")).content
    assert Tally.from_bytes(tally, study=APPS).n == 720
    assert operator.get(operator.study("/rounds/0/other")).status_code == 404
    assert operator.get(operator.study("/rounds/1/estimates.csv")).status_code == 404


def test_a_round_is_abandoned_by_form_and_only_by_who_is_sure(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    close = f"{operator.home}/{board.sleep.task}/rounds/0/close"
    assert "fewer reports than the study shows" in words(operator.get(close))
    fields = operator.form(close, act="abandon")
    assert operator.post(close, fields).status_code == 400, "not sure"
    assert operator.post(close, {"token": fields["token"]}).status_code == 409, "too few to be closed"
    assert operator.post(close, fields | {"sure": "on"}).status_code == 303
    gone = board.store.round(board.sleep, 0)
    assert gone is not None
    assert (gone.state, gone.release) == ("purged", None)
    assert board.store.recount(board.sleep, 0).n == 0


def test_an_administrator_gives_and_ends_tokens(board: Dashboard) -> None:
    admin = Visitor(board, board.tokens["admin"])
    page = admin.home.replace("studies", "operators")
    assert "looks read" in words(admin.get(page))
    fields = admin.form(page, name="new <b>", study=board.apps.task, read="on", days="5")
    given = re.search(r"<code>(sabun-[0-9a-f]{64})</code>", admin.post(page, fields).text)
    assert given is not None
    assert given[1] not in admin.get(page).text, "it is shown once"
    visitor = Visitor(board, given[1])
    assert visitor.get(visitor.study()).status_code == 200
    assert visitor.get(visitor.study("/rounds/0/close")).status_code == 403
    assert "The token of “new <b>” ends in 5 days." in words(visitor.get(visitor.home))
    assert admin.post(page, admin.form(page, name="new <b>", study=board.apps.task, end="1")).status_code == 303
    assert visitor.get(visitor.home).status_code == 303
    for wrong in ({"name": ""}, {"days": "91"}, {"days": "x"}, {"read": None}):
        sent = {name: value for name, value in (fields | wrong).items() if value is not None}
        assert admin.post(page, sent).status_code == 400, wrong
    assert admin.post(page, fields | {"study": "0" * 32}).status_code == 403


def test_nobody_gives_more_than_they_may(board: Dashboard) -> None:
    """Who administers one study gives tokens for that one; who administers none finds no such pages."""
    one = Visitor(board, add_operator(board.store, "one", scopes=["admin"], served=board.apps))
    page = one.home.replace("studies", "operators")
    seen = words(one.get(page))
    assert "one admin" in seen
    assert "every study" not in seen
    for study in ("every", board.sleep.task):
        assert one.post(page, one.form(page, name="x", study=study, read="on")).status_code == 403
    assert one.post(page, one.form(page, name="admin", study="every", end="1")).status_code == 403
    assert one.get(f"{one.home}/new").status_code == 403
    looks = Visitor(board, board.tokens["looks"])
    token = token_in(looks.get(looks.home).text)
    for path in (page.replace(one.home[:-8], looks.home[:-8]), f"{looks.home}/new"):
        assert looks.get(path).status_code == 403
        fields = {"token": token, "name": "x", "study": board.apps.task, "admin": "on", "keys": "a\nb", "epsilon": "1"}
        assert looks.post(path, fields).status_code == 403
    assert looks.post(looks.study("/tickets"), {"token": token, "count": "5"}).status_code == 403
    assert "Operators" not in words(looks.get(looks.home))
    assert {one.name for one in operators(board.store)} == {"admin", "looks", "one"}
    assert len(board.store.all_served()) == 2


def test_a_study_is_made_and_its_tickets_issued_by_form(board: Dashboard) -> None:
    admin = Visitor(board, board.tokens["admin"])
    page = f"{admin.home}/new"
    assert "one in each line" in words(admin.get(page))
    fields = admin.form(page, keys="Tea\r\n\r\nCoffee\r\n", epsilon="1.5", least="0", most="10", min_batch="60", tickets="on")
    fields |= {"rounds": "2", "not_before": "", "not_after": "2027-02-01"}
    for wrong in ({"epsilon": "much"}, {"keys": ""}, {"min_batch": "0"}, {"not_after": "soon"}, {"least": "11"}):
        assert admin.post(page, fields | wrong).status_code == 400, wrong
    assert len(board.store.all_served()) == 2
    assert admin.post(page, fields | {"token": "0" * 64}).status_code == 403
    made = admin.post(page, fields)
    [served] = [one for one in board.store.all_served() if one.tickets]
    assert (made.status_code, made.headers["location"]) == (303, f"{admin.home}/{served.task}")
    terms = served.study.terms
    assert (terms.keys, float(terms.epsilon), terms.value_range, terms.min_batch) == (("Tea", "Coffee"), 1.5, (0, 10), 60)
    assert (terms.rounds, str(terms.not_after)) == (2, "2027-02-01")
    study = made.headers["location"]
    issued = admin.post(f"{study}/tickets", admin.form(study, count="7"))
    assert issued.headers["content-disposition"].endswith('-tickets.txt"')
    assert len(set(issued.text.split())) == 7
    assert "0 enrolled with one of 7 tickets" in words(admin.get(study))
    for count in ("0", "10001", "x", ""):
        assert admin.post(f"{study}/tickets", admin.form(study, count=count)).status_code == 400
    assert admin.post(admin.study("/tickets"), admin.form(study, count="7")).status_code == 400, "it takes none"


def test_what_waits_for_an_operator_is_said(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    assert "To do Nothing." in words(operator.get(operator.home))
    board.now += 3 * 86_400
    again = Visitor(board, board.tokens["admin"])
    page = words(again.get(again.home))
    assert "“Messages”, “Maps”, “<b>Video” and 2 more has had no report for two days" in page
    assert page.count("two days") == 1, "a round below its smallest batch tells nothing"
    board.now += 80 * 86_400
    late = Visitor(board, board.tokens["looks"])
    assert "The token of “looks” ends in" in words(late.get(late.home))
    assert "admin" not in words(late.get(late.home)), "others' tokens are none of theirs"


def test_pages_speak_japanese_when_asked_and_go_on_so(board: Dashboard) -> None:
    operator = Visitor(board, board.tokens["admin"])
    first = operator.get(operator.home, params={"lang": "ja"})
    assert '<html lang="ja">' in first.text
    page = operator.get(operator.study())
    assert '<html lang="ja">' in page.text
    text = words(page).partition("この調査の条件")[0]
    left = re.sub(r"Messages|Maps|<b>Video|Music|Games|Sabun|UTC|CSV|HTML|ID|English", "", text)
    assert re.findall(r"[A-Za-z]{3,}", left) == []
    for path in ("/", "/try", "/sign-in"):
        left = re.sub(r"Sabun|HTTP|JavaScript|ID|English|sabun keyvalue operator add.*read", "", words(operator.get(path)))
        assert re.findall(r"[A-Za-z]{3,}", left) == []


def test_every_reason_and_every_problem_of_a_page_has_its_japanese() -> None:
    on_pages = [
        *("not-found", "unknown-study", "unknown-round", "forbidden", "stale-form", "no-report", "too-few", "no-release"),
        *("too-large", "slow-body", "disconnected", "too-often", "internal", "busy", "unavailable"),
        *("cannot-close", "encoding"),
    ]
    wanted = [*REASONS.values(), *(CODES[code][1] for code in on_pages)]
    assert [text for text in wanted if text not in catalogue("ja")] == []


@pytest.mark.parametrize(("error", "status"), [(StoreUnavailable("SECRET"), 503), (RuntimeError("SECRET"), 500)])
def test_what_goes_wrong_is_a_page_that_tells_nothing_of_it(
    board: Dashboard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, status: int
) -> None:
    operator = Visitor(board, board.tokens["admin"])

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("sabun.service.pages_study.study_picture", broken)
    response = operator.get(operator.study())
    assert response.status_code == status
    assert "This did not work" in words(response)
    assert "SECRET" not in response.text + caplog.text


def test_a_body_that_is_too_large_or_odd_breaks_nothing(board: Dashboard) -> None:
    anybody = Visitor(board)
    origin = {"Origin": board.origin}
    assert anybody.client.post("/sign-in", content=b"x" * 100_000, headers=origin).status_code == 413
    for body in (b"\xff\xfe", b"=&=&=", b"&".join([b"a=1"] * 500), b"token=%00%ff"):
        assert anybody.client.post("/sign-in", content=body, headers=origin).status_code in (400, 403)


# Try it


def reported(page: str) -> bytes:
    return bytes.fromhex("".join(re.findall(r"<code>([0-9a-f]+)</code>", page)))


def test_without_a_script_the_server_plays_the_device(board: Dashboard) -> None:
    anybody = Visitor(board)
    first = anybody.get("/try")
    assert "This server plays your device" in words(first)
    fields = anybody.form("/try", seed="5") | {"key-Video": "95", "key-Maps": "<script>", "key-other": "1"}
    page = anybody.post("/try", fields)
    assert page.status_code == 200
    assert "38 bytes" in words(page)
    report = reported(page.text)
    assert len(report) == 38
    more = re.findall(r'name="(report|people|seed)" value="([^"]*)"', page.text.partition('id="more"')[2])
    assert dict(more) == {"report": report.hex(), "people": "2000", "seed": "5"}
    again = anybody.post("/try", fields | dict(more))
    assert reported(again.text) == report, "the report that was sent, not another one"
    assert len(re.findall(r"to \d+", words(again).partition("5. What")[2])) >= 2


def test_visitors_who_play_keep_nobody_else_waiting(board: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*_: object) -> list[object]:
        begun.set()
        assert goes_on.wait(60)
        return []

    monkeypatch.setattr("sabun.service.pages_try._crowd", slow)
    visitors = [Visitor(board) for _ in range(6)]
    fields = visitors[0].form("/try")
    with ThreadPoolExecutor(6) as several:
        playing = [several.submit(visitor.post, "/try", fields) for visitor in visitors]
        try:
            assert begun.wait(60)
            assert Visitor(board).get("/health").status_code == 200
            assert not any(one.done() for one in playing)
        finally:
            goes_on.set()
    assert {one.result().status_code for one in playing} == {200}


@pytest.mark.parametrize("report", ["00" * 38, "x", "0", "ff" * 101, "01" * 37])
def test_what_is_no_report_is_refused(board: Dashboard, report: str) -> None:
    anybody = Visitor(board)
    assert anybody.post("/try", anybody.form("/try", report=report)).status_code == 400


@pytest.mark.parametrize("epsilon", ["0.5", "1.5", "3"])
@pytest.mark.parametrize("symbol", [0, 1, 2])
def test_what_can_be_inferred_is_bayes_rule_and_within_the_promise(epsilon: str, symbol: int) -> None:
    study = Study(keys=["a", "b"], epsilon=epsilon, protocol="kv3")
    table = study.terms.table
    found = inferred(study, Report(round=0, report_id=bytes(16), index=None, symbol=symbol))
    assert sum(found.values()) == 1
    likely = max(found, key=lambda state: found[state])
    assert likely == symbol
    ratio = max(found.values()) / min(found.values())
    assert float(ratio) <= 2.718281828459046 ** float(study.terms.certified) * (1 + 1e-12)
    if symbol:
        assert found[symbol] / found[3 - symbol] == type(ratio)(table.keep, table.opposite)


def test_numbers_of_the_study_s_terms_travel_with_the_page_as_they_are(board: Dashboard) -> None:
    found = re.search(r'data-terms="([^"]*)"', Visitor(board).get("/try").text)
    assert found is not None
    assert json.loads(found[1].replace("&#34;", '"'))


@pytest.mark.skipif(not (JAVASCRIPT / "index.js").exists(), reason="the JavaScript client is not part of this archive")
def test_the_browser_is_given_the_very_client_of_the_project() -> None:
    """The wheel carries a copy: `cp js/src/*.js src/sabun/service/assets/client/`, but for what is Node's."""
    served = Path(dashboard.__file__).parent / "assets" / "client"
    own = {file.name: file.read_bytes() for file in JAVASCRIPT.glob("*.js") if file.name != "node.js"}
    assert {file.name: file.read_bytes() for file in served.iterdir()} == own
