"""The desk in a real Chromium: the whole way from a file to an answer, keyboard alone, a phone, the dark, Japanese, attacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from desk.desks import Clinic
from web.browsers import CHROMIUM, NAMELESS, PATIENCE, REBOUND, elsewhere, launched, reach, tab

playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright on this machine")
expect = playwright.expect
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = Clinic(tmp_path_factory.mktemp("clinic"))
    made.declare("volunteers")
    yield made
    made.end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


def come_in(page: Any, clinic: Clinic) -> str:
    """Opens the owner's file, as the desk's own command does; the address of the desk's pages."""
    page.goto(clinic.server.entrance.renew().as_uri())
    page.wait_for_url("**/at/*/")
    return str(page.url)


def test_from_a_file_to_an_answer(chromium: Any, clinic: Clinic) -> None:
    with tab(chromium) as page:
        come_in(page, clinic)
        page.get_by_role("link", name="patients.csv").click()
        age, sex = page.locator("section.column").nth(0), page.locator("section.column").nth(2)
        expect(age.locator("#low-0")).to_be_hidden()
        age.get_by_label("number").check()
        page.fill("#low-0", "0")
        page.fill("#high-0", "120")
        sex.get_by_label("category").check()
        page.fill("#labels-2", "F, M")
        page.get_by_role("button", name="Save and go on").click()
        page.get_by_role("link", name="mean", exact=True).click()
        page.select_option("#column", "age")
        page.fill("#epsilon", "much")
        page.wait_for_selector(".misfit #epsilon[aria-invalid]")
        page.fill("#epsilon", "0.5")
        page.wait_for_selector("#plan tr.chosen")
        expect(page.locator(".misfit, [aria-invalid]")).to_have_count(0)  # nothing is red that was mended
        changed = "before => document.querySelector('#plan tr.chosen td.numeric').innerText !== before"
        before = page.locator("#plan tr.chosen td.numeric").first.inner_text()
        page.focus("#epsilon-slider")
        page.keyboard.press("End")
        assert page.input_value("#epsilon") == "10"
        page.wait_for_function(changed, arg=before)
        roughest = page.locator("#plan tr.chosen td.numeric").first.inner_text()
        page.keyboard.press("Home")
        assert page.input_value("#epsilon") == "0.01"
        page.wait_for_function(changed, arg=roughest)
        assert clinic.book.entries() == (), "a plan costs nothing"
        page.fill("#epsilon", "2")
        page.click("#ask-button")
        page.wait_for_url("**/ledgers/*/1?sent=*")
        answer = page.inner_text(".big")
        page.reload()
        assert page.inner_text(".big") == answer
        page.get_by_role("link", name="Read the report").click()
        page.wait_for_url("**/report")
        assert answer.split()[0] in page.inner_text("main")
        page.go_back()
        page.get_by_role("link", name="Ask something like it").click()
        assert page.input_value("#epsilon") == "2"
        page.click("#ask-button")
        page.wait_for_url("**/ledgers/*/1?sent=*")
        assert [str(entry.epsilon) for entry in clinic.book.entries()] == ["2"], "asked again, it is free"
        page.get_by_role("link", name="What is spent on what").click()
        expect(page.locator("main tbody tr").first).to_contain_text("mean")


def test_nobody_needs_a_mouse(chromium: Any, clinic: Clinic) -> None:
    with tab(chromium) as page:
        come_in(page, clinic)
        before = len(clinic.book.entries())
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0, "the way past the places is seen"
        reach(page, "tbody tr:last-child a")
        page.keyboard.press("Enter")
        page.wait_for_selector("a[href$='summaries/histogram']")
        reach(page, "a[href$='summaries/histogram']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#column")
        reach(page, "#column")
        page.keyboard.type("sex")
        reach(page, "#epsilon")
        page.keyboard.press("Control+A")
        page.keyboard.type("0.25")
        reach(page, "#epsilon-slider")
        page.keyboard.press("ArrowRight")
        reach(page, "#more summary")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.parentElement.open")
        page.wait_for_selector("#plan tr.chosen")
        reach(page, "#ask-button")
        page.keyboard.press("Enter")
        page.wait_for_url("**/ledgers/*/*?sent=*")
        reach(page, "a[href$='/report']")
        assert len(clinic.book.entries()) == before + 1


@pytest.mark.parametrize(("scheme", "lang"), [("light", "en"), ("dark", "ja")])
def test_a_phone_shows_everything_without_scrolling_sideways(chromium: Any, clinic: Clinic, scheme: str, lang: str) -> None:
    if not clinic.book.entries():  # no test before this one asked
        clinic.ask("volunteers")
    with tab(chromium, viewport={"width": 390, "height": 844}, color_scheme=scheme, locale=lang) as page:
        page.goto(clinic.origin)
        root = come_in(page, clinic)
        [table] = page.eval_on_selector_all("tbody tr:last-child a", "found => found.map((one) => one.href)")
        [book] = [f"{root}ledgers/{item.handle}" for item in clinic.server.desk.shelf.ledgers()]
        columns = table.removesuffix("/jobs")
        verbs = ("summaries/mean", "outliers/count", "density/weights", "regression/fit", "learning/train")
        pages = [clinic.origin, root, columns, table, *(f"{table}/{verb}" for verb in verbs)]
        for address in [*pages, f"{root}ledgers", book, f"{book}/1", f"{root}new-ledger"]:
            page.goto(address)
            page.eval_on_selector_all("details", "folds => folds.forEach((fold) => (fold.open = true))")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, address
            assert page.evaluate("document.documentElement.lang") == lang
            assert page.evaluate(NAMELESS) == [], address
            assert page.evaluate("document.querySelectorAll('main').length") == 1
            ground = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert (sum(map(int, ground[:3])) < 200) == (scheme == "dark")


def test_everything_works_without_a_script(chromium: Any, clinic: Clinic) -> None:
    with tab(chromium, java_script_enabled=False) as page:
        come_in(page, clinic)
        page.click("a:has-text('volunteers.csv')")
        page.click("a[href$='summaries/mean']")
        expect(page.locator("#epsilon-slider")).to_be_hidden()
        page.select_option("#column", "age")
        page.fill("#epsilon", "1.5")
        page.press("#epsilon", "Enter")
        page.wait_for_selector("#plan tr.chosen")
        assert page.input_value("#epsilon") == "1.5", "Enter shows the plan, and spends nothing"
        page.click("#ask-button")
        page.wait_for_url("**/ledgers/*/*?sent=*")
        with page.expect_download() as found:
            page.click("a[download]")
        assert found.value.suggested_filename.endswith(".json")


ELSEWHERE = """<!doctype html><title>elsewhere</title><iframe src="{there}"></iframe><img src="{there}">
<form method="post" action="{there}new-ledger"><input name="token" value="{token}"><input name="name" value="theirs">
<input name="epsilon" value="9"><button>win a prize</button></form>"""


def test_a_page_from_elsewhere_gets_nothing_and_changes_nothing(chromium: Any, clinic: Clinic) -> None:
    context = chromium.new_context(locale="en")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    root = come_in(page, clinic)
    page.goto(f"{root}new-ledger")
    token = page.get_attribute("main [name=token]", "value")
    with elsewhere(ELSEWHERE.format(there=root, token=token)) as (address, cookies):
        statuses: list[int] = []
        page.on("response", lambda answer: statuses.append(answer.status) if answer.url == root else None)
        page.goto(f"{address}/at/page")
        page.goto(address + root.removeprefix(clinic.origin), wait_until="load")
        reading = f"fetch('{root}', {{mode: 'no-cors', credentials: 'include'}}).then((answer) => answer.text(), () => '')"
        assert page.evaluate(reading) == ""
        assert page.frames[-1].evaluate("document.body?.innerText ?? ''").count("patients") == 0
        assert set(statuses) <= {403}, "frames, pictures and fetches of others are refused"
        with page.expect_navigation() as answer:
            page.click("button")
        assert answer.value.status == 403
        assert not any("sabun-visit" in cookie for cookie in cookies[:1]), "the cookie is bound to a path nobody can guess"
    assert not (clinic.folder / "theirs.ledger").exists()
    page.goto(root)
    expect(page.locator("h1")).to_have_text("Choose a table")
    refused = page.goto(root.replace("127.0.0.1", REBOUND))
    assert refused is not None
    assert refused.status == 403, "a name that was pointed at this machine is not its own"
    context.close()


def test_the_owner_s_file_lets_one_browser_in_once(chromium: Any, clinic: Clinic) -> None:
    context = chromium.new_context(locale="en")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    code = clinic.code()
    page.goto(f"{clinic.origin}/enter/{code}")
    page.wait_for_url("**/at/*/")
    [cookie] = [one for one in context.cookies() if one["name"] == "sabun-visit"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert cookie["path"] in page.url
    again = page.goto(f"{clinic.origin}/enter/{code}")
    assert again is not None
    assert again.status == 403
    page.fill("#code", clinic.code())
    page.press("#code", "Enter")
    page.wait_for_url("**/at/*/")
    context.close()


OF_PERSONS: dict[str, dict[str, str]] = {
    "summaries/mean": {"column": "日数", "id": "番号", "rule": "日数=max"},
    "outliers/count": {"columns": "日数", "radius": "0.02", "id": "番号"},
    "density/weights": {"columns": "年齢", "public": "協力者.csv", "id": "番号"},
    "regression/fit": {"columns": "年齢", "target": "日数", "id": "番号"},
    "learning/train": {
        "columns": "年齢",
        "target": "性別",
        "method": "noisy-centroids",
        "hidden": "",
        "id": "番号",
        "rule": "性別=last",
    },
}


@pytest.mark.parametrize(
    "verbs",
    [
        pytest.param(["summaries/mean", "learning/train"], id="two"),
        pytest.param([*OF_PERSONS], id="all", marks=pytest.mark.long),
    ],
)
def test_every_job_about_persons_with_several_rows_on_a_phone_in_japanese(
    chromium: Any, clinic: Clinic, verbs: list[str]
) -> None:
    rows = [f"{i % 150:03d},{20 + i % 50},{i % 60},{'男女'[i % 2]}" for i in range(600)]
    for name, some in (("通院.csv", rows), ("協力者.csv", rows[::5])):
        (clinic.folder / name).write_bytes("\n".join(["番号,年齢,日数,性別", *some, ""]).encode("cp932"))
    before = len(clinic.book.entries())
    with tab(chromium, locale="ja", viewport={"width": 390, "height": 844}) as page:
        come_in(page, clinic)
        page.click("a:has-text('通院.csv')")
        expect(page.locator(".wrong")).to_contain_text("cp932")
        page.fill("#encoding", "cp932")
        page.click("button[value=names]")
        for place, kind in enumerate(("id", "number", "number", "category")):
            page.check(f"[name=kind-{place}][value={kind}]")
        for place, typed in (("low-1", "0"), ("high-1", "120"), ("low-2", "0"), ("high-2", "60"), ("labels-3", "男, 女")):
            page.fill(f"#{place}", typed)
        page.click("button[value=save]")
        page.wait_for_url("**/jobs")
        jobs = page.url
        for verb, fields in ((verb, OF_PERSONS[verb]) for verb in verbs):
            page.goto(f"{jobs}/{verb}")
            page.eval_on_selector_all("details", "folds => folds.forEach((fold) => (fold.open = true))")
            for name, value in fields.items():
                if name == "columns":
                    page.check(f"[name=columns][value={value}]")
                elif page.evaluate("name => document.getElementById(name).matches('select')", name):
                    page.select_option(f"#{name}", label=value)
                else:
                    page.fill(f"#{name}", value)
            page.fill("#epsilon", "1")
            page.check("#yes")  # so few persons may leave a line nothing but noise
            page.wait_for_selector("#plan tr.chosen")
            page.click("#ask-button")
            page.wait_for_url("**/ledgers/*/*?sent=*")
            assert "persons('通院.csv', id='番号'" in page.inner_text("#python"), verb
            assert "--id '番号'" in page.inner_text("#command")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, verb
        page.click("main a[href*='/ledgers/']:not(.button)")
        expect(page.locator("main")).to_contain_text("学習：分類器（年齢）")
    assert len(clinic.book.entries()) == before + len(verbs)
