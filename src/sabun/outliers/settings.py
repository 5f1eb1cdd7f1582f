"""The public choices of a private count: checked once, exact from then on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sabun import checks
from sabun.asking import Ask
from sabun.outliers.error_bar import ErrorBar
from sabun.outliers.kissing import RELATIONS
from sabun.outliers.ladder import COVERS
from sabun.outliers.laws import Gaussian, Laplace, Law, PowerTail
from sabun.privacy.amounts import AmountLike, exact, exact_positive
from sabun.privacy.guarantee import Guarantee
from sabun.records.persons import assumptions_of

__all__ = [
    "METHODS",
    "Amounts",
    "assumptions_for",
    "check_cover",
    "check_shares",
    "count_epsilon",
    "load_loops",
    "promise",
    "smooth_law",
]

METHODS = ("power", "laplace", "gaussian", "global-laplace", "global-gaussian", "paper")
_PURE = ("power", "global-laplace")
_SMOOTH = ("power", "laplace", "gaussian")
_USUAL_RATIO = 5
"""epsilon / beta of the power tail unless told otherwise: the best of a sweep on public data."""


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """What one count may spend, and on what.

    Args:
        epsilon: The whole promise.
        delta: The whole promise.
        method: One of `METHODS`.
        law: The noise of a smooth mechanism, else None.
        bar: The error bar, if it is paid for.
    """

    epsilon: Fraction
    delta: Fraction
    method: str
    law: Law | None
    bar: ErrorBar | None

    @classmethod
    def of(
        cls, *, epsilon: AmountLike, delta: AmountLike, method: str, beta: AmountLike | None, error_bar: AmountLike
    ) -> Amounts:
        """Checks the amounts against the mechanism.

        Raises:
            ParameterError: One of them breaks its rule.
        """
        checks.one_of(METHODS, method=method)
        whole, slack = exact_positive(epsilon, name="epsilon"), check_delta(delta, method)
        share = check_shares(error_bar)
        if method not in _SMOOTH:
            checks.require(beta is None, "left out: only smooth mechanisms have one", beta=beta)
            return cls(epsilon=whole, delta=slack, method=method, law=None, bar=None)
        law = smooth_law(method, epsilon=count_epsilon(whole, share), delta=slack, beta=beta)
        bar = ErrorBar(epsilon=whole * share, beta=law.beta) if share else None
        return cls(epsilon=whole, delta=slack, method=method, law=law, bar=bar)


def count_epsilon(epsilon: Fraction, share: Fraction) -> Fraction:
    """What is left for the count once the error bar is paid."""
    return (1 - share) * epsilon


def smooth_law(method: str, *, epsilon: Fraction, delta: Fraction, beta: AmountLike | None) -> Law:
    """The noise of a smooth mechanism, from the part of epsilon that the count may use."""
    if method == "power":
        rate = epsilon / _USUAL_RATIO if beta is None else exact_positive(beta, name="beta")
        rule = "below the epsilon of the count, which is epsilon without the share of the error bar"
        checks.require(rate < epsilon, rule, beta=beta)
        return PowerTail(epsilon=epsilon, beta=rate)
    law: Law = Laplace(epsilon=epsilon, delta=delta) if method == "laplace" else Gaussian(epsilon=epsilon, delta=delta)
    advice = f"Method {method!r} fixes it from epsilon and delta."
    checks.require(beta is None, "left out", advice, beta=beta)
    return law


def check_delta(delta: AmountLike, method: str) -> Fraction:
    """Zero for the pure mechanisms, otherwise a small number above it."""
    read = exact(delta, name="delta")
    if method in _PURE:
        checks.require(read == 0, f"0 with method {method!r}, which needs none", delta=delta)
    else:
        checks.require(0 < read < 1, f"above 0 and below 1 with method {method!r}", delta=delta)
    return Fraction(read)


def check_shares(error_bar: AmountLike) -> Fraction:
    """The share of epsilon that pays for the error bar."""
    share = exact(error_bar, name="error_bar")
    checks.require(0 <= share < 1, "a share of epsilon, at least 0 and below 1", error_bar=error_bar)
    return Fraction(share)


def load_loops() -> None:
    """Runs the compiled loops once while nothing is paid for: what can go wrong with loading them goes wrong then."""
    from sabun.outliers import peeling, products, tree

    few = np.zeros((3, products.LEAST_WIDTH))
    graph = tree.neighbours_within(few, 1.0, 3)
    products.sifted(few, graph.tree.order, 1.0, 3, 3, graph.counts, graph.starts, 0)
    peeling.running_most(graph, np.arange(3), np.array([3]))
    peeling.degeneracy_plus_one(graph, 3)
    peeling.dense_degeneracy_plus_one(products.bit_graph(few, 1.0), 3)
    peeling.link_core(few[:, :3])


def check_cover(cover: str, relation: str) -> None:
    """How records in one ball are bounded, for which neighbours."""
    checks.one_of(COVERS, cover=cover)
    checks.one_of(RELATIONS, relation=relation)


def assumptions_for(table: object, *, unit: str, bounded: bool) -> tuple[str, ...]:
    """What must hold outside the code."""
    sentences = [*assumptions_of(table, unit=unit)]
    sentences.append("k, radius, columns and scaling were fixed without looking at the table")
    if not bounded:
        sentences.append("every cell is a finite number of at most 1e150 in size, for whoever the rows are about")
    return tuple(sentences)


def promise(amounts: Amounts, ask: Ask, assumptions: tuple[str, ...]) -> Guarantee:
    """What a count of these amounts promises; nothing at all for the paper's own formula."""
    mechanism = f"outlier count: {amounts.method}"
    if amounts.method == "paper":
        warning = "none helps: the printed bound is neither an upper bound nor smooth, so no epsilon holds"
        return ask.guarantee(mechanism, epsilon=float("inf"), delta=0, assumptions=(warning,))
    return ask.guarantee(mechanism, assumptions=assumptions)
