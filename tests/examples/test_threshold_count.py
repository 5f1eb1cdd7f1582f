"""What a room's tests look like, on the smallest mechanism there is."""

from __future__ import annotations

import math
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from sabun import Column, Ledger, Release, Schema
from sabun.errors import BudgetExceeded, DataError, ParameterError, SimulatedError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from threshold_count import count as module  # type: ignore[import-not-found]

ThresholdCount = module.ThresholdCount
SCHEMA = Schema(columns=[Column.number("age", lower=0, upper=120, missing=40)])
CELLS = st.one_of(st.floats(), st.none(), st.text(max_size=5), st.integers())


def _model(**changes: Any) -> Any:
    return ThresholdCount(**({"column": "age", "threshold": 60, "schema": SCHEMA, "epsilon": 0.5} | changes))


def _exact_count(rows: list[object]) -> int:
    frame = {"age": rows}
    import pandas

    matrix = SCHEMA.encode(pandas.DataFrame(frame, dtype=object))
    return int(module._above(matrix[:, 0], 60)[0])


@given(st.lists(CELLS, min_size=1, max_size=12), CELLS, st.data())
def test_one_row_moves_the_statistic_by_at_most_one(rows: list[object], other: object, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    assert abs(_exact_count(rows) - _exact_count(neighbour)) <= 1


@pytest.mark.parametrize("scale_error", [1.0, 0.7])
def test_the_pmf_ratio_is_at_most_e_to_the_epsilon(scale_error: float) -> None:
    """Exact enumeration on neighbouring counts 3 and 4 of 10 rows, clamped; a scale that is too small must be caught."""
    epsilon, scale = 0.5, 2.0 * scale_error
    laws = []
    for truth in (3, 4):
        weights = {z: math.exp(-abs(z) / scale) for z in range(-400, 401)}
        total = sum(weights.values())
        law = np.zeros(11)
        for z, weight in weights.items():
            law[min(max(truth + z, 0), 10)] += weight / total
        laws.append(law)
    worst = float(np.max(np.abs(np.log(laws[0] / laws[1]))))
    assert (worst <= epsilon + 1e-9) == (scale_error == 1.0)


def test_from_csv_to_release_and_back(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("name,age\n" + "\n".join(f"p{i},{20 + i % 60}" for i in range(600)))
    ledger = Ledger.create(tmp_path / "people.ledger", name="people", unit="person", epsilon=1)
    model = _model(ledger=ledger).fit(table)
    assert abs(model.count_ - 190) < 60
    assert model.interval_[0] <= model.count_ <= model.interval_[1]
    assert ledger.remaining.epsilon == Fraction(1, 2)
    model.release_.save(tmp_path / "count.json")
    loaded = Release.load(tmp_path / "count.json")
    assert loaded["count"] == model.count_
    assert loaded.guarantee == model.guarantee_
    assert loaded.provenance.receipt is not None
    assert loaded.provenance.receipt.entry_hash == ledger.entries()[0].entry_hash


def test_the_charge_is_on_disk_before_the_coin_is_tossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "l", name="l", epsilon=1)
    seen = []

    def watching(scale: Fraction, *, coin: object) -> int:
        seen.append(Ledger.open(tmp_path / "l").remaining.epsilon)
        return 0

    monkeypatch.setattr(module, "discrete_laplace", watching)
    _model(ledger=ledger).fit(np.array([[70.0]]))
    assert seen == [Fraction(1, 2)]


def test_a_refused_budget_tosses_no_coin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "l", name="l", epsilon=0.25)
    monkeypatch.setattr(module, "discrete_laplace", lambda *_, **__: pytest.fail("the coin was tossed"))
    with pytest.raises(BudgetExceeded, match=r"'l' has epsilon 0.25 of 0.25 left; this release needs 0.5"):
        _model(ledger=ledger).fit(np.array([[70.0]]))
    assert ledger.remaining.epsilon == Fraction(1, 4)


def test_a_seeded_result_is_never_private(tmp_path: Path) -> None:
    model = _model(random_state=1).fit(np.full((50, 1), 70.0))
    assert model.count_ == _model(random_state=1).fit(np.full((50, 1), 70.0)).count_
    assert model.guarantee_.simulated
    with pytest.raises(SimulatedError, match="NOT PRIVATE"):
        model.release_.save(tmp_path / "x.json")
    ledger = Ledger.create(tmp_path / "l", name="l", epsilon=1)
    with pytest.raises(SimulatedError, match="a seeded result is not private"):
        _model(random_state=1, ledger=ledger).fit(np.full((50, 1), 70.0))
    assert ledger.remaining.epsilon == 1


def test_the_interval_covers_as_often_as_it_says() -> None:
    hits = sum(
        low <= 25 <= high
        for low, high in (_model(random_state=seed).fit([[70.0]] * 25 + [[10.0]] * 75).interval_ for seed in range(300))
    )
    assert hits >= 270


def test_it_is_an_estimator() -> None:
    model = _model()
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    with pytest.raises(ParameterError, match=r"epsilon must be finite and > 0; got -1"):
        model.set_params(epsilon=-1).fit([[1.0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, r"epsilon must be finite and > 0; got 0"),
        ({"column": "height"}, r"column must be one of 'age'; got 'height'"),
        ({"threshold": math.nan}, r"threshold must be a finite number; got nan"),
        ({"schema": None}, r"schema must be a Schema; got None"),
    ],
)
def test_bad_parameters_are_refused_at_construction(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        _model(**changes)


def test_a_bad_file_burns_no_budget(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l", name="l", epsilon=1)
    with pytest.raises(DataError):
        _model(ledger=ledger).fit(tmp_path / "missing.csv")
    assert ledger.remaining.epsilon == 1
