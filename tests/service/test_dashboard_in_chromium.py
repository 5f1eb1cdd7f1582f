"""The pages in a real Chromium: keyboard alone, foreign pages, a phone, the dark, Japanese, with and without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from service.dashboards import APPS, Dashboard
from service.devices import made_up
from web.browsers import CHROMIUM, NAMELESS, PATIENCE, elsewhere, launched, reach, tab

playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright on this machine")
expect = playwright.expect
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    made = Dashboard(tmp_path_factory.mktemp("board"))
    made.fill()
    yield made
    made.end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def sign_in(page: Any, board: Dashboard, token: str = "admin") -> None:
    page.goto(f"{board.origin}/sign-in")
    page.fill("#operator", board.tokens[token])
    page.press("#operator", "Enter")
    page.wait_for_url("**/studies")


def test_an_operator_needs_no_mouse(chromium: Any, board: Dashboard) -> None:
    with tab(chromium) as page:
        page.goto(board.origin)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0, "the way past the places is seen"
        reach(page, "a[href='/sign-in']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#operator")
        page.keyboard.type(board.tokens["admin"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/studies")
        reach(page, "tbody a")
        page.keyboard.press("Enter")
        page.wait_for_selector("#keys")
        reach(page, "th a[href*='sort=key']")
        page.keyboard.press("Enter")
        page.wait_for_selector("th[aria-sort='ascending']")
        reach(page, "summary")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.parentElement.open")
        reach(page, "a[href$='/close']")
        page.keyboard.press("Enter")
        page.wait_for_selector("form[action$='/close'] button")
        reach(page, "header button")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{board.origin}/")


def test_every_field_and_every_button_has_a_name(chromium: Any, board: Dashboard) -> None:
    with tab(chromium) as page:
        sign_in(page, board)
        addresses = [
            f"{board.origin}/",
            f"{board.origin}/try",
            f"{board.origin}/sign-in",
            page.url,
            f"{page.url}/{board.apps.task}",
            f"{page.url}/{board.apps.task}/rounds/0/close",
            f"{page.url}/new",
            page.url.replace("/studies", "/operators"),
        ]
        for address in addresses:
            page.goto(address)
            assert page.evaluate(NAMELESS) == []
            assert page.evaluate("document.querySelectorAll('main').length") == 1


@pytest.mark.parametrize(("scheme", "lang"), [("light", "en"), ("dark", "ja")])
def test_a_phone_shows_everything_without_scrolling_sideways(chromium: Any, board: Dashboard, scheme: str, lang: str) -> None:
    with tab(chromium, viewport={"width": 390, "height": 844}, color_scheme=scheme, locale=lang) as page:
        sign_in(page, board)
        studies = page.url
        addresses = [
            *(f"{board.origin}{path}" for path in ("/", "/sign-in", "/try")),
            *(
                f"{studies}{path}"
                for path in ("", "/new", f"/{board.apps.task}", f"/{board.sleep.task}", f"/{board.apps.task}/rounds/0/close")
            ),
            studies.replace("/studies", "/operators"),
        ]
        for address in addresses:
            page.goto(address)
            page.eval_on_selector_all("details", "folds => folds.forEach((fold) => (fold.open = true))")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
            assert page.evaluate("document.documentElement.lang") == lang
            ground = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert (sum(map(int, ground[:3])) < 200) == (scheme == "dark")
        page.goto(f"{board.origin}/try")
        page.fill("#key-1", "30")
        page.click("#hold button")
        page.wait_for_selector("#crowd")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_form_token_that_is_not_the_page_s_is_refused(chromium: Any, board: Dashboard) -> None:
    context = chromium.new_context()
    page = context.new_page()
    sign_in(page, board)
    page.goto(f"{page.url}/{board.apps.task}/rounds/0/close")
    page.eval_on_selector("main [name=token]", "field => (field.value = '0'.repeat(64))")
    with page.expect_navigation() as answer:
        page.click("main form button")
    assert answer.value.status == 403
    context.close()
    opened = board.store.round(board.apps, 0)
    assert opened is not None
    assert opened.state == "open"


ELSEWHERE = """<!doctype html><title>elsewhere</title><iframe src="{there}/sign-in"></iframe>
<form method="post" action="{there}{close}"><input name="token" value="{token}"><button>win a prize</button></form>"""


def test_a_page_from_elsewhere_gets_nothing_and_changes_nothing(chromium: Any, board: Dashboard) -> None:
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    sign_in(page, board)
    close = page.url.removeprefix(board.origin) + f"/{board.apps.task}/rounds/0/close"
    page.goto(board.origin + close)
    token = page.get_attribute("main [name=token]", "value")
    with elsewhere(ELSEWHERE.format(there=board.origin, close=close, token=token)) as (address, cookies):
        framed: list[int] = []
        page.on("response", lambda answer: framed.append(answer.status) if answer.url.endswith("/sign-in") else None)
        page.goto(f"{address}/studies")
        assert framed in ([403], [])
        reading = f"fetch('{board.origin}/', {{mode: 'no-cors'}}).then((answer) => answer.text(), () => '')"
        assert page.evaluate(reading) == ""
        with page.expect_navigation() as answer:
            page.click("button")
        assert answer.value.status == 403
        assert not any("sabun-visit" in cookie for cookie in cookies)
    opened = board.store.round(board.apps, 0)
    assert opened is not None
    assert opened.state == "open"
    page.goto(board.origin + close.removesuffix(f"/{board.apps.task}/rounds/0/close"))
    assert page.url.endswith("/studies"), "the operator is still signed in"
    context.close()


def test_a_study_moves_by_itself_and_can_be_stopped(chromium: Any, board: Dashboard) -> None:
    with tab(chromium) as page:
        sign_in(page, board)
        page.goto(f"{page.url}/{board.apps.task}")
        before = int(page.inner_text("#answer .big").split()[0].replace(",", ""))
        page.click("#time-numbers summary")
        page.click("h1")
        board.send(made_up(APPS, 7, seed=before))
        expect(page.locator("#answer .big")).to_contain_text(str(before + 7), timeout=PATIENCE)
        expect(page.locator("#time-numbers")).to_have_attribute("open", "")
        page.click("#live button")
        assert "Update" in page.inner_text("#live button")


def test_with_a_script_the_browser_is_the_device_and_the_report_alone_is_sent(chromium: Any, board: Dashboard) -> None:
    with tab(chromium) as page:
        sent: list[dict[str, list[str]]] = []
        page.on("request", lambda request: sent.append(parse_qs(request.post_data or "")) if request.method == "POST" else None)
        page.goto(f"{board.origin}/try")
        page.wait_for_selector("#plays-browser:visible")
        page.fill("#key-3", "95.25")
        page.fill("#key-1", "not a number")
        page.click("#hold button")
        page.wait_for_selector("#outcome .bytes")
        shown = "".join(page.locator("#outcome .bytes code").all_inner_texts())
        assert [sorted(fields) for fields in sent[:1]] == [["report", "seed", "token"]]
        assert sent[0]["report"] == [shown]
        assert len(shown) == 76
        expect(page.locator("#crowd tbody tr")).to_have_count(7, timeout=PATIENCE)
        assert all(fields["report"] == [shown] for fields in sent)
        assert not any("95.25" in str(fields) or "number" in str(fields) for fields in sent)
        page.click("#hold button")
        expect(page.locator("#outcome")).not_to_contain_text(shown[42:74], timeout=PATIENCE)


def test_everything_works_without_a_script(chromium: Any, board: Dashboard) -> None:
    with tab(chromium, java_script_enabled=False) as page:
        page.goto(f"{board.origin}/try")
        page.fill("#key-1", "30")
        page.click("#hold button")
        page.wait_for_selector("#crowd")
        page.click("#more button")
        page.wait_for_selector("#crowd tbody tr:nth-child(2)")
        sign_in(page, board)
        page.click("tbody a")
        page.wait_for_selector("#keys")
        page.click("th a[href*='sort=-share']")
        page.wait_for_selector("th[aria-sort='ascending']")
        with page.expect_download() as found:
            page.click("a[href$='estimates.csv']")
        assert found.value.suggested_filename.endswith("estimates.csv")
