"""A real browser loads a page without asking for anything else. Runs only where Chromium is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reports.report_samples import evil_release, release_of
from sabun.reports import report

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
