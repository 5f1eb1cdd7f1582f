"""Secrets of the collector, in a folder of files that only their owner can read, never in the database.

A round's key scrambles the report ids that the database keeps; once it is destroyed, rows of different rounds, and the list of
enrolled ids, cannot be linked any more. Keep the folder out of backups of the database.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

from sabun.errors import DataError
from sabun.release.files import write_whole
from sabun.release.signing_keys import generate_key, load_key, save_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["RoundKeys", "check_of"]

_ONLY_OWNER = 0o600
_SIGNING = "signing.pem"


def check_of(key: bytes) -> bytes:
    """What the database keeps of a key, so that another one is noticed: it tells nothing of the key."""
    return hashlib.blake2b(b"which key", key=key, digest_size=16).digest()


@final
class RoundKeys:
    """The folder of secrets.

    Args:
        folder: The folder; made where there is none.

    Raises:
        DataError: Others than its owner can read it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and self.folder.stat().st_mode & 0o077:
            raise DataError(f"{self.folder} must be a folder that only its owner can read. Try: chmod 700 {self.folder}")
        self._known: dict[str, bytes] = {}

    def of_round(self, task: str, number: int) -> bytes | None:
        """The key of a round; None where there is none (any more)."""
        return self._read(_name(task, number))

    def make_round(self, task: str, number: int) -> bytes:
        """The key of a round that is about to open; the one that is there, if somebody was quicker."""
        return self._made(_name(task, number))

    def destroy_round(self, task: str, number: int) -> None:
        """Writes over a round's key and removes it; what a disk keeps of overwritten blocks is its own affair."""
        name = _name(task, number)
        self._known.pop(name, None)
        with suppress(FileNotFoundError):
            with open(self.folder / name, "r+b") as file:
                file.write(bytes(32))
                file.flush()
                os.fsync(file.fileno())
            (self.folder / name).unlink()

    def forget_round(self, task: str, number: int) -> None:
        """Drops a key from this process's memory."""
        self._known.pop(_name(task, number), None)

    @property
    def enrolment(self) -> bytes:
        """The secret from which nonces of enrolments are made."""
        return self._made("enrolment.key")

    @property
    def signing(self) -> Ed25519PrivateKey:
        """The key that signs releases of frozen rounds."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        place = self.folder / _SIGNING
        with suppress(DataError):  # somebody was quicker
            if not place.exists():
                save_key(generate_key(), place)
        key = load_key(place)
        if not isinstance(key, Ed25519PrivateKey):
            raise DataError(f"{place} must hold a private key; it holds a public one.")
        return key

    def keep_seed(self, task: str, seed: bytes) -> None:
        """Keeps the seed of a study that committed to one."""
        if seed and self.seed(task) != seed:
            write_whole(self.folder / f"{task}.seed", seed, overwrite=True, mode=_ONLY_OWNER)

    def seed(self, task: str) -> bytes:
        """The seed of a study; empty where it has none."""
        return self._read(f"{task}.seed") or b""

    def _made(self, name: str) -> bytes:
        with suppress(DataError):  # it is there: written by an earlier run, or by another process just now
            if not (self.folder / name).exists():
                write_whole(self.folder / name, secrets.token_bytes(32), mode=_ONLY_OWNER)
        found = self._read(name)
        if found is None:
            raise DataError(f"{self.folder} must be a folder in which keys can be kept; it is not.")
        return found

    def _read(self, name: str) -> bytes | None:
        if name not in self._known:
            try:
                self._known[name] = (self.folder / name).read_bytes()
            except FileNotFoundError:
                return None
        return self._known[name]


def _name(task: str, number: int) -> str:
    return f"{task}-{number}.key"
