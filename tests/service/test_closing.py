"""The end of a round: nothing is added any more, one signed release, no key, and later no reports."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.release import Release
from sabun.service import closing
from sabun.service.closing import close_round, purge_expired, purge_round, tidy
from sabun.service.report_store import Served, Store, TooFew
from sabun.service.round_keys import RoundKeys
from sabun.service.served import require_equal
from sabun.service.session import StoreUnavailable
from sabun.service.sqlite_session import SqliteDatabase
from service.devices import KV3, made_up
from service.test_report_store import batch

PRIVKVM = Study(keys=["a", "b", "c"], epsilon=3, protocol="privkvm", rounds=3)


def filled(store: Store, study: Study = KV3, n: int = 60) -> Served:
    served = store.register(study)
    store.commit([batch(served, made_up(study, n, seed=1))])
    return served


def test_a_closed_round_is_a_release_signed_by_the_server(store: Store) -> None:
    served = filled(store)
    release = close_round(store, served, 0)
    assert release is not None
    assert release.verify(store.keys.signing.public_key()).trusted
    expected = KV3.tally()
    expected.add_reports(made_up(KV3, 60, seed=1))
    assert release.value["frequency"] == tuple(expected.estimate().release().value["frequency"])
    assert close_round(store, served, 0) == release
    kept = store.round(served, 0)
    assert kept is not None
    assert (kept.state, Release.from_json(kept.release or b"")) == ("frozen", release)


def test_the_key_of_a_frozen_round_is_gone(store: Store) -> None:
    served = filled(store)
    key = store.keys.of_round(served.task, 0)
    assert key is not None
    close_round(store, served, 0)
    assert store.keys.of_round(served.task, 0) is None
    assert all(key not in file.read_bytes() for file in store.keys.folder.iterdir())


def test_a_round_with_too_few_reports_stays_open_unless_it_is_abandoned(store: Store) -> None:
    study = Study(keys=["a", "b"], epsilon=1, protocol="kv3", min_batch=50)
    served = filled(store, study, n=49)
    with pytest.raises(TooFew):
        close_round(store, served, 0)
    with pytest.raises(TooFew):
        store.shown(served, 0)
    assert store.commit([batch(served, made_up(study, 1, seed=9))])[0].accepted == 1
    assert store.shown(served, 0).n == 50

    other = filled(store, Study(keys=["c", "d"], epsilon=1, protocol="kv3", min_batch=50, rounds=2), n=10)
    assert close_round(store, other, 0, abandon=True) is None
    kept = store.round(other, 0)
    assert kept is not None
    assert (kept.state, kept.release, store.recount(other, 0).n) == ("purged", None, 0)
    assert [one.state for one in store.rounds(other)] == ["purged", "open"]
    assert close_round(store, other, 0, abandon=True) is None


def test_counters_that_are_not_a_recount_stop_the_release(store: Store) -> None:
    served = filled(store)
    with store.database.change() as session:
        recipe = served.recipe
        wrong = recipe.pack(recipe.add(recipe.zero(), recipe.sample()))
        session.rows("INSERT INTO counter VALUES (1, 99, ?)", wrong)
    with pytest.raises(DataError, match="recount"):
        close_round(store, served, 0)
    kept = store.round(served, 0)
    assert kept is not None
    assert (kept.state, kept.release) == ("closed", None)


def test_privkvm_plays_its_rounds_with_the_means_of_the_last(store: Store) -> None:
    served, tally = store.register(PRIVKVM), PRIVKVM.tally()
    for number in range(3):
        reports = made_up(PRIVKVM, 90, seed=number, number=number)
        waiting = store.round(served, number + 1)
        assert waiting is None
        assert store.commit([batch(served, reports, number)])[0].accepted == 90
        tally.add_reports(reports)
        release = close_round(store, served, number)
        assert store.tally(served, number) == tally
        assert release is not None
        assert release.value["mean_low"] == tuple(tally.estimate().release().value["mean_low"])
        if number < 2:
            opened = store.round(served, number + 1)
            assert opened is not None
            assert opened.feedback == str(list(tally.published_means().values()))


def test_old_reports_are_deleted_and_the_tally_stays(opened: Callable[..., Store]) -> None:
    now = [20_000 * 86_400.0]
    store = opened(clock=lambda: now[0])
    served = filled(store)
    before = store.tally(served, 0)
    close_round(store, served, 0)
    now[0] += 29 * 86_400
    assert purge_expired(store, retention_days=30) == 0
    now[0] -= 500 * 86_400  # a clock that was set back deletes nothing too early
    assert purge_expired(store, retention_days=30) == 0
    now[0] += 501 * 86_400
    assert purge_expired(store, retention_days=30) == 1
    assert purge_expired(store, retention_days=30) == 0
    assert store.recount(served, 0).n == 0
    assert store.tally(served, 0) == before
    assert close_round(store, served, 0) is not None


def test_deleted_reports_are_not_left_in_the_file(tmp_path: Path, opened: Callable[..., Store], place: str) -> None:
    if place.startswith("postgresql"):
        pytest.skip("a dropped table's files are the server's to remove")
    store = opened()
    served = store.register(KV3)
    reports = made_up(KV3, 2000, seed=2)
    store.commit([batch(served, reports)])
    key = store.keys.of_round(served.task, 0) or b""
    ids = [hashlib.blake2b(report[21:37], key=key, digest_size=16).digest() for report in reports]
    files = [Path(place), Path(place + "-wal")]

    def found() -> int:
        content = b"".join(file.read_bytes() for file in files if file.exists())
        return sum(id in content for id in ids)

    assert found() == 2000
    close_round(store, served, 0)
    purge_expired(store, retention_days=0)
    assert found() == 0


@pytest.mark.parametrize("step", ["_freeze", "_open_next", "destroy", "drop"])
def test_a_crash_between_two_steps_is_made_good_at_the_next_start(
    opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    study = Study(keys=["a", "b", "c"], epsilon=1, protocol="kv3", rounds=2)
    store = opened()
    served = filled(store, study)

    class Crash(BaseException):
        pass

    def crash(*_: Any, **__: Any) -> None:
        raise Crash

    if step == "destroy":
        monkeypatch.setattr("sabun.service.round_keys.RoundKeys.destroy_round", crash)
    elif step != "drop":
        monkeypatch.setattr(closing, step, crash)
    if step != "drop":
        with pytest.raises(Crash):
            close_round(store, served, 0)
        monkeypatch.undo()
    else:
        close_round(store, served, 0)
        monkeypatch.setattr(type(store.database), "scrub", crash)
        kept = store.round(served, 0)
        assert kept is not None
        with pytest.raises(Crash):
            purge_round(store, served, kept)
        monkeypatch.undo()
    again = opened(1)
    tidy(again)
    rounds = again.rounds(served)
    assert [one.number for one in rounds] == [0, 1]
    assert rounds[0].state in ("frozen", "purged")
    assert rounds[0].release is not None
    assert again.keys.of_round(served.task, 0) is None
    assert again.commit([batch(served, made_up(study, 5, seed=3, number=1), 1)])[0].accepted == 5


def test_a_deletion_that_failed_is_repeated(opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    served = filled(store)
    close_round(store, served, 0)

    def refused(*_: object) -> None:
        raise StoreUnavailable("busy")

    with store.database.look() as session:
        kind = type(session)
    monkeypatch.setattr(kind, "drop_place", refused)
    with pytest.raises(StoreUnavailable):
        purge_expired(store, retention_days=0)
    monkeypatch.undo()
    assert store.rounds(served)[0].state == "frozen"
    assert store.recount(served, 0).n == 60
    assert purge_expired(store, retention_days=0) == 1
    assert (store.rounds(served)[0].state, store.recount(served, 0).n) == ("purged", 0)


def test_a_deletion_that_fails_stops_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = filled(store), filled(store, Study(keys=["a", "b"], epsilon=1, protocol="kv3"))
    for served in (stuck, other):
        close_round(store, served, 0)

    def destroyed(task: str, number: int) -> None:
        if task == stuck.task:
            raise PermissionError("a key that somebody else put back")

    monkeypatch.setattr(store.keys, "destroy_round", destroyed)
    with pytest.raises(PermissionError):
        purge_expired(store, retention_days=0)
    assert [store.rounds(served)[0].state for served in (stuck, other)] == ["frozen", "purged"]


@pytest.mark.parametrize("again", [tidy, lambda store: purge_expired(store, retention_days=0)], ids=["tidy", "house"])
def test_reports_that_an_older_version_failed_to_delete_are_deleted(store: Store, again: Callable[[Store], Any]) -> None:
    served = filled(store)
    close_round(store, served, 0)
    with store.database.change() as session:
        session.rows("UPDATE round SET state = 'purged'")
    assert store.recount(served, 0).n == 60
    again(store)
    assert store.recount(served, 0).n == 0


@pytest.mark.parametrize("again", [tidy, lambda store: purge_expired(store, retention_days=30)], ids=["tidy", "house"])
def test_an_abandoned_round_is_deleted_after_a_crash_and_never_released(
    store: Store, monkeypatch: pytest.MonkeyPatch, again: Callable[[Store], Any]
) -> None:
    served = filled(store, Study(keys=["a", "b", "c"], epsilon=1, protocol="kv3", rounds=2))

    def crash(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(closing, "purge_round", crash)
    with pytest.raises(StoreUnavailable):
        close_round(store, served, 0, abandon=True)
    monkeypatch.undo()
    assert store.rounds(served)[0].state == "closed"
    again(store)
    kept, following = store.rounds(served)
    assert following.state == "open"
    assert (kept.state, kept.release, store.recount(served, 0).n) == ("purged", None, 0)
    assert close_round(store, served, 0) is None


def test_a_round_that_cannot_be_signed_stays_open(store: Store) -> None:
    served = filled(store)
    (store.keys.folder / "signing.pem").write_text("no key")
    with pytest.raises(DataError, match="Ed25519"):
        close_round(store, served, 0)
    assert store.rounds(served)[0].state == "open"
    assert store.commit([batch(served, made_up(KV3, 5, seed=9))])[0].accepted == 5


def test_a_log_that_somebody_reads_is_emptied_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(SqliteDatabase(tmp_path / "s"), RoundKeys(tmp_path / "keys"))
    served = filled(store)
    close_round(store, served, 0)
    reader = sqlite3.connect(tmp_path / "s", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM report").fetchall()
    purge_expired(store, retention_days=0)
    assert "emptied later" in caplog.text
    assert (tmp_path / "s-wal").stat().st_size > 0
    reader.execute("COMMIT")
    closing.scrub(store)
    assert (tmp_path / "s-wal").stat().st_size == 0
    reader.close()
    store.database.close()


def test_every_exit_between_two_statements_leaves_the_counters_exact(tmp_path: Path) -> None:
    """A child adds reports and is gone at its first statement, at its second, and so on until it comes to the end."""
    Store(SqliteDatabase(tmp_path / "s"), RoundKeys(tmp_path / "keys")).register(KV3)
    reports = made_up(KV3, 10, seed=4)

    def gone_at(last: int) -> None:
        store = Store(SqliteDatabase(tmp_path / "s"), RoundKeys(tmp_path / "keys"))
        [served] = store.all_served()
        seen = itertools.count(1)
        connection: sqlite3.Connection = store.database._connection()  # type: ignore[attr-defined]
        connection.set_trace_callback(lambda _: os._exit(1) if next(seen) == last else None)
        store.commit([batch(served, reports)])
        os._exit(0)

    for last in range(1, 60):
        child = multiprocessing.get_context("fork").Process(target=gone_at, args=(last,))
        child.start()
        child.join()
        store = Store(SqliteDatabase(tmp_path / "s"), RoundKeys(tmp_path / "keys"))
        [served] = store.all_served()
        require_equal(store.counters(served, 0), store.recount(served, 0))
        assert store.counters(served, 0).n == (0 if child.exitcode else 10)
        store.database.close()
        if child.exitcode == 0:
            break
    assert 8 < last < 59
