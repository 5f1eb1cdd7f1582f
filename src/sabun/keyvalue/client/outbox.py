"""Reports that wait to be sent, one file each in a folder of their own: a crash loses none, and none is half-written.

A report is booked and kept in the diary before it is handed over; put here it is on its way whatever happens. After a crash in
between, `Client.report` gives the same bytes again, and putting them twice is putting them once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final

from .refusals import DiaryError, ReportError
from .wire import HEADER, VERSION

__all__ = ["Outbox"]

_PROMISE_BYTES = 32


@final
class Outbox:
    """A folder of reports that wait; several processes may share it.

    Args:
        folder: Made if it is not there, for its owner's eyes only.

    Raises:
        DiaryError: The folder cannot be used.

    Example:
        >>> import tempfile
        >>> Outbox(tempfile.mkdtemp()).waiting()
        []
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        with _in_words():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync(self._folder)

    def put(self, report: bytes) -> None:
        """Keeps a report until it is sent; on disk when this returns.

        Raises:
            ReportError: It is no report, or another one of the same person and round waits.
            DiaryError: It cannot be written.
        """
        place = self._place(report)
        with _in_words():
            if not self._write(place, report) and place.read_bytes() != report:
                raise ReportError("a report must be the only one of its id and round; another waits. Nothing was changed.")

    def waiting(self) -> list[bytes]:
        """The reports that wait, in the order of study, round and id."""
        found = []
        with _in_words():
            for place in sorted(self._folder.glob("*.report")):
                with suppress(FileNotFoundError):  # another process has sent it meanwhile
                    found.append(place.read_bytes())
        return found

    def done(self, report: bytes) -> None:
        """Forgets a report that the collector has."""
        with _in_words():
            self._place(report).unlink(missing_ok=True)

    def promise(self, task: str, ticket: str) -> bytes:
        """The device's half of an enrolment: drawn once per ticket, and on disk before anybody hears of it."""
        return self._first(task, ticket, "promise", secrets.token_bytes(_PROMISE_BYTES))

    def nonce(self, task: str, ticket: str, said: bytes) -> bytes:
        """The server's half: what it said first to this ticket, whatever it says later; on disk when this returns."""
        return self._first(task, ticket, "nonce", said)

    def _first(self, task: str, ticket: str, kind: str, content: bytes) -> bytes:
        # A ticket is as good as a key until it is used: its hash is enough for a name.
        owner = hashlib.sha256(b"sabun ticket\0" + ticket.encode()).hexdigest()
        place = self._folder / f"{task}-{owner}.{kind}"
        with _in_words():
            self._write(place, content)
            return place.read_bytes()

    def _write(self, place: Path, content: bytes) -> bool:
        """Whether the file is new; it is there whole or not at all, and a file that is there stays as it is."""
        aside = self._folder / f".{secrets.token_hex(8)}"
        handle = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(aside, place)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
            _sync(self._folder)
        return True

    def _place(self, report: bytes) -> Path:
        if not isinstance(report, bytes) or len(report) <= HEADER or report[0] != VERSION:
            raise ReportError("a report must be bytes as `Client.report` gives them; it is not.")
        task, number, identity = report[1:17].hex(), int.from_bytes(report[17:21], "big"), report[21:HEADER].hex()
        return self._folder / f"{task}-{number:010d}-{identity}.report"


def _sync(folder: Path) -> None:
    """The names in a folder are on disk too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DiaryError(
            f"the outbox must be a folder this device can read and write; it is not ({type(error).__name__}). Nothing was sent."
        ) from None
