"""A real Spark on this machine, with two threads and four tries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from engine.worlds import Dying, Meddling, Uneven, cloud, folder, outliers, recipe, reports, truth, visits
from sabun.engine import cut, spread, state_of
from sabun.engine.by_person import by_person
from sabun.engine.shuffle import shuffled
from sabun.engine.spark_engine import Spark
from sabun.errors import DataError, ParameterError
from sabun.records import persons

sql = pytest.importorskip("pyspark.sql", reason="needs the extra: pip install 'sabun[spark]'")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
    pytest.mark.filterwarnings(
        "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning"
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": sys.executable,
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }
    builder = sql.SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("spark") / "table", files=2)


def test_files_give_the_bits_of_one_process_though_a_worker_is_killed(session: Any, table: Path, tmp_path: Path) -> None:
    assert spread(table, engine=Dying(Spark(session), tmp_path / "died")).counted(recipe()) == truth(table)
    assert (tmp_path / "died").exists()


def test_frames_give_the_bits_of_one_process(session: Any, table: Path) -> None:
    assert spread(session.read.parquet(str(table)), engine=session).counted(recipe()) == truth(table)


def test_a_frame_without_rows_counts_as_no_rows(session: Any, table: Path, tmp_path: Path) -> None:
    """However Spark comes to know that there are none; a frame with rows of which nothing is heard stays refused."""
    frame = session.read.parquet(str(table))
    for empty in (frame.limit(0), frame.filter("age > 1e9")):
        assert spread(empty, engine=session).counted(recipe()) == recipe().zero()
    points = cloud(tmp_path / "points")
    none = parquet.read_table(points).slice(0, 0)
    few = spread(session.read.parquet(str(points)).limit(0), engine=session)
    assert outliers(few, "abc", relation="add-remove") == outliers(none, "abc", relation="add-remove")


def test_silence_about_a_frame_with_rows_is_refused(session: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.engine.spark_engine._collected", lambda frame: [])
    with pytest.raises(DataError, match="piece 0 is missing"):
        spread(session.read.parquet(str(table)), engine=session).counted(recipe())


def test_what_an_executor_says_of_bad_data_arrives(session: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("age\n1,SECRET\n")
    with pytest.raises(DataError, match=r"bad\.csv must be UTF-8 text with as many fields") as caught:
        spread(tmp_path / "bad.csv", engine=session).counted(recipe())
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("kind", [pytest.param("files", marks=pytest.mark.long), "frame"])
def test_outliers_of_files_and_frames_are_those_of_one_machine(session: Any, tmp_path: Path, kind: str) -> None:
    points = cloud(tmp_path / "points")
    asked, columns = (points, "abc") if kind == "files" else (session.read.parquet(str(points)), "abcdef")
    assert outliers(spread(asked, engine=session), columns) == outliers(points, columns)


def test_persons_and_reports_meet_on_the_executors(session: Any, tmp_path: Path) -> None:
    where = visits(tmp_path / "visits", files=2)
    how = persons(where, id="who", rules={"age": "first"})
    assert shuffled(Spark(session), by_person(recipe(), how, form=None), cut(where), buckets=3) == state_of(recipe(), how)
    study, _, tally = reports(tmp_path / "reports")
    counted = study.tally()
    counted.add_files([tmp_path / "reports"], engine=session)
    assert counted == tally


def test_of_two_executors_one_rounds_differently(session: Any, table: Path, tmp_path: Path) -> None:
    uneven: Any = Uneven(recipe(), tmp_path / "odd", os.getpid())
    with pytest.raises(DataError, match=r"the one that counted piece \d does not. Nothing was charged"):
        spread(table, engine=session).counted(uneven)


def test_a_file_replaced_during_the_run_is_named(session: Any, table: Path, tmp_path: Path) -> None:
    where = tmp_path / "table"
    shutil.copytree(table, where)
    meddling: Any = Meddling(recipe(), where / "1.parquet", where / "0.parquet")
    with pytest.raises(DataError, match=r"1\.parquet \(piece 1\) must stay as it is while it is read"):
        spread(where, engine=session).counted(meddling)


def test_spark_connect_without_its_packages_is_told(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ParameterError, match=r"pip install 'pyspark\[connect\]'"):
        spread(table, engine="sc://127.0.0.1:1").counted(recipe())


def test_a_session_that_does_not_start_is_told_in_our_words(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkRuntimeError

    def refused(*_: Any) -> Any:
        raise PySparkRuntimeError("gateway exited with /a/path")

    monkeypatch.setattr(Spark, "_session", refused)
    with pytest.raises(DataError, match=r"a Spark session must start or answer at spark://127\.0\.0\.1:1; none does") as caught:
        spread(table, engine="spark://127.0.0.1:1").counted(recipe())
    assert caught.value.__context__ is None


def test_the_page_about_scale_leads_to_a_release(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.pages import blocks
    from sabun.release import Release

    assert session is not None  # the one that the page finds
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
    first, ours = (next(block.body for block in blocks(page) if block.kind == kind) for kind in ("python", "py"))
    assert '"visits"' in ours
    ours = ours.replace('"visits"', repr(str(tmp_path / "visits")))  # the running Java has another working folder
    exec(compile(first + ours, str(page), "exec"), {})
    assert Release.load("age.json").guarantee.epsilon == 1


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        pytest.param("a frame", ["frame"], id="a frame"),
        pytest.param("everything", ["frame", "files", "none", "refused", "met"], id="everything", marks=pytest.mark.long),
    ],
)
def test_spark_connect_gives_the_bits_of_one_process(tmp_path: Path, asked: str, done: list[str]) -> None:
    """A real server, in a process of its own: a session of one kind cannot live beside one of the other."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "engine.connected", str(tmp_path), asked]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.split() == done
