"""Released files and the keys that signed them, as a person names them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sabun.errors import ParameterError, ReleaseError
from sabun.release import Release, fingerprint, generate_key, load_key, save_key
from sabun.telling.terminal.output import new_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["NewKeys", "load_release", "new_keys", "private_key", "public_key"]


def load_release(file: Path) -> Release:
    """Reads a release; who names the model's folder or the weighted table is told where the release is."""
    meant = file / "release.json" if file.is_dir() else Path(f"{file}.release.json")
    if (file.is_dir() or file.suffix in (".csv", ".parquet")) and meant.is_file():
        raise ReleaseError(f"{file} must be a release; it is what one belongs to. Name the release: {meant}")
    if file.is_dir():
        raise ReleaseError(f"{file} must be a released file; it is a folder. Name a file in it.")
    if file.suffix == ".ledger":
        raise ReleaseError(
            f"{file} must be a release; it is called a ledger. For a page: sabun ledger show {file} --html PAGE.html"
        )
    return Release.load(file)


class NewKeys(NamedTuple):
    """Where a new pair of keys was written, with the fingerprint to read aloud."""

    secret: Path
    public: Path
    fingerprint: str


def new_keys(name: str, folder: Path) -> NewKeys:
    """Makes a signing key: NAME.pem, readable by its owner only, and NAME.pub.pem to give away.

    Raises:
        ParameterError: The name is no plain file name, or one of the files exists.
    """
    if not name or Path(name).name != name:
        raise ParameterError(f"name must be a plain file name; got {name!r:.60}.")
    key = generate_key()
    secret, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    for file in (secret, public):
        new_file(file, name="folder and name")
    save_key(key, secret)
    save_key(key.public_key(), public)
    return NewKeys(secret, public, fingerprint(key.public_key().public_bytes_raw()))


def public_key(file: Path) -> Ed25519PublicKey:
    """The public key in a file, or the public half of a private one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = load_key(file)
    return key.public_key() if isinstance(key, Ed25519PrivateKey) else key


def private_key(file: Path) -> Ed25519PrivateKey:
    """The private key in a file.

    Raises:
        ParameterError: It holds a public key only.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = load_key(file)
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(f"signing_key must be a private key; {str(file)!r} holds a public one. Nobody can sign with that.")
    return key
