"""Reading what a client sends: no more bytes than allowed, however they are announced, and no longer than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, final

import msgspec
from starlette.requests import ClientDisconnect, Request

from sabun.service.problems import Problem

__all__ = ["Intake", "json_body"]

T = TypeVar("T")


@final
class Intake:
    """Bodies that are being read.

    Args:
        most_bytes: Of one body.
        most_together: Of all bodies at once; more are sent away, so that memory stays where it is.
        seconds: For one body.
    """

    def __init__(self, *, most_bytes: int = 1 << 20, most_together: int = 64 << 20, seconds: float = 20.0) -> None:
        self.most_bytes, self._most_together, self._seconds = most_bytes, most_together, seconds
        self._together = 0

    async def body(self, request: Request, *, most_bytes: int | None = None) -> bytes:
        """All of a body.

        Raises:
            Problem: It is packed, too large, too slow, cut off, or too much comes at once.
        """
        limit = self.most_bytes if most_bytes is None else most_bytes
        if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Problem("encoding")
        if _announced(request) > limit:
            raise Problem("too-large")
        pieces: list[bytes] = []
        size = 0
        try:
            with self._counted() as more:
                async with asyncio.timeout(self._seconds):
                    async for piece in request.stream():
                        size += len(piece)
                        if size > limit:  # a chunked body announces nothing
                            raise Problem("too-large")
                        more.send(len(piece))
                        pieces.append(piece)
        except TimeoutError:
            raise Problem("slow-body") from None
        except ClientDisconnect:
            raise Problem("disconnected") from None
        request.state.read = True
        return b"".join(pieces)

    @contextmanager
    def _counted(self) -> Iterator[_Held]:
        held = _Held(self)
        try:
            yield held
        finally:
            self._together -= held.size

    def take(self, size: int) -> None:
        """Makes room for some more bytes.

        Raises:
            Problem: There is none.
        """
        if self._together + size > self._most_together:
            raise Problem("busy")
        self._together += size


class _Held:
    """The bytes of one body so far."""

    def __init__(self, intake: Intake) -> None:
        self._intake, self.size = intake, 0

    def send(self, size: int) -> None:
        """Counts some more."""
        self._intake.take(size)
        self.size += size


def json_body(body: bytes, kind: type[T]) -> T:
    """A body as JSON of a kind.

    Raises:
        Problem: It is another; the detail names the place, never what stands there.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem("bad-json", f"The body must be JSON as the description says; {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem("bad-json") from None


def _announced(request: Request) -> int:
    try:
        return int(request.headers.get("content-length", "0"))
    except ValueError:
        return 0
