"""Several rows per person, in every room that asks a private table: one row each, and the promise is for the person."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from cli.terminal import exit_code
from sabun import Ledger, Release
from sabun.density import DensityRatio
from sabun.density.statistic import PointSums
from sabun.engine import spread
from sabun.errors import DataError, ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.training import Run
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
from sabun.records import Column, Persons, Schema, chunks, persons
from sabun.regression import PrivateRidge, Study, combine
from sabun.regression.stages import Lengths, Residuals
from sabun.regression.statistic import Moments
from sabun.release.encoding import canonical, encode
from sabun.summaries import Mean

SCHEMA = Schema(
    columns=[
        Column.number("age", lower=0, upper=100),
        Column.number("cost", lower=-5, upper=1000, missing=0),
        Column.category("ward", ["a", "b"]),
    ]
)
NUMBERS = SCHEMA.select(["age", "cost"])
RULES = {"age": "max", "state": "any"}
PUBLIC = pd.DataFrame({"age": np.linspace(1, 99, 40), "cost": np.linspace(0, 900, 40), "ward": ["a", "b"] * 20})
ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 0.1]
Rows = list[dict[str, Any]]


def made_up(rng: np.random.Generator, who: str, count: int) -> Rows:
    def number(high: float) -> float:
        return float(rng.choice(ODD)) if rng.random() < 0.3 else float(rng.uniform(-0.1 * high, 1.1 * high))

    return [
        {
            "who": who,
            "age": number(100),
            "cost": number(1000),
            "ward": rng.choice(["a", "b", "?", None]),
            "state": rng.choice(["well", "ill", None]),
        }
        for _ in range(count)
    ]


def frame(rows: Rows, rng: np.random.Generator) -> pd.DataFrame:
    found = pd.DataFrame([rows[place] for place in rng.permutation(len(rows))])
    return found.astype({"who": object, "ward": object, "state": object})


def people(table: Any, **more: Any) -> Persons:
    return persons(table, id="who", rules=RULES, **more)


def ridge(method: str = "staged", **more: Any) -> PrivateRidge:
    features, target = SCHEMA.select(["age", "ward"]), NUMBERS.columns[1]
    return PrivateRidge(
        epsilon=1, delta="1e-6" if method == "staged" else None, method=method, x_bounds=features, y_bounds=target, **more
    )


def classifier(**more: Any) -> PrivateClassifier:
    return PrivateClassifier(
        **({"method": "noisy-centroids", "relation": "replace-one", "epsilon": 30} | more),
        schema=SCHEMA,
        classes=["well", "ill"],
    )


HALVES = {"young": {"age": (None, 50)}, "old": {"age": (50, None)}}
SIDES = {"first": ["age"], "second": ["cost", "ward"]}
ROOMS: dict[str, Callable[..., Any]] = {
    "count": lambda table, **paid: OutlierCount(k=2, radius=0.1, epsilon=1, schema=SCHEMA, **paid).fit(table),
    "regions": lambda table, **paid: RegionCount(
        regions=HALVES, k=2, radius=0.1, epsilon=1, schema=SCHEMA, columns=["cost", "ward"], **paid
    ).fit(table),
    "choose": lambda table, **paid: SubspaceChoice(subspaces=SIDES, k=2, radius=0.1, epsilon=1, schema=SCHEMA, **paid).fit(
        table
    ),
    "density": lambda table, **paid: DensityRatio(epsilon=1, schema=SCHEMA, **paid).fit(private=table, public=PUBLIC),
    "ulsif": lambda table, **paid: DensityRatio(epsilon=1, schema=SCHEMA, method="ulsif-b", **paid).fit(
        private=table, public=PUBLIC
    ),
    "staged": lambda table, **paid: ridge(**paid).fit(table),
    "ssp-laplace": lambda table, **paid: ridge("ssp-laplace", **paid).fit(table),
    "learning": lambda table, **paid: classifier(**paid).fit(table, "state"),
    "synthetic": lambda table, **paid: classifier(method="anonymizing-first", epsilon=5, **paid).fit(table, "state"),
    "mean": lambda table, **paid: Mean(column="cost", epsilon=1, schema=SCHEMA, **paid).fit(table),
}


class Seen(Exception):
    """What a room was about to compute with."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows, dtype=np.float64)


def seen_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Persons], Any]:
    """The rows that a room makes of persons, one line each."""

    def stop(place: Any, name: str, rows: Callable[..., Any]) -> None:
        def told(*given: Any) -> Any:
            raise Seen(rows(*given))

        monkeypatch.setattr(place, name, told)

    stop(OutlierCount, "_draw", lambda _, points, *more: points)
    stop(RegionCount, "_draw", lambda _, points, inside, *more: np.column_stack([points, *inside]))
    stop(SubspaceChoice, "_draw", lambda _, views, *more: np.column_stack([*views.values()]))
    stop(PointSums, "add", lambda _, state, block: block)
    stop(Moments, "add", lambda _, state, block: np.column_stack(block))
    stop(Lengths, "add", lambda _, state, block: np.column_stack(block))
    stop(Run, "train", lambda run, *more: np.column_stack([run.data.rows, run.data.labels]))

    def ask(room: str, table: Persons) -> Any:
        with pytest.raises(Seen) as found:
            ROOMS[room](table)
        return found.value.rows

    return ask


@pytest.mark.parametrize(("count", "memory"), [(1, 1 << 30), (3, 5_000), (10_000, 1 << 30), (10_000, 1)])
def test_a_person_replaced_is_one_row_replaced_whatever_the_room(
    count: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(count)
    others = [row for number in range(30) for row in made_up(rng, f"p{number}", int(rng.integers(1, 9)))]
    one, another = made_up(rng, "me", 4), made_up(rng, "another", count)
    tables = [frame(others + mine, rng) for mine in (one, another)]
    rows = seen_by(monkeypatch)
    for room in ROOMS.keys() - {"mean", "ulsif", "ssp-laplace", "synthetic"}:
        before, after = (Counter(line.tobytes() for line in rows(room, people(table, memory=memory))) for table in tables)
        assert before.total() == after.total() == 31, room
        assert (before - after).total() <= 1, room


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[pd.DataFrame, Path]]:
    """A table and the same in three files; then with one person's rows replaced by 3,000 of another, over all files."""
    rng, found = np.random.default_rng(2), []
    others = [row for number in range(20) for row in made_up(rng, f"p{number}", int(rng.integers(1, 9)))]
    for mine in (made_up(rng, "me", 5), made_up(rng, "another", 3000)):
        table, folder = frame(others + mine, rng), tmp_path_factory.mktemp("world")
        for number in range(3):
            piece = table.iloc[number * len(table) // 3 : (number + 1) * len(table) // 3]
            parquet.write_table(pa.Table.from_pandas(piece, preserve_index=False), folder / f"{number}.parquet")
        found.append((table, folder))
    return found


def test_persons_in_pieces_are_those_of_the_table_in_every_room(
    worlds: list[tuple[pd.DataFrame, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = seen_by(monkeypatch)
    for room in ROOMS.keys() - {"mean", "density", "ulsif"}:
        before, after = (
            [Counter(line.tobytes() for line in rows(room, people(source))) for source in (table, spread(folder))]
            for table, folder in worlds
        )
        assert before[0] == before[1], room
        assert after[0] == after[1], room
        assert before[0].total() == after[0].total() == 21, room
        assert (before[0] - after[0]).total() <= 1, room


@pytest.mark.filterwarnings("ignore::sabun.density.CoverageWarning")
@pytest.mark.parametrize("room", ["density", "ulsif", "mean"])
def test_what_is_summed_up_where_persons_meet_is_what_the_table_gives(
    room: str, worlds: list[tuple[pd.DataFrame, Path]]
) -> None:
    for table, folder in worlds:
        one, other = (ROOMS[room](people(source), random_state=5).release_ for source in (table, spread(folder)))
        assert canonical(encode(one.value)) == canonical(encode(other.value))
        assert one.guarantee == other.guarantee


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = [row for number in range(61) for row in made_up(rng, f"p{number}", 1 + int(rng.integers(0, 40)))]
    rows += made_up(rng, "many", 7919 - len(rows))
    return frame([*rows, *made_up(rng, "", 0)], rng)


def tells_rows(text: str) -> bool:
    """Whether the number of rows stands in it, by itself or in groups of three digits."""
    return re.search(r"(?<![0-9a-fA-F.])7,?919(?![0-9a-fA-F])", text) is not None


@pytest.mark.parametrize("room", ROOMS)
def test_the_promise_is_for_the_person_and_the_number_of_rows_is_told_nowhere(
    room: str, visits: pd.DataFrame, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    book = Ledger.create(tmp_path / "book", name="book", unit="patient", epsilon=99, delta="1e-5")
    found = ROOMS[room](people(visits), ledger=book)
    facts = found.release_.provenance.parameters
    assert facts["persons"] == {"id": "who", "rules": RULES, "spelling": "text", "order": None}
    assert facts.get("records", 62) == 62
    promise = found.guarantee_
    assert promise.unit == "patient"
    assert promise.assumptions.count("all rows of a person carry one 'who', and no two persons share one") == 1
    assert promise.assumptions.count("rows without a 'who' are left out") == 1
    of_rows = ("at most one row", "number of rows", "number of private rows")
    assert not any(bad in words for words in promise.assumptions for bad in of_rows)
    assert tells_rows("7,919 rows")
    assert not tells_rows(found.release_.to_json().decode())
    assert not tells_rows(str([*book.entries()]) + str(book) + str(promise))
    assert not tells_rows("".join(str(each.message) for each in recwarn))


def test_three_readings_of_a_table_are_of_one_order(visits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    for statistic in (Lengths, Moments, Residuals):
        add = statistic.add

        def heard(self: Any, state: Any, block: Any, add: Any = add) -> Any:
            read.append(np.column_stack(block))
            return add(self, state, block)

        monkeypatch.setattr(statistic, "add", heard)
    held = ridge().read(people(visits))
    for table in (people(visits), held):
        read.clear()
        ridge().fit(table)
        assert len(read) >= 2
        assert all(np.array_equal(each, read[0]) for each in read)
    assert isinstance(held, Persons)
    assert held.count == 62


def test_what_cannot_be_about_persons_refuses_them_before_any_charge(visits: pd.DataFrame, tmp_path: Path) -> None:
    who, target = people(visits), np.linspace(0, 1, 62)
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=9, delta="1e-5")
    plain = DensityRatio(epsilon=1, schema=SCHEMA, ledger=book)
    asked: list[tuple[str, Callable[[], Any]]] = [
        ("y must be left out for persons", lambda: ridge(ledger=book).fit(who, target)),
        ("must be whole; got one in a stream", lambda: ridge(ledger=book).fit(chunks([who, who]))),
        ("records_per_person must be 1 for persons", lambda: ridge(ledger=book, records_per_person=2).fit(who)),
        ("must be whole; got one as a piece", lambda: plain.set_public(PUBLIC).partial_fit(private=who)),
        ("several rows per person|got Persons", lambda: plain.fit(private=visits, public=who)),
        ("must have a schema", lambda: DensityRatio(epsilon=1, ledger=book).fit(private=who, public=PUBLIC[["age"]])),
        ("must have a schema", lambda: OutlierCount(k=2, radius=0.1, epsilon=1, ledger=book).fit(who)),
        ("must have a schema", lambda: PrivateClassifier(epsilon=1, classes=["a", "b"], ledger=book).fit(who, "state")),
        ("y must be the name of the target's column", lambda: classifier(relation=None, ledger=book).fit(who, target)),
        ("y must be no input", lambda: classifier(relation=None, ledger=book).fit(who, "ward")),
        ("no column 'stat'", lambda: classifier(relation=None, ledger=book).fit(who, "stat")),
        (
            "classes must be the public list of labels",
            lambda: PrivateClassifier(epsilon=1, schema=SCHEMA, ledger=book).fit(who, "state"),
        ),
        (
            "checkpoint must be left out for persons",
            lambda: classifier(relation=None, ledger=book, checkpoint=tmp_path / "run").fit(who, "state"),
        ),
    ]
    for words, ask in asked:
        with pytest.raises((DataError, ParameterError), match=words):
            ask()
    assert book.entries() == ()


def test_a_target_is_collapsed_by_its_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame(
        {"who": ["a", "a", "a", "b"], "age": [1.0, 2, 3, 9], "cost": 1.0, "ward": "a", "state": ["well", "well", "ill", "well"]}
    )
    read = seen_by(monkeypatch)
    for rule, codes in (("mode", [0.0, 0.0]), ("last", [0.0, 1.0]), ("any", [0.0, 1.0])):
        monkeypatch.setitem(RULES, "state", rule)
        assert sorted(read("learning", people(table))[:, -1].tolist()) == codes


COMMANDS = {
    "outliers count": ("visits.csv", "--schema", "all.json", "--radius", "0.2", "--like", "visits2.csv"),
    "outliers choose": ("visits.csv", "--schema", "all.json", "--radius", "0.2", "--subspace", "x=age", "--subspace", "y=cost"),
    "density weights": ("--private", "visits.csv", "--public", "public.csv", "--schema", "all.json"),
    "regression fit": ("visits.csv", "--schema", "all.json", "--columns", "age,ward", "--target", "cost"),
    "learning train": ("visits.csv", "--schema", "all.json", "--target", "state", "--classes", "well,ill", "--delta", "1e-5"),
    "summaries mean": ("visits.csv", "--schema", "all.json", "--column", "cost"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_about_persons_tells_persons_alone(
    command: str, visits: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits.to_csv("visits.csv", index=False)
    visits.assign(who="q" + visits["who"]).to_csv("visits2.csv", index=False)
    PUBLIC.to_csv("public.csv", index=False)
    SCHEMA.save("all.json")
    room, verb = command.split()
    relation = "add-remove" if room == "learning" else "replace-one"
    Ledger.create("book", name="book", unit="patient", relation=relation, epsilon=99, delta="1e-4")
    out = {"density": "out.csv", "learning": "model"}.get(room, "out.json")
    asked = [room, verb, *COMMANDS[command], "--epsilon", "8", "--ledger", "book", "--yes", "--out", out]
    code = exit_code(*asked, "--id", "who", "--rule", "age=max")
    told = "".join(capsys.readouterr())
    assert code == 0, told
    assert not tells_rows(told)
    release = {"density": "out.csv.release.json", "learning": "model/release.json"}.get(room, out)
    kept = Release.load(release)
    assert kept.provenance.parameters["persons"]["rules"] == {"age": "max"}
    assert "rows without a 'who' are left out" in kept.guarantee.assumptions
    assert not tells_rows(Path(release).read_text(encoding="utf-8"))
    for option, value in (("--rule", "age=max"), ("--order", "age"), ("--spelling", "number"), ("--memory", "4M")):
        assert exit_code(*asked[:-1], f"again-{out}", option, value) == 2
        assert f"{option} must come with --id" in "".join(capsys.readouterr())
    assert len(Ledger.open("book").entries()) == 1


def test_a_model_of_persons_says_that_it_takes_each_row_for_one(
    visits: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits.to_csv("visits.csv", index=False)
    SCHEMA.save("all.json")
    for model, by in (("one", ("--id", "who")), ("rows", ())):
        train = ("learning", "train", *COMMANDS["learning train"], "--epsilon", "8", "--yes", "--out", model, *by)
        assert exit_code(*train) == 0
        capsys.readouterr()
        for use in (
            ("predict", model, "visits.csv", "--out", f"{model}.csv"),
            ("evaluate", model, "visits.csv", "--target", "state"),
        ):
            assert exit_code("learning", *use) == 0
            assert ("each row of the table is taken for a person" in capsys.readouterr().err) == bool(by)


def test_a_repeat_about_the_same_persons_is_free_and_one_about_others_is_not(
    visits: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = visits["who"].str.replace("p", "1").replace("many", "007")
    visits.assign(day=range(len(visits)), who=numbers).to_csv("visits.csv", index=False)
    SCHEMA.save("all.json")
    Ledger.create("book", name="book", unit="patient", epsilon=99)
    asked = ["summaries", "mean", "visits.csv", "--schema", "all.json", "--column", "cost", "--epsilon", "1", "--yes"]
    asked += ["--ledger", "book", "--label", "visits of 2026"]

    def charges(*more: str) -> int:
        assert exit_code(*asked, *more) == 0, capsys.readouterr()
        return len(Ledger.open("book").entries())

    assert charges() == 1  # as if each row were one person's: another question
    assert charges("--id", "who") == 2
    for same in (["--memory", "20k"], ["--memory", "2G"], ["--spelling", "text"], ["--engine", "serial"]):
        assert charges("--id", "who", *same) == 2
    others = (
        ["--rule", "cost=last"],
        ["--rule", "cost=last", "--order", "day"],
        ["--spelling", "number"],
        ["--rule", "age=max"],
    )
    for place, other in enumerate(others):
        assert charges("--id", "who", *other) == 3 + place
    capsys.readouterr()
    for words, wrong in (
        ("--memory must be a number of bytes, such as 500M or 4G; got 'much'", ["--memory", "much"]),
        ("--memory must be a number of bytes", ["--memory", "0"]),
        ("--rule must be a column and a rule", ["--rule", "mean"]),
        ("spelling must be one of 'text', 'caseless', 'number'; got 'roman'", ["--spelling", "roman"]),
        ("no column 'when'", ["--order", "when"]),
    ):
        assert exit_code(*asked, "--id", "who", *wrong) in (2, 4)
        assert words in "".join(capsys.readouterr())
    assert len(Ledger.open("book").entries()) == 6


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"learning train", "outliers choose"}))
def test_a_command_about_persons_in_pieces_says_what_one_about_the_table_does(
    command: str, visits: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    visits.to_csv("visits.csv", index=False)
    PUBLIC.to_csv("public.csv", index=False)
    SCHEMA.save("all.json")
    room, verb = command.split()
    given = [part for part in COMMANDS[command] if part not in ("--like", "visits2.csv")]
    found = list[Release]()
    for place, more in enumerate(([], ["--engine", "serial"])):
        out = f"{place}.csv" if room == "density" else f"{place}.json"
        asked = [room, verb, *given, "--epsilon", "8", "--yes", "--out", out, "--id", "who", *more]
        assert exit_code(*asked) == 0, capsys.readouterr()
        assert not tells_rows("".join(capsys.readouterr()))
        found.append(Release.load(f"{out}.release.json" if room == "density" else out))
    assert found[0].guarantee == found[1].guarantee
    assert found[0].provenance.parameters == found[1].provenance.parameters


def test_the_second_of_two_rounds_is_about_the_persons_of_the_first(visits: pd.DataFrame) -> None:
    terms: dict[str, Any] = {"name": "s", "epsilon": 4, "delta": "1e-6", "method": "rounds", "unit": "patient"}
    agreed = Study(features=SCHEMA.select(["age", "ward"]), target=NUMBERS.columns[1], **terms)
    north = PrivateRidge(study=agreed, organisation="north")
    first = north.fit(people(visits)).release_
    around = combine([first])
    with pytest.raises(ParameterError, match="with the same column of ids and the same rules"):
        north.refine(persons(visits, id="who"), first=first, around=around)
    with pytest.raises(ParameterError, match="with the same column of ids and the same rules"):
        north.refine(visits, first=first, around=around)
    second = PrivateRidge(study=agreed, organisation="north").refine(people(visits), first=first, around=around).release_
    assert second.provenance.parameters["persons"] == first.provenance.parameters["persons"]
    for promise in (first.guarantee, second.guarantee, combine([first, second]).release().guarantee):
        assert promise.assumptions.count("rows without a 'who' are left out") == 1
        assert not any("at most one row" in words for words in promise.assumptions)


def test_a_device_is_one_persons_whatever_the_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, out = str(tmp_path / "study.json"), str(tmp_path / "reports.bin")
    assert exit_code("keyvalue", "study", study, "--keys", "a,b", "--epsilon", "2") == 0
    assert exit_code("keyvalue", "report", study, "--table", "visits.csv", "--id", "who", "--out", out) == 2
    assert "Make one line of each person's rows first." in "".join(capsys.readouterr())
    assert not Path(out).exists()
