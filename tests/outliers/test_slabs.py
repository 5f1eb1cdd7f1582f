"""Outliers of a table in pieces: slabs with a rim, shares of a replicated table; the answer of one machine to the bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.engine import Elsewhere, spread, state_of
from sabun.engine.shuffle import Shuffle
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.outliers import OutlierCount
from sabun.outliers.ladder import Bands
from sabun.outliers.points import read_table
from sabun.outliers.replicated import Share, ShareBands, near_by_shares
from sabun.outliers.sensitivity import measure
from sabun.outliers.slabs import SlabBands, Slabs, cut_slabs
from sabun.outliers.spread_points import BINS, Coordinates, Extent, SpreadPoints
from sabun.records import Column, Schema, chunks

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Cut(Elsewhere):
    """A table in pieces that are parted and counted on the spot."""

    pieces: Sequence[Any] = field(repr=False)

    @property
    def parts(self) -> int:
        return len(self.pieces)

    def counted(self, statistic: Any) -> Any:
        return state_of(statistic, chunks(list(self.pieces)))

    def grouped(self, grouped: Any) -> Any:
        state = grouped.statistic.zero()
        for each in reversed(slab_states(grouped, *self.pieces)):
            state = grouped.statistic.merge(state, each)
        return state


def slab_states(grouped: Any, *pieces: Any) -> list[Any]:
    task = Shuffle.of_frame(grouped, plan="plan", pieces=len(pieces))
    given = [task.parted_rows(number, piece) for number, piece in enumerate(pieces)]
    reports = [task.joined(bucket, [parts[task.share(bucket)] for parts in given]) for bucket in range(task.buckets)]
    return [grouped.statistic.unpack(report.state) for report in reports]


def unit(d: int) -> Schema:
    return Schema.of_bounds({f"c{place}": (0, 1) for place in range(d)})


def both(table: Floats, *, radius: float, k: int = 3, relation: str = "replace-one", cover: str = "degeneracy") -> None:
    """The pieces' answer beside that of one machine."""
    schema = unit(table.shape[1])
    asked: dict[str, Any] = {"k": k, "radius": radius, "beta": Fraction(1, 7), "cover": cover, "relation": relation}
    pieces = SpreadPoints.of(Cut(pieces=np.array_split(table, 3)), schema=schema, columns=None)
    points = read_table(table, schema=schema)[1]
    assert pieces.measured(**asked) == measure(points, **asked)
    exact, bound = pieces.measured(**asked | {"beta": None})
    assert (exact, bound) == (measure(points, **asked)[0], 0)


def table(kind: str, d: int) -> Floats:
    rng = np.random.default_rng(5)
    found = rng.uniform(size=(240, d))
    if kind == "grid":  # every border of a slab is some records' own place
        return rng.integers(0, 17, size=(240, d)) / 16
    if kind == "one place":
        return np.full((60, d), 0.3)
    if kind == "two places, nothing between":
        found[:120], found[120:] = found[:120] / 100, 1 - found[120:] / 100
    if kind == "duplicates at a border":
        found[:200, 0] = 0.5
        found[:90] = found[0]
    if kind == "missing and infinite":
        found[:40] = np.nan
        found[40:60, 0], found[60:80, 0], found[80:100, 0] = np.inf, -np.inf, 1e308
    return found


KINDS = ("anywhere", "grid", "one place", "two places, nothing between", "duplicates at a border", "missing and infinite")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 3, 6])
def test_pieces_give_the_count_and_the_bound_of_one_machine(kind: str, d: int) -> None:
    for radius in (1 / 16, 0.2):
        both(table(kind, d), radius=radius)


@pytest.mark.parametrize(("d", "radius"), [(2, 0.15), (6, 0.6)])
def test_every_rung_is_that_of_one_machine(d: int, radius: float) -> None:
    """Also those that cannot win: which rungs matter is for the ladder to say."""
    rows = table("anywhere", d)
    pieces = SpreadPoints.of(Cut(pieces=np.array_split(rows, 3)), schema=unit(d), columns=None)
    near = pieces._near(k=6, radius=radius, rungs=14)
    bands = Bands(read_table(rows, schema=unit(d))[1], k=6, radius=radius, rungs=14)
    assert near.outliers == bands.count
    assert near.most.tolist() == bands.most.tolist()
    assert (np.diff(near.most)[[5, 8, 10]] > 0).any()  # far rungs say something of their own
    assert near.ends.tolist() == bands.gained_ends.tolist()
    for size in near.ends.tolist():
        expected = bands.points[bands.gained[:size]]
        assert sorted(near.first(size).tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("d", [2, 5])
def test_extreme_radii_and_add_remove(d: int) -> None:
    for radius in (1e-150, 1e-17, 3.0, 1e150):
        both(table("grid", d), radius=radius, relation="add-remove")


def test_tables_of_a_few_rows() -> None:
    for rows in (1, 3, 4, 5):
        both(table("anywhere", 2)[:rows], radius=0.3, k=4)
    both(np.empty((0, 2)), radius=0.3, relation="add-remove")
    both(np.empty((0, 5)), radius=0.3, relation="add-remove")


def test_the_tighter_covers_are_asked_with_the_same_points() -> None:
    both(table("anywhere", 2)[:80], radius=0.1, cover="link-core")


def test_a_slab_reaches_as_far_as_rounding_can_bring_a_neighbour() -> None:
    """Neighbours at exactly one radius, on either side of a border, however the sum of border and radius rounds."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        radius = float(rng.choice([0.1, 1 / 3, 3e-17, 1.1e-16, 7e-9, 0.05]))
        border = float(rng.choice([0.1, 0.5, 0.3, 1 / 3, 0.0]))
        steps = border + radius * np.arange(-3, 4)
        near = np.concatenate([steps, np.nextafter(steps, 2), np.nextafter(steps, -2)])
        points = np.clip(np.repeat(near, 2), 0, 1)[:, None]
        slabs = Slabs(coordinates=Coordinates.of(unit(1), None), axis=0, borders=(border,), radius=radius)
        bands = SlabBands(slabs=slabs, k=3, rungs=4)
        state = bands.merge(*slab_states(bands, points))
        squared = (points - points.T) ** 2 <= radius * radius
        degrees = squared.sum(axis=1) - 1
        assert state.outliers == (degrees < 3).sum()
        assert state.rows == len(points)
        most = [
            int((squared & (np.abs(degrees - 3) <= t) & ~np.eye(len(points), dtype=bool)).sum(axis=1).max()) for t in range(4)
        ]
        assert state.most.tolist() == most


@pytest.mark.parametrize(("border", "radius"), [(0.5, 0.25), (0.3, 0.2), (1 / 3, 0.01)])
def test_a_record_at_a_border_has_band_members_a_whole_radius_beyond_it(border: float, radius: float) -> None:
    """Four copies on either side, just inside the radius: degree 4 each; nobody but the record between has eight of them."""
    far = radius * (1 - 1e-6)
    between = border - far / 1000
    points = np.array([between, *[between - far] * 4, *[between + far] * 4])[:, None]
    slabs = Slabs(coordinates=Coordinates.of(unit(1), None), axis=0, borders=(border,), radius=radius)
    bands = SlabBands(slabs=slabs, k=4, rungs=1)
    assert bands.merge(*slab_states(bands, points)).most.tolist() == [8]


def test_slabs_of_about_equal_content_along_the_coordinate_with_least_rim() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(0.5, 0.51, 4000), rng.uniform(size=4000)])
    extent = state_of(Extent(coordinates=Coordinates.of(unit(2), None)), points)
    slabs = cut_slabs(Coordinates.of(unit(2), None), extent, radius=0.001, count=8)
    assert slabs.axis == 1
    assert max(np.histogram(points[:, 1], bins=[0, *slabs.borders, 1])[0]) < 4000 / 8 * 1.2
    assert all(border * BINS == int(border * BINS) for border in slabs.borders)


def test_labels_are_coordinates_and_columns_are_chosen() -> None:
    schema = Schema(
        columns=(
            Column.number("a", lower=0, upper=9),
            Column.number("b", lower=0, upper=1),
            Column.category("c", categories=("x", "y")),
        )
    )
    rng = np.random.default_rng(3)
    rows = [{"a": float(a), "b": 0.0, "c": "xy?"[place % 3]} for place, a in enumerate(rng.uniform(0, 9, 90))]
    asked: dict[str, Any] = {"k": 3, "radius": 0.05, "epsilon": 1, "schema": schema, "columns": ["c", "a"], "random_state": 1}
    plain = OutlierCount(**asked).fit(rows)
    pieces = OutlierCount(**asked).fit(Cut(pieces=[rows[:30], rows[30:]]))
    assert pieces.release_.value == plain.release_.value
    assert pieces.release_.provenance.parameters == plain.release_.provenance.parameters


@pytest.mark.parametrize(
    ("method", "engine"),
    [("power", "serial"), ("laplace", "serial"), ("global-laplace", "serial"), ("power", "processes:2")],
)
def test_a_release_from_files_is_that_of_the_table(method: str, engine: str, files: Path) -> None:
    asked: dict[str, Any] = {"k": 3, "radius": 0.05, "epsilon": 1, "schema": unit(3), "method": method, "random_state": 4}
    asked |= {"delta": 1e-6} if method == "laplace" else {}
    plain = OutlierCount(**asked).fit(files)
    pieces = OutlierCount(**asked).fit(spread(files, engine=engine))
    assert pieces.release_.value == plain.release_.value
    assert pieces.release_.provenance.parameters == plain.release_.provenance.parameters


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("points")
    for number, rows in enumerate(np.array_split(table("missing and infinite", 3), 3)):
        parquet.write_table(pa.table({f"c{place}": rows[:, place] for place in range(3)}), folder / f"{number}.parquet")
    return folder


@dataclass(frozen=True)
class Hostile:
    """An engine that does to the reports of one of its rounds what it likes."""

    spoil: str
    turn: int
    rounds: list[int] = field(default_factory=list)

    def reports(self, task: Any, pieces: Sequence[Any]) -> Iterator[Any]:
        self.rounds.append(1)
        found: Iterable[Any] = [task.counted(piece) for piece in pieces]
        if len(self.rounds) != self.turn:
            return iter(list(found)[::-1])
        return iter({"drops": found[1:], "doubles": [*found, found[0]], "dies": self._dying(found)}[self.spoil])  # type: ignore[index]

    def _dying(self, found: Iterable[Any]) -> Iterator[Any]:
        yield from list(found)[:1]
        raise DataError("every piece must be counted; a worker died too often. Nothing was charged.")


@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("spoil", ["drops", "doubles", "dies"])
def test_an_engine_that_drops_doubles_or_dies_costs_nothing(
    spoil: str, turn: int, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first look at the table, while rows are parted, while slabs are counted; nothing stays on disk."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    book = Ledger.create(tmp_path / "book", name="book", epsilon=1)
    question = OutlierCount(k=3, radius=0.05, epsilon=1, schema=unit(3), ledger=book)
    with pytest.raises(DataError, match="Nothing was charged"):
        question.fit(spread(files, engine=Hostile(spoil, turn)))
    assert book.entries() == ()
    assert list(scratch.iterdir()) == []
    question.fit(spread(files, engine=Hostile(spoil, 9)))
    assert len(book.entries()) == 1
    assert list(scratch.iterdir()) == []


def test_a_table_that_gives_other_rows_the_second_time_is_refused() -> None:
    rows = table("anywhere", 3)
    pieces = SpreadPoints.of(Cut(pieces=[rows, rows]), schema=unit(3), columns=None)
    changed = SpreadPoints(source=Cut(pieces=[rows, rows[:-1]]), coordinates=pieces.coordinates, extent=pieces.extent)
    with pytest.raises(DataError, match="must stay as it is while it is read"):
        changed.measured(k=3, radius=0.1, beta=None, cover="degeneracy", relation="add-remove")


def test_what_was_chosen_by_the_data_is_not_shown(files: Path) -> None:
    pieces = SpreadPoints.of(spread(files), schema=unit(3), columns=None)
    slabs = cut_slabs(pieces.coordinates, pieces.extent, radius=0.05, count=16)
    for shown in (repr(pieces), repr(slabs), repr(SlabBands(slabs=slabs, k=3, rungs=2))):
        assert not any(str(border) in shown for border in slabs.borders if len(str(border)) > 5)
        assert "array" not in shown
        assert "axis" not in shown


def test_a_slab_that_lacks_what_a_piece_has_for_it_is_refused() -> None:
    slabs = Slabs(coordinates=Coordinates.of(unit(1), None), axis=0, borders=(0.5,), radius=0.1)
    task = Shuffle.of_frame(SlabBands(slabs=slabs, k=1, rungs=1), plan="plan", pieces=2)
    for numbers, words in (
        ([0], "piece 1 is missing"),
        ([], "piece 0 is missing"),
        ([0, 0], "piece 0 was counted twice"),
        ([1, 0, 1], "piece 1 was counted twice"),
        ([0, 2], "must belong to this plan"),
    ):
        with pytest.raises(DataError, match=words):
            task.joined(0, [task.parted_rows(number, np.empty((0, 1)))[0] for number in numbers])
    with pytest.raises(DataError, match="must belong to this plan"):
        task.joined(0, [task.parted_rows(number, np.empty((0, 1)))[1] for number in (0, 1)])


def test_pieces_need_a_schema_and_a_method_with_a_promise(files: Path) -> None:
    with pytest.raises(DataError, match="a table in pieces must have a schema"):
        OutlierCount(k=3, radius=0.05, epsilon=1).fit(spread(files))
    with pytest.raises(ParameterError, match="method"):
        OutlierCount(k=3, radius=0.05, epsilon=1, delta=1e-6, method="paper", schema=unit(3)).fit(spread(files))


def test_shares_of_a_table_that_changed_meanwhile_are_not_put_together() -> None:
    """As many rows each time, so that only what the shares were taken from can tell."""
    coordinates = Coordinates.of(unit(6), None)
    bands = ShareBands(coordinates=coordinates, shares=2, k=2, radius=0.3, rungs=2)
    tables = [np.random.default_rng(seed).random((30, 6)) for seed in (1, 2)]

    class Changed:
        def grouped(self, statistic: Any) -> Any:
            parts = [
                bands.add(bands.zero(), Share(rows, *ends)) for rows, ends in zip(tables, [(0, 15), (15, 30)], strict=True)
            ]
            return bands.merge(*parts)

    with pytest.raises(DataError, match="Nothing was charged"):
        near_by_shares(Changed(), coordinates, np.empty(0, dtype=np.int64), k=2, radius=0.3, rungs=2)  # type: ignore[arg-type]
