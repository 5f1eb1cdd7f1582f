"""What a ledger says to outsiders: everything that was charged, with the rows from which anybody can check it.

A statement holds the rows as they were hashed, so whoever holds a head hash that was published can recompute the chain up to
it; `docs/ledger-statement.md` has the format and a checker that needs nothing of Sabun. With rows from one entry on, it is the
proof that this one release was charged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from sabun import checks
from sabun.errors import LedgerError, ParameterError, ReleaseError
from sabun.ledger import Ledger
from sabun.release.encoding import canonical, exactly, parse
from sabun.release.files import read_whole, write_whole
from sabun.release.signature import Signature, Signer, TrustedKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["FORMAT", "Statement", "state"]

FORMAT = "sabun-ledger-statement"
VERSION = 1
_DOMAIN = b"sabun-ledger-statement-1\n"
"""Stands before what is signed, so that a signature of a release can never pass for one of a statement."""
_LARGEST = 2**30
_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A ledger's account of itself at one moment.

    Args:
        time: When it was made (UTC, ISO 8601).
        ledger: The ledger in plain JSON types, as `Ledger.to_dict` gives it: terms, what is spent, what is left, every charge.
        words: The same in words, a line each.
        rows: The rows of the chain as they were hashed, oldest first; all, or those from one entry on.
        signature: Who stands behind it; made by `sign`.
    """

    time: str
    ledger: Mapping[str, Any]
    words: Sequence[str]
    rows: Sequence[str]
    signature: Signature | None = None

    @property
    def head_hash(self) -> str:
        """Hash of the last row in it: what the statement can be held against."""
        return _hash(self.rows[-1])

    def sign(self, private_key: Ed25519PrivateKey) -> Self:
        """The same statement with a signature over everything in it."""
        return dataclasses.replace(self, signature=Signature.of(self._bytes(signed=False), private_key, domain=_DOMAIN))

    def verify(self, public_key: TrustedKeys = None) -> Signer:
        """Makes sure that nothing was changed since it was signed; with keys, that one of them signed.

        Raises:
            ReleaseError: It is unsigned, changed, or signed by a key that is not trusted.
        """
        if self.signature is None:
            raise ReleaseError("the statement must be signed; it is not. Ask its publisher for a signed one.")
        return self.signature.check(self._bytes(signed=False), public_key, domain=_DOMAIN)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes it to a file that is complete or not there at all."""
        write_whole(path, self._bytes(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: The file is no statement.
        """
        fields = {"format", "version", "time", "ledger", "words", "rows"}
        record = exactly(
            parse(read_whole(path, max_bytes=_LARGEST)), fields, "the statement", optional=frozenset({"signature"})
        )
        if (record.pop("format"), record.pop("version")) != (FORMAT, VERSION):
            raise ReleaseError(f"a statement must have format {FORMAT!r}, version {VERSION}; this file has another.")
        rows = record["rows"]
        if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
            raise ReleaseError("rows must be a list of texts; it is not.")
        signed = record.pop("signature", None)
        return cls(**record, signature=None if signed is None else Signature.from_dict(signed))

    def _bytes(self, *, signed: bool = True) -> bytes:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "time": self.time,
            "ledger": dict(self.ledger),
            "words": list(self.words),
            "rows": list(self.rows),
        }
        if signed and self.signature is not None:
            document["signature"] = self.signature.to_dict()
        return canonical(document)


def state(ledger: Ledger, *, entry: int | None = None, head: str | None = None) -> Statement:
    """A statement of a ledger as it stands; the whole ledger is checked first.

    Args:
        ledger: Whose.
        entry: Only what proves that this charge stands: its own account, and the rows from it on.
        head: A hash that was published: the rows end with it. The newest when left out.

    Raises:
        ParameterError: There is no such entry, or no row from it on has that hash.
        LedgerError: The ledger was changed.
    """
    ledger.verify(expect_head=head)
    for _ in range(_TRIES):
        account, rows = ledger.to_dict(), list(ledger.records())
        if _hash(rows[-1]) == account["head_hash"]:  # else somebody charged meanwhile
            break
    else:
        raise LedgerError(f"ledger {ledger.name!r} must rest for a moment to be stated; others charge all the time. Try again.")
    words = ledger.show(last=0).splitlines()
    if entry is not None:
        account["entries"] = [known for known in account["entries"] if known["entry"] == ledger.entry(entry).entry]
        rows = rows[_place_of(rows, entry) :]
    if head is not None:
        ends = [place for place, row in enumerate(rows) if _hash(row) == head]
        checks.require(bool(ends), "the hash of a row from that entry on", head=head)
        rows = rows[: ends[0] + 1]
    return Statement(time=datetime.now(UTC).isoformat(timespec="seconds"), ledger=account, words=words, rows=rows)


def _place_of(rows: Sequence[str], entry: int) -> int:
    for place, row in enumerate(map(json.loads, rows)):
        if row["kind"] == "reserve" and row["entry"] == entry:
            return place
    raise ParameterError(f"entry must be the number of a charge; got {entry}.")


def _hash(row: str) -> str:
    return hashlib.sha256(row.encode("ascii")).hexdigest()
