"""A real Dask cluster on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.worlds import Dying, cloud, folder, outliers, recipe, truth
from sabun.engine import spread
from sabun.engine.dask_engine import Dask
from sabun.errors import DataError
from sabun.regression import PrivateRidge

distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'sabun[dask]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
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
