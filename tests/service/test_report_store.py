"""The laws of the store, in a file and on a server."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.keyvalue.client import PROTOCOLS, StudyRefused
from sabun.keyvalue.client.assignment import new_seed
from sabun.keyvalue.collector import Register
from sabun.service.adding import _refusal
from sabun.service.arrivals import read_reports
from sabun.service.closing import close_round
from sabun.service.report_store import Batch, Receipt, Round, Served, Store
from sabun.service.round_keys import RoundKeys
from sabun.service.served import require_equal
from sabun.service.session import StoreUnavailable
from sabun.service.sqlite_session import SqliteDatabase
from sabun.service.writer import Busy, Writer
from service.devices import KV3, made_up


def batch(served: Served, reports: Sequence[bytes] | bytes, number: int = 0) -> Batch:
    return Batch(served=served, number=number, arrival=read_reports(served.study, number, reports, seed=served.seed))


def agrees(store: Store, served: Served, *reports: Sequence[bytes]) -> None:
    """The tally, the counters and a recount are those of the reports, each id once; the outcomes add up to them."""
    expected = served.study.tally()
    register = Register(ids={})
    for some in reports:
        expected.add_reports(some, register=register)
    assert store.tally(served, 0) == expected
    require_equal(store.counters(served, 0), store.recount(served, 0))
    accepted = sum(n for _, _, what, n in store.outcomes(served) if what == "accepted")
    assert accepted == expected.counters.n


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_counted_is_what_a_tally_of_the_same_reports_counts(store: Store, protocol: str) -> None:
    study = Study(keys=list(range(9)), epsilon=2, protocol=protocol)
    served = store.register(study)
    reports = made_up(study, 150, seed=1)
    assert store.commit([batch(served, reports)]) == [Receipt(accepted=150, duplicate=0, rejected=[])]
    agrees(store, served, reports)


def test_repeated_reordered_and_replayed_batches_count_once(store: Store) -> None:
    served, rng = store.register(KV3), np.random.default_rng(2)
    reports = made_up(KV3, 300, seed=2)
    found: Counter[str] = Counter()
    sent = 0
    for _ in range(12):
        some = [reports[place] for place in rng.integers(0, len(reports), 80)]  # repeats within a batch too
        some += some[:3]
        rng.shuffle(some)  # type: ignore[arg-type]
        sent += len(some)
        for receipt in store.commit([batch(served, some[:40]), batch(served, some[40:])]):
            found += Counter(accepted=receipt.accepted, duplicate=receipt.duplicate, rejected=len(receipt.rejected))
    store.commit([batch(served, reports)])
    assert found["rejected"] == 0
    assert found.total() == sent
    agrees(store, served, reports)


def test_the_first_answer_under_an_id_counts_and_another_is_refused_and_counted(store: Store) -> None:
    served = store.register(KV3)
    report, second = made_up(KV3, 2, seed=3)
    other, changed = (one[:-1] + bytes([(one[-1] + 1) % 3]) for one in (report, second))
    assert store.commit([batch(served, [report, other, report])]) == [
        Receipt(accepted=1, duplicate=1, rejected=[(1, "conflict")])
    ]
    assert store.commit([batch(served, [other])]) == [Receipt(accepted=0, duplicate=0, rejected=[(0, "conflict")])]
    assert store.commit([batch(served, [second]), batch(served, [changed])])[1].rejected == [(0, "conflict")]
    agrees(store, served, [report, second])
    assert [(what, n) for _, _, what, n in store.outcomes(served)] == [("accepted", 2), ("conflict", 3), ("duplicate", 1)]


def test_several_studies_share_a_store_and_nothing_else(store: Store) -> None:
    other = Study(keys=["a", "b"], epsilon=1, protocol="pckv-ue")
    first, second = store.register(KV3), store.register(other)
    here, there = made_up(KV3, 40, seed=4), made_up(other, 30, seed=5)
    wrong = store.commit([batch(first, here), batch(second, there), batch(second, here)])[2]
    assert {reason for _, reason in wrong.rejected} <= {"length", "study"}
    agrees(store, first, here)
    agrees(store, second, there)
    assert [served.study.task_id for served in store.all_served()] == [KV3.task_id, other.task_id]


def test_a_report_counts_in_its_own_round_only(store: Store) -> None:
    study = Study(keys=["a", "b", "c"], epsilon=1, protocol="kv3", rounds=3)
    served = store.register(study)
    first, second = made_up(study, 20, seed=6), made_up(study, 10, seed=7, number=1)
    assert store.commit([batch(served, second)])[0].rejected == [(place, "round") for place in range(10)]
    assert store.commit([batch(served, second, number=1)])[0].rejected == [(place, "early") for place in range(10)]
    assert [(number, what, n) for number, _, what, n in store.outcomes(served)] == [(0, "early", 10), (0, "round", 10)]
    store.commit([batch(served, first)])
    close_round(store, served, 0)
    assert store.commit([batch(served, first)])[0].rejected == [(place, "late") for place in range(20)]
    assert store.commit([batch(served, second, number=1)])[0].accepted == 10
    assert store.tally(served, 1).n == 10


def test_a_backup_that_was_made_while_reports_came_can_be_gone_on_from(tmp_path: Path) -> None:
    """As the documentation says it: by the database's own means, with the folder of keys kept apart."""
    keys, reports = RoundKeys(tmp_path / "keys"), made_up(KV3, 90, seed=14)
    store = Store(SqliteDatabase(tmp_path / "s"), keys)
    served = store.register(KV3)
    store.commit([batch(served, reports[:60])])
    with (
        contextlib.closing(sqlite3.connect(tmp_path / "s")) as kept,
        contextlib.closing(sqlite3.connect(tmp_path / "copy")) as to,
    ):
        kept.backup(to)
    store.commit([batch(served, reports[60:])])
    store.database.close()
    restored = Store(SqliteDatabase(tmp_path / "copy"), keys)
    [served] = restored.all_served()
    agrees(restored, served, reports[:60])
    restored.commit([batch(served, reports)])  # devices that were never answered, and some that were
    agrees(restored, served, reports)
    restored.database.close()


def test_no_table_holds_an_id_or_a_time_finer_than_an_hour(opened: Callable[..., Store]) -> None:
    store = opened(clock=lambda: 1_800_000_123.0)
    reports = made_up(KV3, 60, seed=13)
    served = store.register(KV3)
    store.commit([batch(served, reports)])
    tables = ("study", "round", "report", "counter", "outcome", "ticket", "credential", "operator", "version")
    with store.database.look() as session:
        kept = [value for name in tables for row in session.rows(f"SELECT * FROM {name}") for value in row]
    assert sum(value == served.number for value in kept) >= 60
    whole = b"".join(bytes(value) for value in kept if isinstance(value, bytes | memoryview))
    assert not any(report[21:37] in whole for report in reports)
    assert max(value for value in kept if isinstance(value, int)) == 500_000, "hours since 1970"


@pytest.mark.parametrize(("today", "reason"), [("2026-01-01", "early"), ("2026-03-01", "late"), ("2026-02-01", None)])
def test_days_outside_the_studys_own_are_refused(opened: Callable[..., Store], today: str, reason: str | None) -> None:
    study = Study(keys=["a", "b"], epsilon=1, protocol="kv3", not_before="2026-01-15", not_after="2026-02-15")
    seconds = 86_400.0 * (date.fromisoformat(today) - date(1970, 1, 1)).days
    store = opened(clock=lambda: seconds)
    served = store.register(study)
    [receipt] = store.commit([batch(served, made_up(study, 4, seed=8))])
    assert [why for _, why in receipt.rejected] == ([] if reason is None else [reason] * 4)
    assert store.counters(served, 0).n == receipt.accepted


def test_clocks_that_jump_change_no_count(opened: Callable[..., Store]) -> None:
    moments = iter([1.8e9, 1.2e9, 1.8e9, 0.0, 4e9, 1.8e9] * 40)
    store = opened(clock=lambda: next(moments))
    served = store.register(KV3)
    reports = made_up(KV3, 100, seed=9)
    for start in range(0, 100, 20):
        store.commit([batch(served, reports[start : start + 20]), batch(served, reports[:5])])
    agrees(store, served, reports)


def test_two_collectors_on_one_database_count_once(opened: Callable[..., Store]) -> None:
    reports = made_up(KV3, 400, seed=10)
    clashing = [report[:-1] + bytes([(report[-1] + 1) % 3]) for report in reports[:50]]
    stores = [opened(shard) for shard in range(3)] + [opened(0)]  # two of them call themselves by the same number
    served = stores[0].register(KV3)
    receipts: list[Receipt] = []
    failed: list[BaseException] = []

    def send(place: int) -> None:
        try:
            own = np.random.default_rng(place)
            for _ in range(8):
                some = [reports[index] for index in own.permutation(400)[:120]]
                receipts.extend(stores[place].commit([batch(served, some), batch(served, clashing[:10] if place else [])]))
        except BaseException as error:
            failed.append(error)

    stores[0].commit([batch(served, reports[:50])])
    threads = [threading.Thread(target=send, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    stores[1].commit([batch(served, reports)])
    agrees(stores[2], served, reports)
    assert {reason for receipt in receipts for _, reason in receipt.rejected} == {"conflict"}


def test_closing_waits_for_those_who_add_and_loses_nothing(opened: Callable[..., Store]) -> None:
    adding, closing = opened(0), opened(1)
    served = adding.register(KV3)
    reports = made_up(KV3, 600, seed=11)
    taken: list[bytes] = []
    adding.commit([batch(served, reports[:20])])
    begun = threading.Event()

    def add() -> None:
        for start in range(20, 600, 20):
            if adding.commit([batch(served, reports[start : start + 20])])[0].accepted:
                taken.extend(reports[start : start + 20])
            begun.set()

    thread = threading.Thread(target=add)
    thread.start()
    begun.wait()
    release = close_round(closing, served, 0)
    thread.join()
    agrees(closing, served, reports[:20], taken)
    assert release is not None
    assert sum(release["n"]) == 20 + len(taken)


def test_a_full_store_keeps_what_it_answered_and_takes_the_rest_later(tmp_path: Path) -> None:
    keys = RoundKeys(tmp_path / "keys")
    Store(SqliteDatabase(tmp_path / "s"), keys).register(KV3)
    full = Store(SqliteDatabase(tmp_path / "s", most_pages=60), keys)
    [served] = full.all_served()
    answered: list[bytes] = []
    reports = made_up(KV3, 20_000, seed=12)

    def fill() -> None:
        for start in range(0, len(reports), 500):
            some = reports[start : start + 500]
            full.commit([batch(served, some)])
            answered.extend(some)

    with pytest.raises(StoreUnavailable, match="full"):
        fill()
    assert 500 <= len(answered) < len(reports)
    agrees(full, served, answered)
    full.database.close()
    roomy = Store(SqliteDatabase(tmp_path / "s"), keys)
    roomy.commit([batch(served, reports[:10_000])])
    agrees(roomy, served, answered, reports[:10_000])


@pytest.mark.parametrize("with_a_key", [False, True])
def test_another_folder_of_keys_adds_nothing_for_an_id_would_count_twice(
    opened: Callable[..., Store], with_a_key: bool, caplog: pytest.LogCaptureFixture
) -> None:
    served = opened().register(KV3)
    stranger = opened(1, keys="others")
    if with_a_key:
        stranger.keys.make_round(served.task, 0)
    assert stranger.register(KV3) == served  # served all the same: the round can be abandoned
    assert "folder of keys" in caplog.text
    with pytest.raises(StoreUnavailable):
        stranger.commit([batch(served, made_up(KV3, 3, seed=13))])
    assert stranger.counters(served, 0).n == 0
    assert close_round(stranger, served, 0, abandon=True) is None
    assert [one.state for one in stranger.rounds(served)] == ["purged"]


def test_the_rule_of_enrolment_stays_once_reports_have_come(store: Store) -> None:
    store.register(KV3)
    assert store.register(KV3, tickets=True).tickets
    served = store.register(KV3)
    store.commit([batch(served, made_up(KV3, 1, seed=14))])
    with pytest.raises(ParameterError, match="enrolment"):
        store.register(KV3, tickets=True)


def test_a_writer_takes_what_waits_together_and_answers_each(store: Store) -> None:
    served, writer = store.register(KV3), Writer(store)
    reports = made_up(KV3, 200, seed=15)
    futures = [writer.add(batch(served, reports[start : start + 10])) for start in range(0, 200, 10)]
    assert [future.result(60).accepted for future in futures] == [10] * 20
    assert writer.figures.commits <= 20
    writer.end()
    agrees(store, served, reports)
    assert not writer.alive
    with pytest.raises(Busy):
        writer.add(batch(served, reports))


def test_a_failed_change_is_told_to_everybody_who_waits_for_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    served, writer = store.register(KV3), Writer(store)
    reports = made_up(KV3, 20, seed=16)

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("sabun.service.adding.Adder._note", broken)
    with pytest.raises(StoreUnavailable):
        writer.add(batch(served, reports)).result(60)
    monkeypatch.undo()
    assert store.counters(served, 0).n == 0
    assert writer.add(batch(served, reports)).result(60).accepted == 20
    writer.end()


def test_the_lost_key_of_one_study_stops_no_other(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    other = Study(keys=["a", "b"], epsilon=1, protocol="kv3")
    lost, served = store.register(KV3), store.register(other)
    store.keys.destroy_round(lost.task, 0)
    reports = made_up(other, 10, seed=17)
    batches = [batch(lost, made_up(KV3, 5, seed=17)), batch(served, reports[:4]), batch(served, reports[4:])]
    first, *others = store.commit_each(batches)
    assert isinstance(first, StoreUnavailable)
    assert [one.accepted for one in others if isinstance(one, Receipt)] == [4, 6]
    agrees(store, served, reports)
    assert store.counters(lost, 0).n == 0
    writer = Writer(store)
    futures = [writer.add(one) for one in [*batches, batches[0]]]
    assert futures[1].result(60).duplicate == 4
    for refused in (futures[0], futures[3]):
        with pytest.raises(StoreUnavailable):
            refused.result(60)
    writer.end()
    assert caplog.text.count("folder of keys") == 1


def test_a_lost_seed_stops_the_study_for_answers_would_count_for_other_keys(opened: Callable[..., Store]) -> None:
    seed, commitment = new_seed()
    study = Study(keys=["a", "b", "c"], epsilon=1, protocol="kv3", index_commitment=commitment)
    reports = made_up(study, 20, seed=18)
    first = opened()
    served = first.register(study, seed=seed)
    assert first.commit([batch(served, reports[:10])])[0].accepted == 10
    (first.keys.folder / f"{served.task}.seed").unlink()
    [without] = opened(1).all_served()
    with pytest.raises(StoreUnavailable, match="seed"):
        opened(1).commit([batch(without, reports)])
    again = opened(2)
    served = again.register(study, seed=seed)
    assert again.commit([batch(served, reports)])[0].accepted == 10
    require_equal(again.counters(served, 0), again.recount(served, 0))


def test_the_collector_takes_reports_on_the_days_on_which_devices_send_them() -> None:
    study = Study(keys=["a"], epsilon=1, protocol="kv3", not_before="2026-01-15", not_after="2026-02-15")
    opened = Round(round=1, number=0, state="open", key_check=b"")
    for day in (date(2026, 1, 12) + timedelta(days=count) for count in range(40)):
        try:
            sent = bool(study.client().report({}, today=day))
        except StudyRefused:
            sent = False
        assert (_refusal(study, opened, day) is None) == sent, day
