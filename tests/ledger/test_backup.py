"""A backup is whole, or there is none under its name."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from sabun.errors import LedgerError
from sabun.ledger import Ledger

ABOUT_FILES = True


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "backups"
    made.mkdir()
    return made


def test_a_full_disk_leaves_no_cut_copy(ledger, folder, promise, monkeypatch):
    ledger.charge(promise(), purpose="p")

    def full(original, made):
        made.write(original.read(100))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfileobj", full)
        with pytest.raises(LedgerError, match=r"\(No space left on device\)\. No file was left there; choose a free path with"):
            ledger.backup(folder / "copy.ledger")
    assert list(folder.iterdir()) == []
    ledger.backup(folder / "copy.ledger")
    assert [file.name for file in folder.iterdir()] == ["copy.ledger"]
    assert Ledger.open(folder / "copy.ledger").verify() == ledger.verify()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_a_copy_that_was_stopped_leaves_nothing(ledger, folder, monkeypatch, stop):
    def stopped(original, made):
        made.write(original.read(100))
        raise stop

    monkeypatch.setattr(shutil, "copyfileobj", stopped)
    with pytest.raises(stop):
        ledger.backup(folder / "copy.ledger")
    assert list(folder.iterdir()) == []


def test_a_file_system_without_hard_links_takes_a_backup_too(ledger, path, folder, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    copy = folder / "copy.ledger"
    ledger.backup(copy)
    assert copy.read_bytes() == path.read_bytes()
    copy.write_bytes(b"precious")
    with pytest.raises(LedgerError, match="File exists"):
        ledger.backup(copy)
    assert copy.read_bytes() == b"precious"
    assert [file.name for file in folder.iterdir()] == ["copy.ledger"]
