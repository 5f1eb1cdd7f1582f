"""Reading what a client sends: no more bytes than allowed, however they are announced, and no longer than allowed."""

from __future__ import annotations

import asyncio
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
        most_together: Of all bodies at once, so that memory stays where it is. Where there is no room for more, those that
            have been read for longest are given up: whoever sends slowly keeps nobody out who is quick.
        seconds: For one body.
    """

    def __init__(self, *, most_bytes: int = 1 << 20, most_together: int = 64 << 20, seconds: float = 20.0) -> None:
        self.most_bytes, self._most_together, self._seconds = most_bytes, most_together, seconds
        self._together = 0
        self._reading: dict[_Held, None] = {}
        """In the order in which they began."""

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
        held = _Held()
        self._reading[held] = None
        try:
            async with asyncio.timeout(self._seconds) as held.patience:
                async for piece in request.stream():
                    if held.size + len(piece) > limit:  # a chunked body announces nothing
                        raise Problem("too-large")
                    self._take(held, piece)
        except TimeoutError:
            raise Problem("busy" if held.given_up else "slow-body") from None
        except ClientDisconnect:
            raise Problem("disconnected") from None
        finally:
            self._let_go(held)
        if held.given_up:  # and its last piece came at the same moment
            raise Problem("busy")
        request.state.read = True
        return b"".join(held.pieces)

    def _take(self, held: _Held, piece: bytes) -> None:
        """Keeps some more of a body.

        Raises:
            Problem: There is no room, though no other is being read; or it was given up.
        """
        if held.given_up:
            raise Problem("busy")
        while self._together + len(piece) > self._most_together:
            longest = next((one for one in self._reading if one is not held and one.size), None)
            if longest is None:
                raise Problem("busy")
            longest.give_up()
            self._let_go(longest)
        self._together += len(piece)
        held.size += len(piece)
        held.pieces.append(piece)

    def _let_go(self, held: _Held) -> None:
        if self._reading.pop(held, held) is None:
            self._together -= held.size


@final
class _Held:
    """What has come of one body."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size, self.given_up = 0, False
        self.patience: asyncio.Timeout

    def give_up(self) -> None:
        """Makes whoever reads it stop at once."""
        self.given_up = True
        self.pieces.clear()
        if not self.patience.expired():
            self.patience.reschedule(0.0)  # long ago


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
