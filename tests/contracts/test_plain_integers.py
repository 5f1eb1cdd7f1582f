"""A small numpy integer is taken as the whole number it is, wherever it comes in: its own arithmetic would wrap around."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabun.density import DensityRatio
from sabun.learning.settings import Settings


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
