"""Clipped sums in shards: each row once, whatever the borders; the same bits in one process and in several."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.clipping import SENSITIVITY, ClippedSum
from sabun.learning.network import Network
from sabun.learning.passes import squared_lengths
from sabun.learning.settings import DpAdamSettings, DpSgdSettings
from sabun.learning.shards import RowShard, Sums, bounds, members_of, row_sums

Floats = NDArray[np.float64]


class Numbers:
    """A shard whose sum is that of plain numbers."""

    def __init__(self, numbers: Floats) -> None:
        self._numbers = numbers

    def __call__(self, weights: Floats, members: NDArray[np.intp] | None) -> Floats:
        return np.array([(self._numbers if members is None else self._numbers[members]).sum()])


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("rows", [0, 1, 6, 23])
def test_every_row_of_a_batch_is_in_one_shard(rows: int, shards: int) -> None:
    places = bounds(rows, shards)
    assert [row for low, high in places for row in range(low, high)] == list(range(rows))
    for batch in (np.arange(rows), np.arange(0, rows, 2), np.arange(0)):
        found = [low + member for low, high in places for member in members_of(batch, low, high)]  # type: ignore[union-attr]
        assert found == batch.tolist()
        counts = [Numbers(np.ones(high - low)) for low, high in places]
        assert Sums(counts, rows=rows)(np.zeros(1), batch).tolist() == [len(batch)]


def test_what_rounding_takes_away_between_shards_is_kept() -> None:
    parts = np.array([1e8, 1e-9, -1e8, 1e-9, 0.1, 1e-9])
    shards = [Numbers(part[None]) for part in parts]
    found = Sums(shards, rows=len(parts))(np.zeros(1), None)
    assert found[0] == math.fsum(parts)
    assert found[0] != parts.sum()


def table(rows: int = 90) -> tuple[Network, Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    return Network(sizes=(4, 5, 3)), rng.uniform(-1, 1, size=(rows, 4)), rng.integers(0, 3, size=rows)


def sums(network: Network, rows: Floats, labels: NDArray[np.int64], *, shards: int, clip_norm: float = 0.1) -> Sums:
    kind = np.dtype(np.float64)
    return row_sums(network, rows, labels, clip_norm=clip_norm, piece=16, kind=kind, shards=shards, crew=None)


def test_the_sum_in_shards_is_the_sum() -> None:
    network, rows, labels = table()
    weights, batch = network.initial() + 0.3, np.arange(1, 90, 3)
    whole = ClippedSum(network, clip_norm=0.1, piece=16)
    for chosen in (batch, None):
        expected = whole(weights, rows if chosen is None else rows[chosen], labels if chosen is None else labels[chosen])
        for shards in (1, 2, 5, 90):
            found = sums(network, rows, labels, shards=shards)(weights, chosen)
            assert np.abs(found - expected).max() < 1e-13
    expected = whole(weights, rows, labels, squared_lengths(rows))
    assert (sums(network, rows, labels, shards=1)(weights, None) == expected).all()


@pytest.mark.parametrize("shards", [2, 7])
def test_one_row_more_moves_the_sum_by_at_most_one_clipped_gradient(shards: int) -> None:
    """It moves the borders of all shards too; rows are far beyond the clip norm."""
    network, rows, labels = table()
    weights = network.initial() + 0.5
    for place in (0, 45, 89):
        fewer = np.delete(rows, place, axis=0), np.delete(labels, place)
        moved = sums(network, rows, labels, shards=shards)(weights, None) - sums(network, *fewer, shards=shards)(weights, None)
        assert 0.99 < np.linalg.norm(moved) <= float(SENSITIVITY)


def test_a_shard_travels_without_what_was_computed_from_it() -> None:
    network, rows, labels = table()
    shard = RowShard(network=network, clip_norm=1.0, piece=16, kind="<f8", rows=rows, labels=labels)
    weights = network.initial()
    first = shard(weights, None)
    assert {"_clipped", "_lengths"} <= set(vars(shard))
    again = pickle.loads(pickle.dumps(shard))
    assert set(vars(again)) == {"network", "clip_norm", "piece", "kind", "rows", "labels"}
    assert (again(weights, None) == first).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"processes": 0}, "processes must be"),
        ({"processes": 65}, "processes must be at most 64"),
        ({"processes": 1.5}, "processes must be"),
        ({"shards": 2000}, "shards must be at most 1024"),
        ({"processes": 3, "shards": 2}, "shards must be at least 3, one for each process"),
    ],
)
@pytest.mark.parametrize("kind", [DpAdamSettings, DpSgdSettings])
def test_settings_that_make_no_sense_are_refused(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PrivateClassifier(method=kind(**settings))
