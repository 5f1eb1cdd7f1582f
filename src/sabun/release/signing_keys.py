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

__all__ = ["fingerprint", "generate_key", "is_weak", "load_key", "public_bytes", "save_key"]

_LARGEST_KEY_FILE = 16_384
_FIELD = 2**255 - 19
_CURVE = -121665 * pow(121666, -1, _FIELD) % _FIELD
_ONLY_OWNER = 0o600
_WEAK = "anybody can sign with this one. Do not trust whoever gave it to you."


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
        public_bytes(key)  # refuses one that anybody could sign with
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
        if isinstance(key, Ed25519PublicKey) and is_weak(key.public_bytes_raw()):
            raise DataError(f"{os.fspath(path)} must be a key that only its owner can sign with; {_WEAK}")
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
    content = key.public_bytes_raw()
    if is_weak(content):
        raise ParameterError(f"key must be one that only its owner can sign with; {_WEAK}")
    return content


def is_weak(public_key: bytes) -> bool:
    """Whether anybody could sign for a public key: its point has order 1, 2, 4 or 8, or is a second spelling of another's.

    Such points have y = 0, 1 or -1, or lie halfway to y = 0, where x² = -y² and so d y⁴ + 2 y² = 1 (RFC 8032, section 5.1).
    """
    y = int.from_bytes(public_key, "little") % (1 << 255)
    return y >= _FIELD or y * (y**2 - 1) * (_CURVE * y**4 + 2 * y**2 - 1) % _FIELD == 0


def fingerprint(public_key: bytes) -> str:
    """A short name for a public key: the first 128 bits of its SHA-256, in base32 groups that can be read aloud."""
    word = base64.b32encode(hashlib.sha256(public_key).digest()[:16]).decode("ascii").rstrip("=")
    return "-".join(word[start : start + 6] for start in range(0, len(word), 6))
