from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regression.worlds import unit_study
from sabun.regression import PrivateRidge, Shape, Study, combine, plan_of
from sabun.regression.shortening import least_weight, remark_on_lengths
from sabun.regression.stages import radius_of
from sabun.telling.language import retold, speaking
from sabun.telling.terminal.foretelling import shown_plan

TERMS: dict[str, Any] = {"epsilon": 5, "x_bounds": [(-1, 1)] * 3, "y_bounds": (-1, 1)}


def agreed(features: int, **terms: Any) -> Study:
    return unit_study(features, **({"fit_intercept": True, "clip_radius": None} | terms))


def fitted(spread: float, seed: int = 0, **terms: Any) -> PrivateRidge:
    X = np.random.default_rng(seed).uniform(-spread, spread, (800, 3))
    return PrivateRidge(**TERMS, random_state=seed, organisation=f"{spread:g}", **terms).fit(X, X[:, 0])


def said_of(findings: tuple[str, ...]) -> list[str]:
    return [note for note in findings if note.startswith("Rows longer than the radius")]


def test_a_row_counts_by_the_square_of_its_weight() -> None:
    study = agreed(3, method="staged")
    assert least_weight(study, radius_of(study.design, 3)) == pytest.approx(1 / 8)
    assert least_weight(study, radius_of(study.design, 0)) == 1
    assert not remark_on_lengths(study, [radius_of(study.design, 0)])


def test_a_model_says_what_its_radius_does_to_long_rows() -> None:
    """Of the shortest radius in the pool; with the advised one there is nothing to say."""
    short, long = fitted(0.1), fitted(1.0, 1)
    step = short.release_["radius"]
    (note,) = said_of(short.model_.findings)
    assert f"down to {2.0**-step:.3g} times as much" in note
    assert note in str(short.model_)
    assert "agree on clip_radius=2, with which all rows count alike" in note
    assert said_of(combine([long.release_, short.release_]).findings) == [note]
    assert not said_of(fitted(0.1, clip_radius=2).model_.findings)
    assert not said_of(fitted(0.1, method="ssp-gauss").model_.findings)
    with speaking("ja"):
        assert retold(note) != note


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_plan_says_it_before_the_charge(relation: str) -> None:
    narrow = plan_of(agreed(30, method="staged", relation=relation), n_records=3000, shape=Shape(spread=0.1, centre=0.1))
    assert narrow.least_weight < 0.1
    told = next(told for told in narrow.remarks if "rows longer than the radius" in told)
    assert told in str(narrow)
    assert told in shown_plan(narrow)
    assert "agree on clip_radius=5.57" in str(narrow)
    assert narrow.to_dict()["least_weight"] == narrow.least_weight
    for other in (agreed(30, method="ssp-gauss"), agreed(30, method="staged", clip_radius="5.57")):
        assert not plan_of(other, n_records=3000).remarks
