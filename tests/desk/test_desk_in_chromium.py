"""The desk in a real Chromium: the whole way from a file to an answer, keyboard alone, a phone, the dark, Japanese, attacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from desk.desks import Clinic

playwright = pytest.importorskip("playwright.sync_api", reason="there is no Playwright on this machine")
expect = playwright.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
PATIENCE = 30_000.0


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = Clinic(tmp_path_factory.mktemp("clinic"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def tab(chromium: Any, *, allowed: str = "", **how: Any) -> Iterator[Any]:
    """A tab of a browser of its own; whatever a page's policy refuses fails the test."""
    context = chromium.new_context(**{"locale": "en", **how})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: refused.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    assert [text for text in refused if not (allowed and allowed in text)] == []


def come_in(page: Any, clinic: Clinic) -> str:
    """Opens the owner's file, as the desk's own command does; the address of the desk's pages."""
    page.goto(clinic.server.entrance.renew().as_uri())
    page.wait_for_url("**/at/*/")
    return str(page.url)


def asked_mean(page: Any, epsilon: str) -> None:
    page.get_by_role("link", name="patients.csv").click()
    page.get_by_role("link", name="mean", exact=True).click()
    page.select_option("#column", "age")
    page.fill("#epsilon", epsilon)


def test_from_a_file_to_an_answer(chromium: Any, clinic: Clinic) -> None:
    with tab(chromium) as page:
        come_in(page, clinic)
        page.get_by_role("link", name="patients.csv").click()
        page.locator("section.column").nth(0).get_by_label("number").check()
        page.fill("#low-0", "0")
        page.fill("#high-0", "120")
        page.locator("section.column").nth(2).get_by_label("category").check()
        page.fill("#labels-2", "F, M")
        page.get_by_role("button", name="Save and go on").click()
        page.get_by_role("link", name="mean", exact=True).click()
        page.select_option("#column", "age")
        page.fill("#epsilon", "0.5")
        page.wait_for_selector("#plan tr.chosen")
        before = page.locator("#plan tr.chosen td.numeric").first.inner_text()
        page.fill("#epsilon", "2")
        page.wait_for_function("before => document.querySelector('#plan tr.chosen td.numeric').innerText !== before", arg=before)
        assert clinic.book.entries() == (), "a plan costs nothing"
        page.click("#ask-button")
        page.wait_for_url("**/ledgers/*/1?sent=*")
        expect(page.locator(".big")).to_be_visible()
        page.get_by_role("link", name="Read the report").click()
        page.wait_for_url("**/report")
        assert [str(entry.epsilon) for entry in clinic.book.entries()] == ["2"]
