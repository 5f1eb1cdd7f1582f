"""Ed25519 keys for signing releases."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING

from sabun.errors import DataError, ParameterError
from sabun.release.files import read_whole, write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["fingerprint", "generate_key", "load_key", "public_bytes", "save_key"]

_LARGEST_KEY_FILE = 16_384
_ONLY_OWNER = 0o600


def generate_key() -> Ed25519PrivateKey:
    """A new private key from the operating system's entropy; `.public_key()` is the half to give away."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def save_key(key: Ed25519PrivateKey | Ed25519PublicKey, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Writes a key as PEM; a private key is readable by its owner only.

    Raises:
        ParameterError: The key is not an Ed25519 key.
        DataError: The file exists and `overwrite` is False, or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    pem = serialization.Encoding.PEM
    if isinstance(key, Ed25519PrivateKey):
        content = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        write_whole(path, content, overwrite=overwrite, mode=_ONLY_OWNER)
    elif isinstance(key, Ed25519PublicKey):
        write_whole(path, key.public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo), overwrite=overwrite)
    else:
        raise ParameterError(f"key must be an Ed25519 key; got {type(key).__name__}. Make one with generate_key().")


def load_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey | Ed25519PublicKey:
    """Reads what `save_key` wrote: the private or the public half, whichever the file holds.

    Raises:
        DataError: The file is not an unencrypted Ed25519 key in PEM form.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    content = read_whole(path, max_bytes=_LARGEST_KEY_FILE)
    try:
        if b"PRIVATE KEY" in content:
            key: object = serialization.load_pem_private_key(content, password=None)
        else:
            key = serialization.load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PrivateKey | Ed25519PublicKey):
        return key
    raise DataError(
        f"{os.fspath(path)} must be an unencrypted Ed25519 key in PEM form; it is not. Make one with generate_key()."
    )


def public_bytes(key: Ed25519PrivateKey | Ed25519PublicKey) -> bytes:
    """The 32 bytes of the public half of a key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    if isinstance(key, Ed25519PrivateKey):
        key = key.public_key()
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError(f"key must be an Ed25519 key; got {type(key).__name__}. Read one with load_key(path).")
    return key.public_bytes_raw()


def fingerprint(public_key: bytes) -> str:
    """A short name for a public key: the first 128 bits of its SHA-256, in base32 groups that can be read aloud."""
    word = base64.b32encode(hashlib.sha256(public_key).digest()[:16]).decode("ascii").rstrip("=")
    return "-".join(word[start : start + 6] for start in range(0, len(word), 6))
