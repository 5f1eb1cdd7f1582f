"""Which key a person is asked about, so that a faker cannot aim: a function of the report id alone, checkable by the server.

The report id is a hash of the credential, so a credential's reports in one study can be linked to each other: that is the price
of a check without secrets. Whoever issued the credential knows whose they are, and links every study it is used in; a device
that makes its own credential for each study is linked by nothing in its reports. With a commitment in the study, the server
reveals its seed only after enrolment, and nobody else can enrol until a wanted key comes up. It does not bind the server, which
knows its seed while it issues credentials and can search for one that gives a wanted key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from .refusals import StudyRefused, require
from .terms import Terms

__all__ = ["assigned_index", "assigned_indices", "check_seed", "new_credential", "new_seed", "report_id"]

_INDEX = b"sabun index\0"
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def new_credential() -> bytes:
    """A credential for one person; a server issues it at enrolment."""
    return secrets.token_bytes(16)


def new_seed() -> tuple[bytes, str]:
    """A server's secret for assigning keys, with the commitment to publish before enrolment."""
    seed = secrets.token_bytes(32)
    return seed, hashlib.sha256(seed).hexdigest()


def check_seed(terms: Terms, seed: bytes) -> None:
    """Makes sure that the revealed seed is the one the study committed to.

    Raises:
        ClientError: It is no bytes.
        StudyRefused: It is not.
    """
    require(isinstance(seed, bytes), "seed", "bytes", type(seed).__name__)
    expected = terms.index_commitment
    if expected is None:
        if seed:
            raise StudyRefused("seed must be left out; this study has no index_commitment.")
    elif not hmac.compare_digest(hashlib.sha256(seed).hexdigest(), expected):
        raise StudyRefused("seed must be the one this study committed to; it is not. Take part only once it is revealed.")


def report_id(terms: Terms, credential: bytes) -> bytes:
    """16 bytes that stand for a credential within one study."""
    return hashlib.sha256(b"sabun report id\0" + terms.short_id + credential).digest()[:16]


def assigned_index(terms: Terms, identity: bytes, seed: bytes = b"") -> int:
    """The key a report id is asked about: exactly uniform over the keys, by rejection."""
    keys = len(terms.keys)
    limit = (1 << 64) // keys * keys
    counter = 0
    while True:
        message = terms.short_id + identity + counter.to_bytes(4, "big")
        drawn = int.from_bytes(hmac.digest(_INDEX + seed, message, "sha256")[:8], "big")
        if drawn < limit:
            return drawn % keys
        counter += 1


def assigned_indices(terms: Terms, identities: Iterable[bytes], seed: bytes = b"") -> list[int]:
    """The keys of many report ids, in less than half the time: what HMAC hashes of its key is hashed once for all of them."""
    keys, first = len(terms.keys), bytes(4)
    limit = (1 << 64) // keys * keys
    key = _INDEX + seed
    block = (key if len(key) <= 64 else hashlib.sha256(key).digest()).ljust(64, b"\0")
    inner = hashlib.sha256(block.translate(_INNER) + terms.short_id)
    outer = hashlib.sha256(block.translate(_OUTER))
    found = []
    for identity in identities:
        inside, outside = inner.copy(), outer.copy()
        inside.update(identity + first)
        outside.update(inside.digest())
        drawn = int.from_bytes(outside.digest()[:8], "big")
        found.append(drawn % keys if drawn < limit else assigned_index(terms, identity, seed))
    return found
