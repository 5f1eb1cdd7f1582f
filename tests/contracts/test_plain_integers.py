"""A small numpy integer is taken as the whole number it is, wherever it comes in: its own arithmetic would wrap around."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.density import DensityRatio
from sabun.density.paper import amplified
from sabun.learning.settings import Settings
from sabun.privacy.noise import Grid


def test_rooms_take_plain_integers_at_their_door() -> None:
    rng = np.random.default_rng(0)
    public = rng.normal(size=(60, 2))
    model, small = DensityRatio(epsilon=1), np.int8(100)
    assert model.plan(public=public, private_size=small) == model.plan(public=public, private_size=100)  # type: ignore[arg-type]
    facts: dict[str, Any] = dict.fromkeys(Settings.__dataclass_fields__) | {"method": "anonymized-learning", "epsilon": 1}
    facts |= {"hidden": [np.int8(64)], "clip_norm": 1.0, "sampling_rate": 0.1, "epochs": np.int32(20), "batch_size": 32}
    facts |= {"momentum": 0.0, "precision": "double", "threshold": 1.0, "weight_bound": 1.0, "synthesis": "histogram"}
    settings = Settings(**(facts | {"n_synthetic": 10, "bins": 2, "group_size": 2}))
    assert type(settings.epochs) is int
    assert settings.hidden == (64,)
    assert type(settings.hidden[0]) is int


@pytest.mark.parametrize("exponent", [-40, -10, 0, 3])
@pytest.mark.parametrize(
    "number", [np.int64(2**60), np.int32(-(2**30)), np.int8(100), np.uint8(200), np.float32(0.1), np.float16(0.1)]
)
def test_a_grid_counts_in_plain_integers(number: Any, exponent: int) -> None:
    index = Grid(exponent).index(number)
    assert type(index) is int
    assert index == round(Fraction(number.item()) / Fraction(2) ** exponent)


@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_amplification_counts_in_plain_integers(kind: Any) -> None:
    tenth = Fraction(1, 10)
    assert amplified(tenth, sampled=kind(50), of=kind(100)) == amplified(tenth, sampled=50, of=100)
