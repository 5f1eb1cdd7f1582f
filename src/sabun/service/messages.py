"""The JSON that goes over the wire, as types: requests are checked by them, the description is written from them."""

from __future__ import annotations

from typing import Annotated, Literal, final

from msgspec import Meta, Struct

__all__ = [
    "CloseRequest",
    "Closed",
    "Credential",
    "EnrolmentRequest",
    "Health",
    "Nonce",
    "Refused",
    "Reports",
    "RevealRequest",
    "RoundState",
    "Taken",
]

Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64, description="32 bytes in hex.")]
Ticket = Annotated[
    str, Meta(pattern="^[0-9a-f]{32}$", max_length=32, description="16 bytes in hex, as `sabun keyvalue tickets` writes them.")
]


@final
class EnrolmentRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The first half of an enrolment; `promise` is SHA-256 of 32 random bytes."""

    ticket: Ticket
    promise: Hex32


@final
class Nonce(Struct, kw_only=True):
    """The server's half; the same for the same ticket and promise."""

    nonce: Hex32


@final
class RevealRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The second half: the bytes whose hash was promised."""

    ticket: Ticket
    secret: Hex32


@final
class Credential(Struct, kw_only=True):
    """SHA-256("sabun credential\\0" ‖ task (16 bytes) ‖ secret ‖ nonce): whoever revealed can check it."""

    credential: Hex32


@final
class Reports(Struct, kw_only=True, forbid_unknown_fields=True):
    """Reports in base64."""

    reports: list[str]


@final
class Refused(Struct, kw_only=True):
    """A report that does not count: its place in the request (from 0), and why."""

    index: int
    reason: str


@final
class Taken(Struct, kw_only=True):
    """What became of a request's reports; all of it is on disk. A duplicate counts once, from the time before."""

    accepted: int
    duplicate: int
    rejected: list[Refused]


@final
class RoundState(Struct, kw_only=True):
    """A round: `feedback` has the means that PrivKVM's later rounds need, in the order of the study's keys."""

    task: str
    round: int
    state: Literal["waiting", "open", "closed", "frozen", "purged"]
    feedback: list[float] | None = None
    seed: str | None = None


@final
class CloseRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to close: `abandon` a round that will never have enough reports; its reports are deleted."""

    abandon: bool = False


@final
class Closed(Struct, kw_only=True):
    """A round after it was closed."""

    round: int
    state: Literal["closed", "frozen", "purged"]
    released: bool


@final
class Health(Struct, kw_only=True):
    """Whether the server can take reports."""

    status: Literal["ok"]
    version: str
