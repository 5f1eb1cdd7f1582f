"""Who stands behind a release: an Ed25519 signature over its canonical bytes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

from sabun.errors import ParameterError, ReleaseError
from sabun.release.encoding import exactly
from sabun.release.signing_keys import fingerprint, is_weak, public_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["ALGORITHM", "Signature", "Signer", "TrustedKeys"]

ALGORITHM = "ed25519"
_DOMAIN = b"sabun-release-1\n"
"""Stands before what is signed, so that a signature made for anything else can never pass for one of a release."""

_SIZES = {"public_key": 32, "signature": 64}

TrustedKeys: TypeAlias = "Ed25519PublicKey | Iterable[Ed25519PublicKey] | None"
"""The public keys a reader trusts; None to check only that the file is whole."""


@dataclass(frozen=True, kw_only=True)
class Signer:
    """Who signed.

    Args:
        fingerprint: Short name of the public key.
        trusted: Whether the key was among those the reader trusts. False means only that the file was not changed since
            whoever holds that key signed it.
    """

    fingerprint: str
    trusted: bool


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A signature with the public key that checks it.

    Args:
        public_key: The signer's 32 public bytes.
        signature: The 64 bytes of the signature.
        algorithm: Always "ed25519".
    """

    public_key: bytes
    signature: bytes
    algorithm: str = ALGORITHM

    def __post_init__(self) -> None:
        if self.algorithm != ALGORITHM:
            raise ParameterError(f"signature.algorithm must be {ALGORITHM!r}; got {self.algorithm!r:.40}.")
        for name, size in _SIZES.items():
            content = getattr(self, name)
            if not isinstance(content, bytes) or len(content) != size:
                raise ParameterError(f"signature.{name} must be {size} bytes; it is not.")
        if is_weak(self.public_key):
            raise ParameterError(
                "signature.public_key must be a key that only its owner can sign with; anybody can sign with it."
            )

    @classmethod
    def of(cls, content: bytes, private_key: Ed25519PrivateKey, *, domain: bytes = _DOMAIN) -> Self:
        """Signs bytes; `domain` stands before them, and says what they are.

        Raises:
            ParameterError: The key is not a private Ed25519 key.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not isinstance(private_key, Ed25519PrivateKey):
            raise ParameterError(f"private_key must be a private Ed25519 key; got {type(private_key).__name__}.")
        return cls(public_key=public_bytes(private_key), signature=private_key.sign(domain + content))

    def check(self, content: bytes, trusted: TrustedKeys = None, *, domain: bytes = _DOMAIN) -> Signer:
        """Makes sure that these bytes were signed, by a trusted key when keys are given.

        Raises:
            ReleaseError: The bytes were changed or the signer is not trusted.
        """
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        name, what = fingerprint(self.public_key), "the release" if domain == _DOMAIN else "the statement"
        if trusted is not None and self.public_key not in _all_bytes(trusted):
            raise ReleaseError(f"{what} must be signed by a trusted key; it is signed by {name}.")
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(self.signature, domain + content)
        except (InvalidSignature, ValueError):
            raise ReleaseError(f"{what} must be as it was signed; it was changed or forged. Do not use it.") from None
        return Signer(fingerprint=name, trusted=trusted is not None)

    def to_dict(self) -> dict[str, str]:
        """Plain JSON types."""
        return {"algorithm": self.algorithm, **{name: base64.b64encode(getattr(self, name)).decode("ascii") for name in _SIZES}}

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Reads what `to_dict` wrote, strictly."""
        fields = exactly(record, {"algorithm", *_SIZES}, "signature")
        try:
            parts = {name: base64.b64decode(fields[name].encode("ascii"), validate=True) for name in _SIZES}
            return cls(algorithm=fields["algorithm"], **parts)
        except (AttributeError, UnicodeEncodeError, binascii.Error):
            raise ReleaseError("signature must hold base64 text; it does not.") from None
        except ParameterError as error:
            raise ReleaseError(str(error)) from None


def _all_bytes(trusted: TrustedKeys) -> set[bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    keys = [trusted] if isinstance(trusted, Ed25519PublicKey | Ed25519PrivateKey) else trusted
    if not isinstance(keys, Iterable):
        raise ParameterError(f"public_key must be an Ed25519 key or several; got {type(trusted).__name__}. Use load_key(path).")
    return {public_bytes(key) for key in keys}
