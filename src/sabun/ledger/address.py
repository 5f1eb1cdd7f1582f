"""Where a ledger is, as people type it: a file's path, or the address of a database server.

A server's address may hold a password. It is taken out here, before anything else sees the address: what is shown, logged,
pickled or repeated in an error is the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from sabun.errors import ParameterError

__all__ = ["Address", "is_address", "shown", "with_account"]

_SCHEMES = ("postgresql://", "postgres://")
_TORN = re.compile(r"postgres(ql)?:/")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[\w.%~-]*)(:[0-9]{1,5})?", re.ASCII)
_LEDGER = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_ACCOUNT = re.compile(r"(?P<place>[^#]*[?&]ledger=[a-z0-9_]+)::(?P<account>[^&=]+)", re.ASCII)
_SECRETS = ("password", "sslpassword")
_FORM = "postgresql://USER@HOST/DATABASE?ledger=NAME"


def is_address(place: object) -> bool:
    """Whether a place is on a server; anything else is for the file system to judge.

    Raises:
        ParameterError: It is an address that was made a `Path`, which takes out a slash.
    """
    words = os.fspath(place) if isinstance(place, str | os.PathLike) else place
    if not isinstance(words, str) or not _TORN.match(words):
        return False
    if not words.startswith(_SCHEMES):
        # Not repeated: a password may be in it, where nothing can tell which part it is.
        raise ParameterError(f"a ledger's address on a server must be a text such as {_FORM}; got a path. Pass it as text.")
    return True


def shown(place: str | os.PathLike[str]) -> str:
    """A place in words that may be printed: an address without its password, a path as it is."""
    return Address.read(os.fspath(place)).shown if is_address(place) else str(place)


def with_account(typed: str) -> tuple[str, str]:
    """The place of a ledger that was typed, and the account of it: FILE::NAME, or an address that ends in ledger=NAME::NAME.

    A file that is called that is the ledger itself; so is what names no file at all, for whoever opens it to say so.
    """
    if is_address(typed):
        found = _ACCOUNT.fullmatch(typed)
        return (typed, "") if found is None else (found["place"], found["account"])
    place, _, account = typed.rpartition("::")
    return (place, account) if place and not os.path.exists(typed) and os.path.exists(place) else (typed, "")


@dataclass(frozen=True, kw_only=True)
class Address:
    """A ledger on a server.

    Args:
        server: The address as libpq reads it, without secrets and without the ledger's name.
        ledger: Name of the ledger, a schema of that database.
        secrets: What must never be shown.
    """

    server: str
    ledger: str
    secrets: Mapping[str, str] = field(repr=False)

    @property
    def shown(self) -> str:
        """All of it but the secrets."""
        return f"{self.server}{'&' if '?' in self.server else '?'}ledger={self.ledger}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Takes an address apart.

        Raises:
            ParameterError: It is malformed; the message repeats nothing of it, for the password might be in any part.
        """
        parts = urlsplit(text)
        user, at, hosts = parts.netloc.rpartition("@")
        name, _, password = user.partition(":")
        try:
            options = parse_qsl(parts.query, strict_parsing=True, keep_blank_values=True) if parts.query else []
        except ValueError:
            options = [("", "")]
        well_formed = (
            text.isprintable()
            and "@" not in name + password + parts.path + parts.query
            and not parts.fragment
            and all(_HOST.fullmatch(host) for host in hosts.split(","))
            and all(option for option, _ in options)
            and len({option for option, _ in options}) == len(options)
        )
        if not well_formed:
            raise ParameterError(
                f"a ledger's address must have the form {_FORM}; got another. A password with any of : / ? # @ % must have "
                "them written as %3A %2F %3F %23 %40 %25; better leave it out and keep it in a password file."
            )
        given = dict(options)
        ledger = given.pop("ledger", "sabun")
        if not _LEDGER.fullmatch(ledger) or ledger.startswith("pg_") or ledger in ("public", "information_schema"):
            raise ParameterError(
                f"ledger must be small letters, digits and _, beginning with no digit nor 'pg_', and not 'public'; "
                f"got {ledger!r:.80}."
            )
        secrets = {word: given.pop(word) for word in _SECRETS if word in given}
        if password:
            secrets["password"] = unquote(password)
        rest = f"?{urlencode(given, quote_via=quote)}" if given else ""
        return cls(server=f"postgresql://{name}{at}{hosts}{parts.path}{rest}", ledger=ledger, secrets=secrets)
