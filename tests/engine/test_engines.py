"""Engines: the same bits everywhere, and whatever an engine does wrong is refused before any charge."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.worlds import SCHEMA, Deadly, Dying, folder, recipe, truth
from sabun.engine import Piece, cut, engine_named, spread
from sabun.engine.counting import Report, Task
from sabun.engine.engines import Serial, address_of
from sabun.engine.process_engine import Processes
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.summaries import Mean


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder(tmp_path_factory.mktemp("engine") / "table")


@dataclass(frozen=True)
class Hostile:
    """Hands out the reports of these pieces, in this order, whatever was asked."""

    order: tuple[int, ...]

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        counted = [task.counted(piece) for piece in pieces]
        return iter([counted[number] for number in self.order])


@given(order=st.lists(st.integers(0, 2), max_size=6))
@settings(max_examples=60, deadline=None)
def test_an_engine_that_drops_doubles_or_reorders_is_right_or_refused(table: Path, order: list[int]) -> None:
    asked = spread(table, engine=Hostile(tuple(order)))
    if sorted(order) == [0, 1, 2]:
        assert asked.counted(recipe()) == truth(table)
        return
    with pytest.raises(DataError, match=r"every piece must be counted once; piece \d (was counted twice|is missing)"):
        asked.counted(recipe())


@dataclass(frozen=True)
class Altering:
    """Changes one field of the last report."""

    field: str
    value: Any

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        *others, last = (task.counted(piece) for piece in pieces)
        return iter([*others, last._replace(**{self.field: self.value})])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("plan", "another", "must belong to this plan"),
        ("number", 3, "must belong to this plan"),
        ("number", -1, "must belong to this plan"),
        ("probe", "0" * 64, r"must round as this one does; the one that counted piece 2 does not"),
        ("state", b"{}", "must be bytes that the same statistic packed"),
    ],
)
def test_a_report_of_another_plan_or_machine_costs_nothing(
    table: Path, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="replace-one", epsilon=1)
    asked = Mean(column="age", schema=SCHEMA, epsilon=1, ledger=book)
    with pytest.raises(DataError, match=words):
        asked.fit(spread(table, engine=Altering(field, value)))
    assert book.entries() == ()


def test_a_release_is_the_same_to_the_byte_on_one_process_and_on_several(table: Path) -> None:
    def ask(source: Any) -> Any:
        return Mean(column="age", schema=SCHEMA, epsilon=1, random_state=3).fit(source).release_.value

    plain = ask(table)
    assert ask(spread(table)) == plain
    assert ask(spread(str(table / "*.parquet"), engine="processes:2")) == plain


def test_progress_counts_pieces(table: Path) -> None:
    told: list[tuple[int, int]] = []
    spread(table, progress=lambda done, count: told.append((done, count))).counted(recipe())
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_process_that_is_killed_is_replaced(table: Path, tmp_path: Path) -> None:
    assert spread(table, engine=Dying(Processes(2), tmp_path / "died")).counted(recipe()) == truth(table)
    assert (tmp_path / "died").exists()


def test_a_piece_that_kills_every_process_is_named_and_given_up(table: Path) -> None:
    with pytest.raises(DataError, match=r"piece 0 was not, its process died 2 times. Nothing was charged"):
        list(Processes(1, tries=2).reports(Deadly(), cut(table)[:1]))  # type: ignore[arg-type]


def test_what_travels_to_a_worker_is_small_and_holds_no_coin_and_no_ledger() -> None:
    task = pickle.dumps(Task.of(recipe(), "plan"))
    assert len(task) < 4096
    assert b"coin" not in task
    assert b"ledger" not in task


@pytest.mark.parametrize("name", ["", "proceses:2", "processes", "processes:0", "processes:x", None, 3])
def test_an_unknown_engine_is_refused_with_the_known_ones(name: object) -> None:
    with pytest.raises(ParameterError, match="engine must be"):
        engine_named(name)


@pytest.mark.parametrize(
    "name",
    [
        "dask:/x",
        "dask://",
        "dasks",
        "dask://nohost",
        "dask://127.0.0.1:abc",
        "dask://:1",
        "dask://a:70000",
        "dask://a:1,b:2",
        "dask://tcp://a:1",
        "sparkfoo",
        "spark:local[1]",
        "spark://host",
        "spark://a:7077,b",
        "sc://:1",
        "sc://host:x",
        "sc://::1:2",
    ],
)
def test_an_address_of_another_shape_is_refused_before_anything_starts(name: str) -> None:
    with pytest.raises(ParameterError, match=r"engine must be .* dask://host:port, .*; got"):
        engine_named(name)


@pytest.mark.parametrize(
    "name", ["dask://a.b-c:8786", "dask://[::1]:8786", "spark://a:7077,b:7078", "sc://host", "sc://host:15002/;use_ssl=true"]
)
def test_an_address_is_what_stands_after_the_scheme(name: str) -> None:
    assert address_of(name) == name.partition("://")[2]


def test_known_engines_are_found_by_name() -> None:
    assert engine_named("serial") == Serial()
    assert engine_named("processes:3") == Processes(3)


def test_processes_are_started_once_for_all_readings_and_go_with_the_engine(table: Path) -> None:
    engine = Processes(2)
    found = spread(table, engine=engine)
    found.counted(recipe())
    pool, _ = engine._kept
    first = set(pool._processes)
    found.counted(recipe())
    assert engine._kept[0] is pool
    assert first <= set(pool._processes)
    assert pickle.loads(pickle.dumps(engine)) == engine
    assert pickle.loads(pickle.dumps(engine))._kept == []


@pytest.mark.parametrize(
    "start", ["fork", "spawn", *(pytest.param(one, marks=pytest.mark.long) for one in ("forkserver", "loky"))]
)
def test_a_script_that_starts_processes_by_itself_is_charged_once(table: Path, tmp_path: Path, start: str) -> None:
    """However they are started, and though the script does its work outside of `if __name__ == "__main__":`."""
    Ledger.create(tmp_path / "book", name="book", relation="replace-one", epsilon=9)
    begin = f"begun = multiprocessing.get_context({start!r}).Process(target=ask)\nbegun.start()\nbegun.join()\n"
    if start == "loky":
        pytest.importorskip("joblib", reason="comes with scikit-learn")
        begin = "joblib.Parallel(n_jobs=2)(joblib.delayed(ask)() for _ in range(2))\n"
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, joblib\n"
        "from sabun import Ledger, Schema\n"
        "from sabun.summaries import Mean\n"
        f"table, book = {str(table)!r}, Ledger.open({str(tmp_path / 'book')!r})\n"
        "def ask():\n"
        "    return 1\n"
        "Mean(column='age', schema=Schema.of_bounds({'age': (0, 120)}), epsilon=1, ledger=book).fit(table)\n" + begin
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(script)], capture_output=True, env=environment, timeout=300)
    assert len(Ledger.open(tmp_path / "book").entries()) == 1


@pytest.mark.parametrize("engine", ["processes:2", pytest.param("dask", marks=pytest.mark.long)])
def test_a_script_that_its_own_workers_would_run_again_is_charged_once(table: Path, tmp_path: Path, engine: str) -> None:
    if engine == "dask":
        pytest.importorskip("distributed", reason="needs the extra: pip install 'sabun[dask]'")
    Ledger.create(tmp_path / "book", name="book", relation="replace-one", epsilon=9)
    script = tmp_path / "script.py"
    script.write_text(
        "from sabun import Ledger, Schema\n"
        "from sabun.engine import spread\n"
        "from sabun.summaries import Mean\n"
        f"table, book = {str(table)!r}, Ledger.open({str(tmp_path / 'book')!r})\n"
        "asked = Mean(column='age', schema=Schema.of_bounds({'age': (0, 120)}), epsilon=1, ledger=book)\n"
        "asked.fit(table)\n"
        f"asked.fit(spread(table, engine={engine!r}))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=300)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "the processes of an engine must start; none did. Nothing was charged. In a script, put its work under" in last
    assert "a charge must wait until this process has been started" in done.stderr
    assert len(Ledger.open(tmp_path / "book").entries()) == 1
