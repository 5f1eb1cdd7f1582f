"""How often somebody may try, in memory: a caller is known by a keyed hash of the address, under a key that lives an hour."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable
from typing import final

__all__ = ["RateLimit"]

_HOUR = 3600.0
_MOST_CALLERS = 100_000


@final
class RateLimit:
    """Counts attempts of callers.

    Args:
        most: Attempts in one window.
        seconds: Length of a window.
        clock: Seconds that never go back.
    """

    def __init__(self, *, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._key, self._key_until = b"", 0.0
        self._window, self._found = -1, Counter[bytes]()

    def exhausted(self, caller: str) -> bool:
        """Whether the caller has used up this window."""
        return self._found[self._named(caller)] >= self._most

    def note(self, caller: str) -> None:
        """Counts an attempt."""
        name = self._named(caller)
        if name in self._found or len(self._found) < _MOST_CALLERS:
            self._found[name] += 1

    def _named(self, caller: str) -> bytes:
        now = self._clock()
        if now >= self._key_until:
            self._key, self._key_until = secrets.token_bytes(16), now + _HOUR
            self._found.clear()
        if (window := int(now // self._seconds)) != self._window:
            self._window = window
            self._found.clear()
        return hashlib.blake2b(caller.encode("utf-8", "replace"), key=self._key, digest_size=16).digest()
