"""A real Dask cluster on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.worlds import Dying, Meddling, Uneven, cloud, folder, outliers, recipe, reports, truth, visits
from sabun.engine import cut, spread, state_of
from sabun.engine.by_person import by_person
from sabun.engine.dask_engine import Dask, _finished
from sabun.engine.shuffle import shuffled
from sabun.errors import DataError
from sabun.records import persons
from sabun.regression import PrivateRidge

distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'sabun[dask]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    with cluster, distributed.Client(cluster) as found:
        yield found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("dask") / "table", files=4)


def test_files_and_frames_give_the_bits_of_one_process(client: Any, table: Path) -> None:
    assert spread(table, engine=client).counted(recipe()) == truth(table)
    frames = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe] for frames")
    frame = frames.read_parquet(str(table))
    assert spread(frame, engine=client).counted(recipe()) == truth(table)


def test_a_cluster_is_found_by_its_address(client: Any, table: Path) -> None:
    address = client.scheduler.address.replace("tcp://", "dask://")
    assert spread(table, engine=address).counted(recipe()) == truth(table)


def test_nobody_at_an_address_costs_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> Any:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", absent)
    with pytest.raises(DataError, match=r"a Dask scheduler must answer at tcp://127.0.0.1:1; none does. Nothing was charged"):
        spread(table, engine="dask://127.0.0.1:1").counted(recipe())


def test_a_worker_killed_in_the_middle_changes_nothing(client: Any, table: Path, tmp_path: Path) -> None:
    assert spread(table, engine=Dying(Dask(client), tmp_path / "died")).counted(recipe()) == truth(table)
    assert (tmp_path / "died").exists()


def test_what_a_worker_says_of_bad_data_arrives_and_what_its_library_says_does_not(client: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("age\n1,SECRET\n")
    with pytest.raises(DataError, match=r"bad\.csv must be UTF-8 text with as many fields") as caught:
        spread(tmp_path / "bad.csv", engine=client).counted(recipe())
    assert "SECRET" not in str(caught.value)


def test_what_a_library_says_on_a_worker_is_replaced_by_our_words(client: Any) -> None:
    with pytest.raises(DataError, match="a Dask worker failed") as caught:
        list(_finished(client, [client.submit(int, "SECRET", pure=False)]))
    assert "SECRET" not in str(caught.value)


def test_a_release_that_reads_its_table_three_times_is_that_of_one_process(client: Any, table: Path) -> None:
    terms: dict[str, Any] = {"epsilon": 1, "x_bounds": {"other": (-3, 3)}, "y_bounds": {"age": (0, 120)}, "random_state": 4}
    sources = table, spread(table, engine=client), spread(table, engine="processes:2")
    found = [PrivateRidge(**terms).fit(source).release_.value for source in sources]
    assert found[0]["level"] is not None
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("columns", ["abc", "abcdef"])
def test_outliers_of_files_and_frames_are_those_of_one_machine(client: Any, columns: str, tmp_path: Path) -> None:
    points = cloud(tmp_path / "points")
    alone = outliers(points, columns)
    assert outliers(spread(points, engine=client), columns) == alone
    frames = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe] for frames")
    assert outliers(spread(frames.read_parquet(str(points)), engine=client), columns) == alone


def test_persons_and_reports_meet_on_the_workers(client: Any, tmp_path: Path) -> None:
    where = visits(tmp_path / "visits")
    how = persons(where, id="who", rules={"age": "first"})
    assert shuffled(Dask(client), by_person(recipe(), how, form=None), cut(where), buckets=3) == state_of(recipe(), how)
    study, files, tally = reports(tmp_path / "reports")
    counted = study.tally()
    found = counted.add_files([tmp_path / "reports"], engine=client)
    assert counted == tally
    assert (found.seen, found.accepted) == (180, 120)
    assert len(files) == 3


def test_a_frame_of_persons_is_refused_in_words(client: Any, tmp_path: Path) -> None:
    frames = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe] for frames")
    frame = frames.read_parquet(str(visits(tmp_path / "visits")))
    with pytest.raises(DataError, match="whose rows must meet, such as those of a person, must be files"):
        state_of(recipe(), persons(spread(frame, engine=client), id="who"))


def test_of_two_workers_one_rounds_differently(client: Any, table: Path, tmp_path: Path) -> None:
    uneven: Any = Uneven(recipe(), tmp_path / "odd", os.getpid())
    with pytest.raises(DataError, match=r"the one that counted piece \d does not. Nothing was charged"):
        spread(table, engine=client).counted(uneven)


def test_a_file_replaced_during_the_run_is_named(client: Any, table: Path, tmp_path: Path) -> None:
    where = tmp_path / "table"
    shutil.copytree(table, where)
    meddling: Any = Meddling(recipe(), where / "2.parquet", where / "1.parquet")
    with pytest.raises(DataError, match=r"2\.parquet \(piece 2\) must stay as it is while it is read"):
        spread(where, engine=client).counted(meddling)


def test_a_cluster_of_our_own_is_started_once_is_nobody_elses_and_goes_with_the_engine(table: Path) -> None:
    engine = Dask()
    assert spread(table, engine=engine).counted(recipe()) == truth(table)
    (own,) = engine._kept
    assert set(own.run(os.environ.get, "MALLOC_MMAP_THRESHOLD_").values()) == {str(1 << 25)}
    assert spread(table, engine=engine).counted(recipe()) == truth(table)
    assert engine._kept == [own]
    (spilled, *_) = own.run(_spills).values()
    assert spilled.parents[1].name.startswith("sabun-")
    assert spilled.parents[1].stat().st_mode & 0o077 == 0
    assert own.scheduler.address.startswith("tls://")
    with pytest.raises((OSError, TypeError)):
        distributed.Client(own.scheduler.address, timeout=2)
    del engine
    assert own.status != "running"
    assert not spilled.parents[1].exists()


def _spills(dask_worker: Any) -> Path:
    return Path(dask_worker.local_directory)
