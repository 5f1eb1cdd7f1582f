"""Whatever holds a secret can be read by its owner alone, is on disk before it is used, and is overwritten before it goes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sabun.errors import DataError
from sabun.keyvalue.client import Client, Diary
from sabun.keyvalue.client.outbox import Outbox
from sabun.learning import PrivateClassifier, checkpoint
from sabun.release import generate_key, save_key
from sabun.service.report_store import Store
from sabun.service.round_keys import RoundKeys
from sabun.service.sqlite_session import SqliteDatabase
from service.devices import KV3

BITS = [1 << place for place in range(6)]
"""What a group and what others may do, one by one."""


def device(folder: Path) -> None:
    client = Client(KV3.terms, diary=Diary(folder / "diary"))
    box = Outbox(folder / "outbox")
    box.put(client.report({"LINE": 1}))
    box.promise(KV3.task_id, "ticket")
    box.nonce(KV3.task_id, "ticket", b"nonce")


def collector(folder: Path) -> None:
    keys = RoundKeys(folder / "keys")
    store = Store(SqliteDatabase(folder / "reports.sqlite"), keys)
    store.register(KV3)
    keys.keep_seed("task", b"seed")
    assert keys.enrolment
    assert keys.signing
    store.database.close()


class Stopped(Exception):
    """In the middle of a run."""


def interrupted(folder: Path, look: Callable[[], None] = lambda: None) -> None:
    """A run that is looked at as it was begun, before anything is written again, and goes no further."""

    def stop(share: float, words: str) -> None:
        look()
        raise Stopped

    rows = np.random.default_rng(0).random((40, 2))
    how = {"epsilon": 2, "delta": 1e-3, "method": "dp-sgd", "sampling_rate": 0.5, "epochs": 3}
    with pytest.raises(Stopped):
        PrivateClassifier(checkpoint=folder / "run", progress=stop, **how).fit(rows, rows[:, 0] > 0.5)


def signer(folder: Path) -> None:
    save_key(generate_key(), folder / "key.pem")


def begun(folder: Path) -> None:
    interrupted(folder, lambda: only_its_owners(folder))


@pytest.mark.parametrize("made", [device, collector, begun, signer])
def test_a_new_file_with_a_secret_is_its_owners_alone(made: Callable[[Path], None], tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made(tmp_path)
    finally:
        os.umask(before)
    only_its_owners(tmp_path)


def only_its_owners(folder: Path) -> None:
    """Every file by itself: the folder around it may have been there before, for anybody to look into."""
    found = [file for file in folder.rglob("*") if file.is_file()]
    assert found
    for file in found:
        assert not file.stat().st_mode & 0o077, file.name


@pytest.mark.parametrize("bit", BITS, ids=oct)
def test_what_was_too_wide_is_narrowed_or_refused(bit: int, tmp_path: Path) -> None:
    diary, keys = tmp_path / "diary", tmp_path / "keys"
    Diary(diary).close()
    diary.chmod(0o600 | bit)
    Diary(diary).close()
    assert stat.S_IMODE(diary.stat().st_mode) == 0o600
    keys.mkdir()
    keys.chmod(0o700 | bit)
    with pytest.raises(DataError, match="must be a folder that only its owner can read"):
        RoundKeys(keys)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Names and contents of the files that were brought to disk, in order."""
    found: list[tuple[str, bytes]] = []
    true = os.fsync

    def fsync(handle: int) -> None:
        place = Path(f"/proc/self/fd/{handle}").resolve()
        if place.is_file():
            found.append((place.name, place.read_bytes()))
        true(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_key_is_on_disk_before_anything_is_drawn_with_it(synced: list[tuple[str, bytes]], tmp_path: Path) -> None:
    keys: list[bytes] = []

    def begun() -> None:
        keys.append((tmp_path / "run" / "run.secret").read_bytes())
        assert ("run.secret", keys[0]) in synced

    interrupted(tmp_path, begun)
    assert len(keys[0]) == 32


def test_a_key_is_overwritten_on_disk_before_it_goes(synced: list[tuple[str, bytes]], tmp_path: Path) -> None:
    keys = RoundKeys(tmp_path / "keys")
    keys.make_round("task", 3)
    [file] = (tmp_path / "keys").iterdir()
    keys.destroy_round("task", 3)
    interrupted(tmp_path)
    checkpoint._wipe(tmp_path / "run")
    for name, size in ((file.name, 32), ("run.secret", 32)):
        assert [content for known, content in synced if known == name][-1] == bytes(size), name
    assert not any((file.exists(), (tmp_path / "run" / "run.secret").exists(), (tmp_path / "run" / "run.state").exists()))
