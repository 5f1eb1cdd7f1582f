"""Whole files or none: a crash never leaves half a release behind."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from sabun.errors import DataError, ReleaseError

__all__ = ["read_whole", "write_whole"]

_SHAREABLE = 0o666  # the umask takes away what the user does not share


def write_whole(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False, mode: int = _SHAREABLE) -> None:
    """Writes a file that is either complete, on disk, under its name, or not there at all.

    Raises:
        DataError: The file exists and `overwrite` is False, or the operating system refuses.
    """
    target = Path(path)
    if not overwrite and target.exists():
        raise _exists(target)
    half = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        _write_durably(half, content, mode)
        if overwrite:
            os.replace(half, target)
        else:
            _give_name(half, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise DataError(f"{target} must be a place that can be written; the system says: {error.strerror}.") from None
    finally:
        with contextlib.suppress(OSError):
            half.unlink()


def read_whole(path: str | os.PathLike[str], *, max_bytes: int) -> bytes:
    """Reads a file of at most `max_bytes`, looking at its size before its content.

    Raises:
        ReleaseError: The file is too large, missing or unreadable.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(max_bytes + 1) if size <= max_bytes else b""
    except OSError as error:
        raise ReleaseError(f"{os.fspath(path)} must be a readable file; the system says: {error.strerror}.") from None
    if max(size, len(content)) > max_bytes:
        raise ReleaseError(f"{os.fspath(path)} must have at most {max_bytes} bytes; it has more. Pass a larger max_bytes.")
    return content


def _write_durably(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _give_name(half: Path, target: Path) -> None:
    """Names the file only if nobody took the name since we looked."""
    try:
        os.link(half, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links: the earlier look is the best there is
        if target.exists():
            raise _exists(target) from None
        os.replace(half, target)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(target: Path) -> DataError:
    return DataError(f"{target} must be a new file; it exists already. Choose another name, or allow overwriting.")
