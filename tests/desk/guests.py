"""Somebody at the desk without a browser: quick, and able to send what no browser would."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx

from desk.desks import Clinic


class Guest:
    """Comes in with a code, opens pages, sends forms."""

    def __init__(self, clinic: Clinic) -> None:
        self.clinic = clinic
        self.http = httpx.Client(base_url=clinic.origin, timeout=60, headers={"accept-language": "en"})
        came = self.http.get(f"/enter/{clinic.code()}")
        assert came.status_code == 200
        self.root = re.findall(r"/at/[0-9a-f]{32}/", came.text)[0]

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path if path.startswith("/") else self.root + path)

    def handle(self, name: str, path: str = "") -> str:
        """The handle of a file, as the first page has it."""
        found = re.search(rf'tables/([0-9a-f]+)(?:/jobs)?"><bdi>{re.escape(name)}<', self.get(path).text)
        assert found is not None, name
        return found[1]

    def send(self, path: str, **fields: Any) -> httpx.Response:
        """Sends a page's form with what is filled in."""
        page = self.get(path).text
        hidden = dict(re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)"', page))
        return self.post(path, **hidden | fields)

    def post(self, path: str, **fields: Any) -> httpx.Response:
        address = path if path.startswith("/") else self.root + path
        return self.http.post(address, data=fields, headers={"origin": self.clinic.origin}, follow_redirects=False)

    def answered(self, sent: httpx.Response) -> httpx.Response:
        """Waits for the answer of a question that was sent off."""
        assert sent.status_code == 303, sent.text
        place = sent.headers["location"]
        for _ in range(600):
            page = self.get(place)
            if page.status_code != 303:
                if "/sent/" not in str(page.url):
                    return page
                time.sleep(0.1)
                continue
            place = page.headers["location"]
        raise AssertionError("no answer came")

    def close(self) -> None:
        self.http.close()
