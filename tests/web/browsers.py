"""A real Chromium for tests of pages: tabs that fail on whatever a policy refuses, keys, a page from elsewhere."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000.0
REBOUND = "rebound.example"
"""A name that somebody else made this machine's."""
NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, nav, svg")]
  .filter((one) =>
    !(one.labels?.length || one.textContent.trim() && !one.matches("select, textarea") || one.getAttribute("aria-label")
      || one.getAttribute("aria-hidden") || one.closest("[hidden]"))).map((one) => one.outerHTML)"""
"""What on a page has no name for those who listen to it."""


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        args = ["--no-sandbox", f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=args)
        yield browser
        browser.close()


@contextmanager
def tab(chromium: Any, **how: Any) -> Iterator[Any]:
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
    assert refused == [], refused


def reach(page: Any, wanted: str, *, most: int = 60) -> None:
    """Presses Tab until what is wanted has the focus, as somebody without a mouse would."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", "the focus is seen"
            return
    pytest.fail(f"{wanted} cannot be reached by keyboard")


@contextmanager
def elsewhere(content: str) -> Iterator[tuple[str, list[str]]]:
    """Another server on another port of this machine with a page of its own, and the cookies that reached it."""
    cookies: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", cookies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
