"""Who may look and who may close: tokens that are kept as hashes, end after a while, and hold for one study or for all."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sabun import checks
from sabun.errors import ParameterError
from sabun.service.report_store import Served, Store

__all__ = ["MOST_DAYS", "SCOPES", "Operator", "add_operator", "operators", "revoke_operator", "who"]

SCOPES = ("read", "close", "admin")
"""Look at estimates; close rounds; both, and look at the whole server."""
MOST_DAYS = 90
_PREFIX = "sabun-"
_EVERY = 0
"""The number under which operators of every study are kept."""


@final
@dataclass(frozen=True, kw_only=True)
class Operator:
    """Somebody with a token.

    Args:
        name: What they are called; each study has names of its own, and so has the server.
        scopes: What they may do.
        study: The number of the study it is for; None for every study.
        expires: The day (counted from 1970) on which it ends.
    """

    name: str
    scopes: tuple[str, ...]
    study: int | None
    expires: int

    def may(self, scope: str, served: Served | None) -> bool:
        """Whether they may do something with a study; with the server as a whole, for None."""
        known = scope in self.scopes or "admin" in self.scopes
        return known and (self.study is None or (served is not None and served.number == self.study))


def add_operator(
    store: Store, name: str, *, scopes: Sequence[str] = ("read",), served: Served | None = None, days: int = MOST_DAYS
) -> str:
    """A new token, shown once; a new one under the same name, for the same study or for all, ends the older one.

    Raises:
        ParameterError: A scope is none of ours, or the token would last too long.
    """
    checks.require(bool(name) and name.isprintable() and len(name) <= 64, "1 to 64 printable characters", name=name)
    checks.require(bool(scopes) and set(scopes) <= set(SCOPES), f"some of {', '.join(map(repr, SCOPES))}", scopes=list(scopes))
    checks.require(type(days) is int and 1 <= days <= MOST_DAYS, f"a whole number from 1 to {MOST_DAYS}", days=days)
    token = _PREFIX + secrets.token_hex(32)
    with store.database.change() as session:
        session.rows("DELETE FROM operator WHERE study = ? AND name = ?", _number(served), name)
        session.rows(
            "INSERT INTO operator (study, name, hash, scopes, expires) VALUES (?, ?, ?, ?, ?)",
            *(_number(served), name, _hash(token), ",".join(sorted(set(scopes))), store.today + days),
        )
    return token


def revoke_operator(store: Store, name: str, *, served: Served | None = None) -> None:
    """Ends a token at once: that for a study, or that for every study.

    Raises:
        ParameterError: There is nobody of that name.
    """
    if (_number(served), name) not in {(one.study or _EVERY, one.name) for one in operators(store)}:
        raise ParameterError("name must be that of an operator; there is none of that name.")
    with store.database.change() as session:
        session.rows("DELETE FROM operator WHERE study = ? AND name = ?", _number(served), name)


def operators(store: Store) -> list[Operator]:
    """Everybody with a token, ended ones too."""
    return [operator for operator, _ in _all(store)]


def who(store: Store, token: str) -> Operator | None:
    """Whose token it is; None where it is nobody's, or has ended."""
    wanted, found = _hash(token), None
    for operator, kept in _all(store):  # all of them are compared, each in the same time
        if hmac.compare_digest(kept, wanted):
            found = operator
    return found if found is not None and store.today < found.expires else None


def _all(store: Store) -> list[tuple[Operator, bytes]]:
    with store.database.look() as session:
        rows = session.rows("SELECT name, hash, study, scopes, expires FROM operator ORDER BY name, study")
    return [
        (Operator(name=name, scopes=tuple(scopes.split(",")), study=study or None, expires=expires), bytes(kept))
        for name, kept, study, scopes, expires in rows
    ]


def _number(served: Served | None) -> int:
    return _EVERY if served is None else served.number


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
