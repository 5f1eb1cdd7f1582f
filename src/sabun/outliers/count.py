"""The number of distance-based outliers of a table, privately; proved in count.proof.md."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Ask, renamed
from sabun.engine import Elsewhere
from sabun.engine.by_person import here
from sabun.errors import DataError, ParameterError
from sabun.outliers.kissing import global_bound
from sabun.outliers.laws import PowerTail, normal
from sabun.outliers.memory import check_memory
from sabun.outliers.paper import printed_bound, theorem_two
from sabun.outliers.plan import CountPlan, plan_count
from sabun.outliers.points import check_columns, check_confidence, check_radius, columns_named, read_table
from sabun.outliers.question import OutlierQuestion
from sabun.outliers.reference import Reference
from sabun.outliers.sensitivity import Measured, discounts_for, measure, outlier_degrees
from sabun.outliers.settings import Amounts, assumptions_for, load_loops, promise
from sabun.outliers.spread_points import SpreadPoints
from sabun.privacy.amounts import AmountLike
from sabun.privacy.calibration import discrete_gaussian_variance, discrete_laplace_scale
from sabun.privacy.events import DiscreteGaussian
from sabun.privacy.noise import Coin, discrete_gaussian, discrete_laplace
from sabun.privacy.pricing import Price
from sabun.records.persons import facts_of

__all__ = ["OutlierCount"]

_LARGEST_COUNT = 1 << 53
"""Under add-remove, where the size is private, a count is cut off here: a public number that no table reaches."""


class _Public(NamedTuple):
    """What the draw needs that follows from public facts: bound, largest count; for a global mechanism size and reach."""

    cap: int
    top: int
    size: Fraction
    width: int


@renamed(key="retry_key", mechanism="method")
@dataclass(kw_only=True, eq=False, repr=False)
class OutlierCount(OutlierQuestion):
    """How many records have fewer than k others within a radius.

    Guarantee: (epsilon, delta) for the whole release, under the stated relation, error bar included. `power` and
    `global-laplace` are pure (delta = 0). `paper` promises nothing.

    Args:
        k: Neighbours an inlier needs, >= 1.
        radius: Distance within which a record is a neighbour; public, fixed before the data. With a schema it is measured in
            units of the bounds (each number column spans 0 to 1), otherwise in the table's own units.
        epsilon: The whole budget of the release.
        delta: 0 for the pure mechanisms, above 0 for the others.
        method: `power` (default), `laplace`, `gaussian` (smooth sensitivity), `global-laplace`, `global-gaussian`, or
            `paper` (Theorem 2 with (24) as printed, for reproduction only).
        beta: How fast the smooth bound may change; None takes a fifth of the count's epsilon. Only with `power`.
        relation: `replace-one` (the number of records is public) or `add-remove` (it is private); the ledger's when left
            out, else `replace-one`.
        cover: `degeneracy` (default, fast), `link-core` (tighter, for small tables), or `exact` (exponential time, tiny
            tables).
        error_bar: Share of epsilon that pays for `interval_`; 0 turns it off. The scale of the noise is private, so an
            interval has to be paid for; global mechanisms have a public scale and an interval for free.
        confidence: How often `interval_` holds the exact count, at least.
        columns: Which columns are coordinates, by number or name; None takes all.
        schema: Public bounds of the columns; see `radius`.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free; only with a ledger.
        random_state: None draws from the operating system. A whole number gives a simulation that is NOT PRIVATE.

    Attributes:
        count_: The private count.
        interval_: Bounds for the exact count, or None.
        guarantee_: What is promised.
        release_: The value with its guarantee, ready to be saved.

    Raises:
        ParameterError: A parameter breaks its rule.

    Example:
        >>> table = np.vstack([np.zeros((500, 2)), [[9.0, 9.0]]])
        >>> simulated = OutlierCount(k=5, radius=1, epsilon=50, random_state=1).fit(table)
        >>> simulated.count_, simulated.guarantee_.simulated
        (1, True)
    """

    radius: float
    delta: AmountLike = 0.0
    method: str = "power"
    beta: AmountLike | None = None
    relation: str | None = None
    error_bar: AmountLike = 0.3
    confidence: float = 0.95
    columns: Sequence[int | str] | None = None

    def _checked(self) -> tuple[Ask, Amounts]:
        check_radius(self.radius)
        check_columns(self.columns)
        check_confidence(self.confidence)
        ask = self._terms()
        amounts = Amounts.of(
            epsilon=self.epsilon, delta=self.delta, method=self.method, beta=self.beta, error_bar=self.error_bar
        )
        if amounts.method == "paper":
            checks.require(ask.relation == "replace-one", "'replace-one' with method 'paper'", relation=ask.relation)
        if isinstance(amounts.law, PowerTail) and 2 * amounts.law.beta >= amounts.law.epsilon:
            warnings.warn(
                "beta is half of the count's epsilon or more: the noise has infinite variance.", stacklevel=5
            )  # who makes one
        return ask, amounts

    @renamed(n="n_records", d="dimensions")
    def plan(self, *, n_records: int, dimensions: int | None = None, like: object = None) -> CountPlan:
        """What to expect of a table of that shape, from public facts alone.

        Args:
            n_records: Number of records (under add-remove: a guess).
            dimensions: Number of coordinates; with a schema, its `width`. Left out where there is a reference.
            like: A PUBLIC table of the same kind, read as the private one will be; never the private one. The plan then tells
                the error to expect in a table like it, of so many records.

        Raises:
            DataError: `like` is no table of this kind.
        """
        ask, amounts = self._checked()
        reference = None
        if like is not None:
            columns = check_columns(self.columns)
            reference = Reference.of(like, schema=self.schema, columns=columns, radius=float(self.radius), cover=self.cover)
            width = reference.points.shape[1]
            checks.require(dimensions in (None, width), f"{width}, as the reference has", dimensions=dimensions)
            dimensions = width
        if dimensions is None:
            raise ParameterError("dimensions must be given where there is no reference; got none. Pass it, or a table as like.")
        return plan_count(
            amounts,
            n_records=n_records,
            dimensions=dimensions,
            k=self.k,
            relation=ask.relation,
            confidence=float(self.confidence),
            reference=reference,
        )

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, counts, adds noise.

        Args:
            X: A 2-D array, a list of rows, a frame, or (with a schema) the name of a CSV or Parquet file, a table in pieces
                (`sabun.engine.spread`) or `persons` with several rows each. Under add-remove a list needs a schema: without
                rows nobody could tell how many columns it has.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind.
            BudgetExceeded: The ledger refuses; nothing was released.
            SimulatedError: `random_state` was given with a ledger.
        """
        del y
        ask, amounts = self._checked()
        ask.must_be_payable()
        if ask.relation == "add-remove" and self.schema is None and isinstance(X, list | tuple):
            raise DataError(
                "under add-remove a table without a schema must be an array or a frame, which has its columns even without a "
                f"row; got a {type(X).__name__}. Use numpy.array(rows, dtype=float).reshape(-1, number_of_columns)."
            )
        table = self._read(X)
        n, d = table.shape
        if ask.relation == "replace-one" and not n:
            raise DataError("a table must have at least one row; got none.")
        public = self._settled((n, d), ask, amounts, here=isinstance(table, np.ndarray))
        known = table if isinstance(table, np.ndarray) else self._counted(table, ask, amounts)
        self._learned(
            ask.answer(
                lambda: self._draw(known, n, ask, amounts, public),
                kind="outliers.count",
                promise=promise(amounts, ask, assumptions_for(X, unit=ask.unit, bounded=self.schema is not None)),
                facts=self._facts((n, d), ask, amounts) | facts_of(X),
                subject=columns_named(self.schema, self.columns),
                schema=self.schema,
                price=_price(ask, amounts, public),
            )
        )
        self.count_: int = self.release_["count"]
        interval = self.release_.value.get("interval")
        self.interval_: tuple[int, int] | None = None if interval is None else (interval[0], interval[1])
        return self

    def _read(self, X: object) -> NDArray[np.float64] | SpreadPoints:
        """The points, here or elsewhere; how many columns the table has is learned on the way."""
        columns, X = check_columns(self.columns), here(X, schema=self.schema)
        if isinstance(X, Elsewhere):
            checks.require(self.method != "paper", "another one for a table in pieces", method=self.method)
            self.n_features_in_ = 0 if self.schema is None else len(self.schema.names)
            return SpreadPoints.of(X, schema=self.schema, columns=columns)
        own, points = read_table(X, schema=self.schema, columns=columns)
        self.n_features_in_ = len(own.names)
        return points

    def _counted(self, table: SpreadPoints, ask: Ask, amounts: Amounts) -> Measured:
        """Everything that needs the pieces, while nothing is charged: an engine that fails costs nothing."""
        try:
            return table.measured(
                k=int(self.k),
                radius=float(self.radius),
                beta=None if amounts.law is None else amounts.law.beta,
                cover=self.cover,
                relation=ask.relation,
            )
        except MemoryError:
            raise DataError("a table in pieces must fit into its workers' memory; it does not. Nothing was charged.") from None

    def _facts(self, shape: tuple[int, int], ask: Ask, amounts: Amounts) -> dict[str, Any]:
        """What may be published: never the number of records where it is private."""
        facts: dict[str, Any] = {"k": int(self.k), "radius": float(self.radius), "dimensions": shape[1]}
        facts |= {"mechanism": self.method, "confidence": float(self.confidence)}
        if ask.relation == "replace-one":
            facts["records"] = shape[0]
        if amounts.law is not None:
            facts |= {"cover": self.cover, "beta": amounts.law.beta}
            facts["error_bar_epsilon"] = Fraction(0) if amounts.bar is None else amounts.bar.epsilon
        if self.columns is not None:
            facts["columns"] = [str(column) for column in self.columns]
        return facts

    def _settled(self, shape: tuple[int, int], ask: Ask, amounts: Amounts, *, here: bool) -> _Public:
        """Works out all that follows from public facts while nothing is charged: what can fail fails here."""
        load_loops()
        n, d = shape
        replace, law, bar = ask.relation == "replace-one", amounts.law, amounts.bar
        cap = global_bound(n=n if replace else None, d=d, k=self.k, relation=ask.relation)
        size = Fraction(0)
        if cap and amounts.method == "global-laplace":
            size = discrete_laplace_scale(l1=cap, epsilon=amounts.epsilon)  # proof: global-scale
        elif cap and amounts.method == "global-gaussian":
            size = discrete_gaussian_variance(l2_squared=cap * cap, epsilon=amounts.epsilon, delta=amounts.delta)
        if cap and law is not None:
            rungs = discounts_for(n=n if replace else None, d=d, k=self.k, beta=law.beta, relation=ask.relation).rungs
            if here:  # pieces are measured before the charge: what is too large for them costs nothing
                check_memory(n=n, d=d, limit=int(self.k) + rungs, cover=self.cover)
        if cap and law is not None and bar is not None:
            bar.width(0, tail=law.tail, miss=1 - float(self.confidence), cap=cap)
        return _Public(cap=cap, top=n if replace else _LARGEST_COUNT, size=size, width=self._reach(amounts, size))

    def _reach(self, amounts: Amounts, size: Fraction) -> int:
        """Half the width of the interval of a global mechanism."""
        miss = 1 - float(self.confidence)
        if amounts.method == "global-laplace":
            return math.ceil(-_moderate(size) * math.log(miss))
        return math.ceil(math.sqrt(_moderate(size)) * NormalDist().inv_cdf(1 - miss / 2)) + 1

    def _draw(
        self, known: NDArray[np.float64] | Measured, n: int, ask: Ask, amounts: Amounts, public: _Public
    ) -> dict[str, Any]:
        coin = ask.coin
        if public.cap == 0:
            return {"count": n, "interval": [n, n]}  # proof: constant
        if amounts.law is not None:
            return self._smooth(known, ask, amounts, cap=public.cap, top=public.top)
        exact = known[0] if isinstance(known, tuple) else self._exact(known)
        if amounts.method == "paper":
            assert isinstance(known, np.ndarray)
            return {"count": _clamped(exact + self._printed(known, amounts, coin), public.top)}
        law = discrete_laplace if amounts.method == "global-laplace" else discrete_gaussian
        noisy = _clamped(exact + law(public.size, coin=coin), public.top)  # proof: clamp
        return _with_interval(noisy, public.width, public.top)

    def _exact(self, points: NDArray[np.float64]) -> int:
        if not len(points):
            return 0
        return int((outlier_degrees(points, radius=float(self.radius), cap=int(self.k)) < self.k).sum())

    def _measured(self, points: NDArray[np.float64], beta: Fraction, relation: str) -> Measured:
        return measure(points, k=int(self.k), radius=float(self.radius), beta=beta, cover=self.cover, relation=relation)

    def _smooth(
        self, known: NDArray[np.float64] | Measured, ask: Ask, amounts: Amounts, *, cap: int, top: int
    ) -> dict[str, Any]:
        law, coin = amounts.law, ask.coin
        assert law is not None
        exact, bound = known if isinstance(known, tuple) else self._measured(known, law.beta, ask.relation)
        noisy = _clamped(exact + law.draw(bound, coin=coin), top)  # proof: smooth-noise
        if amounts.bar is None:
            return {"count": noisy}
        index = amounts.bar.draw(bound, coin=coin)  # proof: bar
        width = amounts.bar.width(index, tail=law.tail, miss=1 - float(self.confidence), cap=cap)
        return _with_interval(noisy, width, top) | {"scale_estimate": amounts.bar.estimate(index, cap=cap)}

    def _printed(self, points: NDArray[np.float64], amounts: Amounts, coin: Coin) -> int:
        """Theorem 2 with (24) as printed. Promises nothing."""
        inverse, beta = theorem_two(epsilon=float(amounts.epsilon), delta=float(amounts.delta))
        bound = printed_bound(points, k=int(self.k), radius=float(self.radius), beta=beta)
        return normal(Fraction(inverse * bound), coin=coin)


def _price(ask: Ask, amounts: Amounts, public: _Public) -> Price | None:
    """What a ledger with a Rényi order may book for it; None where epsilon and delta are all that is known."""
    moved = Fraction(public.cap**2)
    if amounts.method != "global-gaussian" or not moved or not (checks.is_finite(public.size) and checks.is_finite(moved)):
        return None  # noise beyond every float is not worth a price
    noise = DiscreteGaussian(sigma_squared=public.size, l2_squared=moved)
    return Price(events=(noise,), relation=ask.relation)  # proof: price


def _clamped(count: int, top: int) -> int:
    """The same draw, moved to the nearest possible count; drawing again would change the promise."""
    return min(max(count, 0), top)


def _moderate(scale: Fraction) -> float:
    """A scale as a float that a width can be computed from; beyond 2**120 every width exceeds every count."""
    return float(min(scale, Fraction(1 << 120)))


def _with_interval(count: int, width: int, top: int) -> dict[str, Any]:
    return {"count": count, "interval": [max(0, count - width), min(top, count + width)]}
