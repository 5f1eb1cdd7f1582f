"""How much accuracy the noise of a run will cost, foretold from public numbers.

A model of P weights learns from n records through noise; what matters is how long the noise is beside the signal: for steps of
gradients sqrt(P) sigma / (n q sqrt(steps)), for noisy centroids the square of the noise on a class mean in spreads of a column.
On the tables of `benchmarks.learning_accuracy` the accuracy lost is about that share of all that can be lost, 1 - 1 / classes,
and a few times as much with hidden layers. Nothing is lost where the model would learn nothing without noise either.
"""

from __future__ import annotations

import math

from sabun.asking import Forecast
from sabun.learning.centroids import NoisyCentroids
from sabun.learning.dpadam import DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.network import Network
from sabun.learning.objective import ObjectivePerturbation
from sabun.learning.training import Method
from sabun.telling.floor import Floor

__all__ = ["DROWNED", "drowned", "floor_of", "foretold", "noise_share", "noise_told", "trained"]

_VACUOUS = (
    "Even if every column told the classes apart, nine tenths of what there is to learn would be lost to noise. Use a larger "
    "epsilon, more records or fewer columns."
)
_SPENDING = "The method 'dp-adam', which spends a delta, needs less of them."
DROWNED = 9.0
"""Of what is lost beside what is kept, on the kindest table."""
_DROWNED = (
    "With {few} nine tenths of what there is to learn would be lost to noise even if every column told the classes apart."
)

_SPREAD = 3.0
_OFTEN = "nine of ten tables"
"""How often the loss lay below three times the unkind forecast, and not below a third of the kind one, on tables held out
(`benchmarks.forecasts --held-out`), one point of accuracy granted; a model that noise made better lost nothing."""
_KINDS = (
    "the classes lie well apart",
    "the classes overlap, few columns tell them apart, or values fill a tenth of their bounds",
)
_KINDLY, _UNKINDLY, _LAYERED = 0.5, 5.0, 6.0
"""What is lost in shares of noise: kindly, unkindly (twice the share, and inputs 2.5 times too short, for no spread is taken to
be below a quarter), unkindly with hidden layers, whose boundaries bend only where the noise lets them."""
_FILLED = 0.1
"""What values fill of their bounds, unkindly."""
_NEAR = 5.0
"""Noise on the number of records that is exceeded once in 150 times, in its scales."""
_QUANTITY = "accuracy lost to noise, beside the same model without"


def noise_share(method: Method, n_records: int) -> float | None:
    """The length of the noise beside that of the signal; None for a way of training about which nothing is known."""
    if isinstance(method, NoisyCentroids):
        return method.noise_for(n_records) ** 2
    if isinstance(method, DpAdam):
        return method.noise_on(trained(method, n_records)) / n_records
    if isinstance(method, DpSgd | LaplaceSgd):
        weights, met = method.network.n_weights, float(method.plan.probability) * n_records * math.sqrt(method.plan.steps)
        if isinstance(method, DpSgd):
            return math.sqrt(weights) * float(method.multiplier) / met
        # Gradients are cut in L1, where a signal spread over P weights has a length of 1 / sqrt(P) only.
        return math.sqrt(2) * weights / (float(method.step_epsilon) * met)
    if isinstance(method, ObjectivePerturbation):
        # Noise of a mean length of 2 D / epsilon; a row of length 1 pulls by a half, and by a root of 2 less along the others.
        return 4 * math.sqrt(2) * method.dimension / (float(method.objective_epsilon) * n_records)
    return None


def drowned(method: Method, n_records: int) -> bool:
    """Whether nine tenths are lost even on the kindest table, all of whose columns say the same: the class.

    There the noise counts along one direction only, a root of the number of weights (of columns, for centroids) shorter. More
    classes have more pairs to be told apart. Both were found on such tables, in `tests/learning/test_forecasting.py` again.
    """
    share = noise_share(method, n_records)
    if share is None:
        return False
    network = trained(method, n_records)
    pairs = network.sizes[-1] - 1
    if isinstance(method, NoisyCentroids):
        kindest = _KINDLY * pairs**2 * share / network.sizes[0]
    else:
        kindest = pairs * share / math.sqrt(network.n_weights)
    return min(kindest, _KINDLY * share) >= DROWNED


def noise_told(method: Method) -> str:
    """What to say of a run that is drowned, and what to do."""
    return _VACUOUS if method.guarantee.delta else f"{_VACUOUS} {_SPENDING}"


def floor_of(method: Method) -> Floor:
    """From how many records on a run is not drowned, for whoever may not look how many there are."""
    return Floor.of(lambda n_records: drowned(method, n_records), noise=_DROWNED)


def foretold(method: Method, n_records: int, n_classes: int) -> tuple[Forecast, ...]:
    """A kind and an unkind forecast, for nobody has told how far apart the classes lie."""
    shares = _shares(method, n_records)
    if shares is None:
        return ()
    most = 1 - 1 / n_classes
    middles = [most * share / (1 + share) for share in shares]
    return tuple(
        Forecast(
            quantity=_QUANTITY,
            low=0.0,
            middle=middle,
            high=min(most, _SPREAD * middles[-1]),
            assumed=(kind, f"about {n_records} records, {n_classes} classes of like size"),
            often=_OFTEN,
        )
        for middle, kind in zip(middles, _KINDS, strict=True)
    )


def _shares(method: Method, n_records: int) -> tuple[float, float] | None:
    """Of all that can be lost: where the classes lie well apart, and where not; None where nothing is known."""
    share = noise_share(method, n_records)
    if share is None:
        return None
    if isinstance(method, NoisyCentroids):
        # The noise has a part along every column; kindly, every column tells the classes apart, unkindly one alone does. Means
        # and spreads that are off by noise move where columns are cut: that costs in proportion to it, not to its square.
        misplaced = _KINDLY * method.noise_of_scaling(n_records) / _FILLED
        return _KINDLY * share, max(2, method.network.sizes[0]) * share + misplaced
    if not isinstance(method, DpAdam):
        return _KINDLY * share, (_LAYERED if len(_network(method).sizes) > 2 else _UNKINDLY) * share
    found = [(method.noise_on(network) / n_records, network) for network in _likely(method, n_records)]
    unkindly = [share * (_LAYERED if len(network.sizes) > 2 else _UNKINDLY) for share, network in found]
    return _KINDLY * min(share for share, _ in found), max(unkindly)


def _likely(method: DpAdam, n_records: int) -> tuple[Network, ...]:
    """What may be trained on so many records: both networks where the noise on their number can decide."""
    if len(method.networks) == 1 or not method.count_epsilon:
        return (trained(method, n_records),)
    near = abs(n_records - method.plenty) <= _NEAR / float(method.count_epsilon)
    return method.networks if near else (trained(method, n_records),)


def trained(method: Method, n_records: int) -> Network:
    """The network that would be taken for so many records."""
    if isinstance(method, DpAdam) and n_records >= method.plenty:
        return method.networks[-1]
    return _network(method)


def _network(method: Method) -> Network:
    network: Network = method.network  # type: ignore[attr-defined]
    return network
