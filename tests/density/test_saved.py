from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sabun import Column, Release, Schema
from sabun.density import DensityRatio
from sabun.errors import DataError, ReleaseError

SCHEMA = Schema(columns=[Column.number("age", lower=0, upper=100), Column.category("sex", ["F", "M"])])


def table(rows: int, mean: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"age": rng.normal(mean, 10, rows), "sex": rng.choice(["F", "M"], rows), "extra": rng.normal(size=rows)}
    )


@pytest.fixture(scope="module", params=["plain", "schema", "add-remove"])
def fitted(request: pytest.FixtureRequest) -> DensityRatio:
    options = {
        "plain": {"columns": ["age", "extra"]},
        "schema": {"schema": SCHEMA},
        "add-remove": {"schema": SCHEMA, "relation": "add-remove", "delta": 1e-6},
    }[request.param]
    return DensityRatio(epsilon=1, **options).fit(private=table(3000, 45, 1), public=table(200, 40, 2))


def test_a_reader_gets_the_same_answers_as_the_publisher(fitted: DensityRatio, tmp_path: Path) -> None:
    fitted.to_csv(tmp_path / "w.csv")
    reader = DensityRatio.restore(tmp_path / "w.csv.release.json", public=tmp_path / "w.csv")
    assert np.array_equal(reader.weights_, fitted.weights_)
    assert reader.guarantee_ == fitted.guarantee_
    new = table(20, 42, 3)
    assert np.allclose(reader.predict(new), fitted.predict(new), equal_nan=True)
    assert np.allclose(reader.support_score(new), fitted.support_score(new))
    ours, theirs = reader.query("age", where=lambda t: t["sex"] == "F"), fitted.query("age", where=lambda t: t["sex"] == "F")
    assert ours.to_dict()["interval"] == pytest.approx(theirs.to_dict()["interval"])
    assert reader.diagnostics_.effective_size == pytest.approx(fitted.diagnostics_.effective_size)


def test_a_condition_narrows_the_question(fitted: DensityRatio) -> None:
    women = fitted.query("age", where=lambda t: t["sex"] == "F")
    everybody = fitted.query("age")
    assert women.sampling_error > everybody.sampling_error
    assert fitted.query("age", where=np.ones(200)).to_dict() == everybody.to_dict()
    with pytest.raises(DataError, match="where must hold for a public row with weight; it holds for none"):
        fitted.query("age", where=np.zeros(200))


def test_another_public_table_is_noticed(fitted: DensityRatio) -> None:
    for other in (table(200, 40, 9), table(100, 40, 2), table(200, 40, 2).iloc[::-1]):
        with pytest.raises(DataError, match="the public table must be the one the weights were made for, row by row"):
            DensityRatio.restore(fitted.release_, public=other)


def test_a_restored_release_takes_no_more_records(fitted: DensityRatio) -> None:
    from sabun.errors import ParameterError

    reader = DensityRatio.restore(fitted.release_, public=table(200, 40, 2))
    with pytest.raises(ParameterError, match="finalize must be called once"):
        reader.partial_fit(private=table(5, 1, 1))


def test_releases_of_other_kinds_are_refused() -> None:
    other = DensityRatio(epsilon=1, method="ulsif-b", columns=["age"]).fit(private=table(300, 45, 1), public=table(60, 40, 2))
    with pytest.raises(ReleaseError, match=r"must be of kind 'density\.weights' made by method 'rkhs'"):
        DensityRatio.restore(other.release_, public=table(60, 40, 2))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("features", {"columns": ["age"]}, "must hold the features its weights were made with"),
        ("features", 3, "must hold the features its weights were made with"),
        ("coordinates", np.ones((2, 2)), "must hold the kernel its weights were made with"),
        ("centres", np.ones((9, 9)), "must hold the kernel its weights were made with"),
        ("level", None, "must hold the kernel its weights were made with"),
        ("uncovered", "much", "must hold the kernel its weights were made with"),
        ("noise_sd", 0.0, "must hold the kernel its weights were made with"),
        ("converged", 3, "must hold the kernel its weights were made with"),
    ],
)
def test_damaged_releases_are_refused(fitted: DensityRatio, name: str, value: object, message: str) -> None:
    broken: Release = dataclasses.replace(fitted.release_, value={**fitted.release_.value, name: value})
    with pytest.raises(ReleaseError, match=message):
        DensityRatio.restore(broken, public=table(200, 40, 2))


GOLDEN = Path(__file__).parent / "golden"


def test_a_release_of_an_earlier_version_still_answers() -> None:
    """Written before the uncovered share was released; what it cannot tell, it says."""
    reader = DensityRatio.restore(GOLDEN / "hinge.csv.release.json", public=GOLDEN / "hinge.csv")
    assert reader.mean("age") == pytest.approx(43.27783420075369)
    told = reader.query("age", bounds=(0, 100))
    assert (told.estimate, told.interval, told.uncovered) == (reader.mean("age"), None, None)
    assert "made by an earlier version" in told.reason
    new = pd.DataFrame({"age": [42.0, 300.0], "sex": ["F", "M"]})
    assert np.isfinite(reader.predict(new)[0])
    assert reader.support_score(new).shape == (2,)
    assert len(reader.sample(3)) == 3
