"""How many rows lie above a public threshold, privately; proved in count.proof.md."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

from sklearn.base import BaseEstimator

from sabun import checks
from sabun.ledger import Ledger
from sabun.privacy import Guarantee, discrete_laplace_scale, exact_positive
from sabun.privacy.noise import coin_for, discrete_laplace
from sabun.records import Schema, open_source
from sabun.release import publish

__all__ = ["ThresholdCount"]


class ThresholdCount(BaseEstimator):  # type: ignore[misc]
    """The number of rows whose value in one column is above a threshold.

    Guarantee: epsilon-DP, replace-one neighbours, the number of rows is public.

    Args:
        column: Name of the column; it must be declared in `schema`.
        threshold: A public number.
        schema: The public facts about the table.
        epsilon: The price.
        ledger: The book to charge, or None.
        random_state: None for a private result; an int simulates, NOT PRIVATE.
    """

    def __init__(
        self,
        *,
        column: str,
        threshold: float,
        schema: Schema,
        epsilon: float,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.column = column
        self.threshold = threshold
        self.schema = schema
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state
        self._check()

    def _check(self) -> None:
        exact_positive(self.epsilon, name="epsilon")
        checks.require(isinstance(self.schema, Schema), "a Schema", schema=self.schema)
        checks.one_of(self.schema.names, column=self.column)
        checks.require(
            checks.is_number(self.threshold) and math.isfinite(self.threshold), "a finite number", threshold=self.threshold
        )
        coin_for(self.random_state)

    def fit(self, X: object, y: object = None) -> Self:
        """Counts once, charges once; a second call is a second release."""
        del y
        self._check()
        coin = coin_for(self.random_state)
        source = open_source(X, schema=self.schema.select([self.column]))
        parts = [_above(part[:, 0], self.threshold) for part in source.partitions()]  # proof: one-row-one-term
        scale = discrete_laplace_scale(l1=1, epsilon=self.epsilon)
        n_rows = sum(rows for _, rows in parts)

        def draw() -> dict[str, Any]:
            noisy = sum(above for above, _ in parts) + int(discrete_laplace(scale, coin=coin))  # proof: noise-after-charge
            half_width = _half_width(scale)
            return {
                "count": min(max(noisy, 0), n_rows),  # proof: clamp
                "interval": [max(noisy - half_width, 0), min(max(noisy + half_width, 0), n_rows)],
            }

        self.release_ = publish(
            kind="threshold count",
            guarantee=self._guarantee(),
            parameters={"column": self.column, "threshold": self.threshold, "rows": n_rows},
            draw=draw,
            ledger=self.ledger,
            coin=coin,
            schema_hash=self.schema.hash,
        )
        self.guarantee_ = self.release_.guarantee
        self.count_ = self.release_["count"]
        self.interval_ = tuple(self.release_["interval"])
        return self

    def _guarantee(self) -> Guarantee:
        unit = "record" if self.ledger is None else self.ledger.unit
        return Guarantee(
            epsilon=exact_positive(self.epsilon, name="epsilon"),
            unit=unit,
            mechanism="discrete Laplace",
            assumptions=(f"each {unit} has at most one row", "the number of rows and the threshold are public"),
        )


def _above(values: Any, threshold: float) -> tuple[int, int]:
    """The statistic of one part: rows above, rows in all. Parts add up to the whole."""
    return int((values > threshold).sum()), len(values)


def _half_width(scale: Fraction) -> int:
    """The smallest whole h with P[|noise| > h] <= 5 %: the tail beyond h is at most exp(-(h+1)/scale) * 2/(1+exp(-1/scale))."""
    return math.ceil(scale * Fraction(math.log(40)))
