"""How much accuracy the noise of a run will cost, foretold from public numbers.

A model of P weights learns from n records through noise; what matters is how long the noise is beside the signal: for steps of
gradients sqrt(P) sigma / (n q sqrt(steps)), for noisy centroids the square of the noise on a class mean in spreads of a column.
On the tables of `benchmarks.learning_accuracy` the accuracy lost is about that share of all that can be lost, 1 - 1 / classes.
"""

from __future__ import annotations

import math

from sabun.asking import Forecast
from sabun.learning.centroids import NoisyCentroids
from sabun.learning.dpadam import DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.network import Network
from sabun.learning.training import Method

__all__ = ["foretold", "noise_share", "trained"]

_SPREAD = 3.0
_OFTEN = "four of five tables"
"""How often the loss lay between a third of the kind and three times the unkind forecast on tables held out
(`benchmarks.forecasts --held-out`), one point of accuracy granted; the interval of both forecasts is that span."""
_KINDS = ((0.5, "the classes lie well apart"), (2.0, "the classes overlap, or few columns tell them apart"))
_QUANTITY = "accuracy lost to noise, beside the same model without"


def noise_share(method: Method, n_records: int) -> float | None:
    """The length of the noise beside that of the signal; None for a way of training about which nothing is known."""
    if isinstance(method, NoisyCentroids):
        return method.noise_for(n_records) ** 2
    if isinstance(method, DpAdam):
        return math.sqrt(trained(method, n_records).n_weights / method.steps) * float(method.multiplier) / n_records
    if isinstance(method, DpSgd | LaplaceSgd):
        weights, met = method.network.n_weights, float(method.plan.probability) * n_records * math.sqrt(method.plan.steps)
        if isinstance(method, DpSgd):
            return math.sqrt(weights) * float(method.multiplier) / met
        # Gradients are cut in L1, where a signal spread over P weights has a length of 1 / sqrt(P) only.
        return math.sqrt(2) * weights / (float(method.step_epsilon) * met)
    return None


def foretold(method: Method, n_records: int, n_classes: int) -> tuple[Forecast, ...]:
    """A kind and an unkind forecast, for nobody has told how far apart the classes lie."""
    share = noise_share(method, n_records)
    if share is None:
        return ()
    most = 1 - 1 / n_classes
    middles = [most * factor * share / (1 + factor * share) for factor, _ in _KINDS]
    return tuple(
        Forecast(
            quantity=_QUANTITY,
            low=middles[0] / _SPREAD,
            middle=middle,
            high=min(most, _SPREAD * middles[-1]),
            assumed=(kind, f"about {n_records} records, {n_classes} classes of like size"),
            often=_OFTEN,
        )
        for middle, (_, kind) in zip(middles, _KINDS, strict=True)
    )


def trained(method: Method, n_records: int) -> Network:
    """The network that would be taken for so many records."""
    layered = isinstance(method, DpAdam) and n_records >= method.plenty
    network: Network = method.networks[-1] if isinstance(method, DpAdam) and layered else method.network  # type: ignore[attr-defined]
    return network
