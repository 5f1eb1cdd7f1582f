"""What a page may show: nothing below the minimum batch, and everything as the room's own estimates have it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sabun.keyvalue import Study
from sabun.keyvalue.client import PROTOCOLS
from sabun.service.closing import close_round, purge_expired
from sabun.service.picture import server_picture, study_picture
from sabun.service.report_store import Store
from service.devices import made_up
from service.test_report_store import batch


def test_below_the_minimum_batch_no_number_is_shown(store: Store) -> None:
    study = Study(keys=["a", "b"], epsilon=1, protocol="kv3", min_batch=20)
    served = store.register(study)
    store.commit([batch(served, [*made_up(study, 19, seed=1), b"?"])])
    [shown] = study_picture(store, served, retention_days=30).rounds
    assert (shown.reports, shown.arrived, shown.by_hour, shown.rows, shown.uniformity) == (None, None, (), (), None)
    assert shown.least == 20
    store.commit([batch(served, made_up(study, 1, seed=2))])
    [shown] = study_picture(store, served, retention_days=30).rounds
    assert shown.reports == 20
    assert shown.arrived is not None
    assert (shown.arrived.accepted, shown.arrived.refused, dict(shown.arrived.rejected)) == (20, 1, {"length": 1})
    [(hour, n)] = shown.by_hour
    assert n == 20
    assert (hour.minute, hour.second) == (0, 0)
    assert abs((hour - datetime.now(UTC)).total_seconds()) < 7200


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rows_are_the_rooms_estimates(store: Store, protocol: str) -> None:
    study = Study(keys=["a", "b", "c"], epsilon=2, protocol=protocol)
    served, reports = store.register(study), made_up(study, 80, seed=3)
    store.commit([batch(served, reports)])
    tally = study.tally()
    tally.add_reports(reports)
    expected = tally.estimate().to_dict()["rows"]
    shown = study_picture(store, served, retention_days=30).current
    assert [row.frequency for row in shown.rows] == expected["frequency"]
    assert [row.frequency_high for row in shown.rows] == expected["frequency_high"]
    if shown.valued:
        assert [row.mean for row in shown.rows] == expected["mean"]
        assert [row.mean_reason for row in shown.rows] == expected["mean_reason"]
    assert (shown.uniformity is not None) == study.terms.sampled


def test_reports_that_crowd_at_one_key_raise_the_alarm(store: Store) -> None:
    study = Study(keys=list(range(20)), epsilon=1, protocol="kv3", index_mode="chosen")
    served = store.register(study)
    store.commit([batch(served, made_up(study, 100, seed=4))])
    crowd = [report[:37] + bytes(4) + b"\1" for report in made_up(study, 60, seed=5)]
    store.commit([batch(served, crowd)])
    alarm = study_picture(store, served, retention_days=30, estimates=False).current.uniformity
    assert alarm is not None
    assert alarm.suspicious


def test_rounds_spending_and_retention_are_told(store: Store) -> None:
    study = Study(keys=["a", "b"], epsilon=1, protocol="kv3", rounds=3)
    served = store.register(study)
    store.commit([batch(served, made_up(study, 30, seed=6))])
    close_round(store, served, 0)
    purge_expired(store, retention_days=0)
    shown = study_picture(store, served, retention_days=7)
    assert [one.state for one in shown.rounds] == ["purged", "open", "waiting"]
    assert [one.released for one in shown.rounds] == [True, False, False]
    assert shown.rounds[0].frozen is not None
    assert shown.rounds[0].purged_on is not None
    assert (shown.rounds[0].purged_on - shown.rounds[0].frozen).days == 7
    assert shown.rounds[0].rows
    assert [spent.total for spent in shown.spent] == [study.terms.certified, 2 * study.terms.certified]
    assert shown.guarantee == study.guarantee
    assert server_picture(store, retention_days=7).studies[0].task == served.task
    assert server_picture(store, retention_days=7, allowed=()).studies == ()
