"""Who takes part in a study: names with public keys, which nothing can change afterwards."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self, final

from sabun import checks
from sabun.errors import ParameterError

__all__ = ["PublicKeys"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class PublicKeys(Mapping[str, str]):
    """Names of organisations with base64 of their public keys, sorted; read-only, so that a study's hash stays true.

    Example:
        >>> dict(PublicKeys.of({}))
        {}
    """

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, organisations: object) -> Self:
        """Reads a mapping from names to keys (base64 of 32 bytes, or Ed25519 public keys).

        Raises:
            ParameterError: A name is no text, or a key is no public key.
        """
        if not isinstance(organisations, Mapping):
            given = type(organisations).__name__
            raise ParameterError(f"organisations must be a mapping from names to public keys; got {given}.")
        for name in organisations:
            checks.text(organisation=name)
        return cls(tuple((str(name), _key(name, organisations[name])) for name in sorted(organisations)))

    def __getitem__(self, name: str) -> str:
        return dict(self.pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return repr(dict(self.pairs))


def _key(name: str, key: object) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    if isinstance(key, Ed25519PrivateKey):
        raise ParameterError(f"the key of organisation {name!r} must be its public half; got a private key. Never share that.")
    if isinstance(key, Ed25519PublicKey):
        return base64.b64encode(key.public_bytes_raw()).decode("ascii")
    try:
        content = base64.b64decode(str(key).encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        content = b""
    if not isinstance(key, str) or len(content) != 32:
        raise ParameterError(f"the key of organisation {name!r} must be an Ed25519 public key, or base64 of its 32 bytes.")
    return base64.b64encode(content).decode("ascii")
