"""A real browser loads a page without asking for anything else. Runs only where Chromium is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reports.report_samples import evil_release, release_of
from sabun.reports import comparison, report

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium browser")


def dom(page: Path, folder: Path, *options: str) -> str:
    """What the browser makes of a page, as HTML."""
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = "--disable-component-update --disable-sync --disable-dev-shm-usage --dump-dom"
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [CHROMIUM, *flags.split(), *more.split(), profile, *options, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_browser_shows_the_answer_and_runs_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(report(evil_release()), encoding="utf-8")
    shown = dom(page, tmp_path)
    assert "What is promised" in shown
    assert "<script" not in shown
    assert "onerror=" not in shown.replace("onerror=alert(2)&gt;", "")


def test_a_page_fits_a_phone(tmp_path: Path) -> None:
    """The page is put in a frame as wide as a phone, which says how wide its content is."""
    inner = report(release_of({"count": 42, "weights": np.linspace(0, 3, 200), "x" * 60: "y" * 200})).replace(
        "default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';"
    )
    probe = "<script>document.title = 'width ' + document.documentElement.scrollWidth</script></body>"
    (tmp_path / "inner.html").write_text(inner.replace("</body>", probe), encoding="utf-8")
    outer = (
        "<iframe src='inner.html' style='width:360px;height:800px;border:0' "
        'onload="document.body.append(this.contentDocument.title)"></iframe>'
    )
    (tmp_path / "outer.html").write_text(outer, encoding="utf-8")
    shown = dom(tmp_path / "outer.html", tmp_path, "--allow-file-access-from-files", "--hide-scrollbars")
    found = re.search(r"width (\d+)", shown)
    assert found is not None
    assert 300 < int(found[1]) <= 360


@pytest.fixture(scope="module")
def compared() -> str:
    """A page with long names, wide tables and pictures, in Japanese."""
    value = {"counts": {}, "intervals": {}}
    groups = ["東京都千代田区と周辺の地域", "a_rather_long_name_of_a_group", "x"]
    for place, group in enumerate(groups):
        value["counts"][group] = 1_234_567 + place
        value["intervals"][group] = [1_200_000, 1_300_000]
    chosen = {"groups": groups, "by": "place", "confidence": 0.95, "mechanism": "discrete Laplace"}
    release = release_of(value, provenance={"kind": "summaries.count", "parameters": chosen})
    return comparison({"2025-spring": release, "2025-autumn": release, "2026-spring": release}, lang="ja")


def test_a_page_is_readable_on_a_phone_and_on_paper(compared: str, tmp_path: Path) -> None:
    """Letters in pictures are large enough, nothing is cut off, and no number is broken over two lines."""
    browsing = pytest.importorskip("playwright.sync_api")
    file = tmp_path / "page.html"
    file.write_text(compared, encoding="utf-8")
    with browsing.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(file.as_uri())
        for width, media, least in ((390, "screen", 11), (1280, "screen", 12), (680, "print", 8)):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(media=media)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(LETTERS) >= least
            assert page.evaluate(CUT_OFF) == []
            assert page.evaluate(BROKEN) == []
        assert page.pdf(format="A4").startswith(b"%PDF")
        browser.close()


LETTERS = """() => Math.min(...[...document.querySelectorAll('svg text')].map(one => {
  const to = one.getScreenCTM(); return parseFloat(getComputedStyle(one).fontSize) * Math.hypot(to.a, to.b) }))"""
CUT_OFF = """() => [...document.querySelectorAll('svg text')].filter(one => {
  const mine = one.getBoundingClientRect(), all = one.closest('svg').getBoundingClientRect()
  return mine.left < all.left - 1 || mine.right > all.right + 1 }).map(one => one.textContent)"""
BROKEN = r"""() => { const found = []
  for (const cell of document.querySelectorAll('td bdi, .big bdi')) {
    const text = cell.firstChild
    if (!text || !cell.getClientRects().length) continue
    for (const number of text.data.matchAll(/[-−]?\d[\d.,]*/g)) {
      if (number[0].length > 20) continue
      const range = document.createRange()
      range.setStart(text, number.index); range.setEnd(text, number.index + number[0].length)
      const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top)))
      if (lines.size > 1) found.push(`${number[0]} in ${cell.parentElement.outerHTML.slice(0, 150)}`) } }
  return found }"""
