"""Who may come in: whoever can read a file that only its owner can read.

Arguments of a process and addresses in a log are seen by others on the same machine. So the browser is sent to a file of mode
0600, which sends it on with a code that works once and for a minute.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from markupsafe import Markup

__all__ = ["Entrance"]

_SECONDS = 60
_PAGE = Markup(
    '<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={address}enter/{code}"><title>Sabun</title></head>'
    '<body><p><a href="{address}enter/{code}">Sabun</a></p><p>{code}</p></body></html>\n'
)


@final
class Entrance:
    """The way in.

    Args:
        address: Where the desk is, with a slash at its end.
        clock: Seconds, which only grow.
    """

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._address, self._clock, self._lock = address, clock, threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="sabun-desk-"))  # 0700
        self.file = self._folder / "open.html"
        self._hash, self._until = b"", 0.0

    def renew(self) -> Path:
        """Writes a new code into the file; the one before stops working."""
        code = secrets.token_urlsafe(24)
        part = self._folder / f"{secrets.token_hex(8)}.part"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(_PAGE.format(address=self._address, code=code))
        with self._lock:
            part.replace(self.file)
            self._hash, self._until = hashlib.sha256(code.encode()).digest(), self._clock() + _SECONDS
        return self.file

    def ready(self) -> Path:
        """The file, with a code that works: whoever opens the first page again and again takes nobody's code away."""
        with self._lock:
            works = self._hash != b"" and self._clock() < self._until
        return self.file if works else self.renew()

    def admits(self, code: str) -> bool:
        """Whether this is the code, once."""
        given = hashlib.sha256(code.encode("utf-8", "replace")).digest()
        with self._lock:
            good = hmac.compare_digest(given, self._hash) and self._clock() < self._until
            if good:
                self._hash = b""
                self.file.unlink(missing_ok=True)
        return good

    def close(self) -> None:
        """Removes the file and its folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
