"""A small numpy integer is taken as the whole number it is, wherever it comes in: its own arithmetic would wrap around."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from typing import Any

import numpy as np
import pytest

from sabun.density import DensityRatio
from sabun.density.paper import amplified
from sabun.learning import AnonymizedLearningSettings, PrivateClassifier
from sabun.privacy import noise
from sabun.privacy.events import DiscreteLaplace
from sabun.privacy.noise import Grid


def test_rooms_take_plain_integers_at_their_door() -> None:
    rng = np.random.default_rng(0)
    public = rng.normal(size=(60, 2))
    model, small = DensityRatio(epsilon=1), np.int8(100)
    assert model.plan(public=public, private_size=small) == model.plan(public=public, private_size=100)  # type: ignore[arg-type]
    short, long = AnonymizedLearningSettings(batch_size=np.int8(32)), AnonymizedLearningSettings(batch_size=32)  # type: ignore[arg-type]
    typed = PrivateClassifier(method=short, hidden=[np.int8(64)], epochs=np.int32(20))  # type: ignore[list-item, arg-type]
    plain = PrivateClassifier(method=long, hidden=[64], epochs=20)
    assert typed.plan(n_features=3, n_records=small) == plain.plan(n_features=3, n_records=100)  # type: ignore[arg-type]
    choices = typed._checked()
    assert [type(number) for number in (choices.epochs, *choices.layers(100))] == [int, int]


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


SMALL = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64]
SAMPLERS: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda n, **given: noise.bernoulli(Fraction(1, 3), **given, size=n(100)),
    "bernoulli_exp": lambda n, **given: noise.bernoulli_exp(n(1), **given, size=n(100)),
    "categorical": lambda n, **given: noise.categorical([n(100), n(100), n(1)], **given, size=n(100)),
    "discrete_gaussian": lambda n, **given: noise.discrete_gaussian(n(100), **given, size=n(100)),
    "discrete_laplace": lambda n, **given: noise.discrete_laplace(n(100), **given, size=n(100)),
    "exponential_choice": lambda n, **given: np.array(
        [noise.exponential_choice([n(100), n(0), n(3)], rate=n(1), **given) for _ in range(100)]
    ),
    "cubical_laplace": lambda n, **given: noise.cubical_laplace(n(100), dimension=n(100), **given),
    "rounded_gaussian": lambda n, **given: noise.rounded_gaussian(n(100), **given, size=n(100)),
    "rounded_gaussians": lambda n, **given: np.concatenate(noise.rounded_gaussians([(n(100), n(50)), (n(9), n(50))], **given)),
    "spherical_laplace": lambda n, **given: noise.spherical_laplace(n(100), dimension=n(100), **given),
    "uniform_below": lambda n, **given: noise.uniform_below(n(100), **given, size=n(100)),
}


def test_every_sampler_is_among_them() -> None:
    assert {name for name in noise.__all__ if "coin" in signature(getattr(noise, name)).parameters} == set(SAMPLERS)


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_counts_in_plain_integers(name: str, kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns where an integer wraps around
        drawn = SAMPLERS[name](kind, coin=noise.seeded_coin(3))
    assert drawn.tolist() == SAMPLERS[name](int, coin=noise.seeded_coin(3)).tolist()
    assert len(drawn) == 100


@pytest.mark.parametrize("kind", SMALL)
def test_events_count_in_plain_integers(kind: Any) -> None:
    event = DiscreteLaplace(scale=kind(3), sensitivity=kind(100), count=kind(100))
    assert event == DiscreteLaplace(scale=Fraction(3), sensitivity=100, count=100)
    assert event.rho() == DiscreteLaplace(scale=Fraction(3), sensitivity=100, count=100).rho()
    assert event.to_dict() == {"kind": "discrete-laplace", "count": 100, "scale": "3", "sensitivity": 100}
