"""The numbers of outliers in public regions, in one release; proved in regions.proof.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Ask, renamed
from sabun.errors import DataError, ParameterError
from sabun.outliers.error_bar import ErrorBar
from sabun.outliers.kissing import region_bound
from sabun.outliers.memory import check_memory
from sabun.outliers.plan import CountPlan, plan_regions
from sabun.outliers.points import Own, check_columns, check_confidence, check_radius, columns_named, read_table
from sabun.outliers.question import OutlierQuestion
from sabun.outliers.sensitivity import measure_regions, region_discounts
from sabun.outliers.settings import assumptions_for, check_shares, count_epsilon, load_loops
from sabun.outliers.vector import PowerVector
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import Coin
from sabun.records import CategoryColumn, Schema
from sabun.records.persons import facts_of

__all__ = ["RegionCount"]

_Region = Mapping[str, Any]


class _Side(NamedTuple):
    """What a region says about one column: numbers from low up to but not including high."""

    low: float
    high: float


@renamed(key="retry_key")
@dataclass(kw_only=True, eq=False, repr=False)
class RegionCount(OutlierQuestion):
    """How many outliers lie in each of some public regions.

    A region is a mapping from columns to half-open ranges (low, high), None for no limit; for a category column of the
    schema, to a label or a list of labels. Regions must not overlap. An outlier outside all of them is not counted.

    Guarantee: epsilon (pure) for all counts together, error bar included, under replace-one.

    Args:
        regions: Names with their regions, in the table's own units; columns are x0, x1, … for an array.
        k: Neighbours an inlier needs, >= 1.
        radius: As in `OutlierCount`.
        epsilon: The whole budget of the release.
        beta: How fast the smooth bound may change, below the counts' epsilon / number of regions; None takes a fifth of that.
        cover: As in `OutlierCount`.
        error_bar: Share of epsilon that pays for `intervals_`; 0 turns them off.
        confidence: How often each interval holds its exact count, at least.
        columns: Which columns are coordinates; regions may speak of any column.
        schema: Public bounds of the columns.
        ledger: The book to charge, or None.
        retry_key: As in `OutlierCount`.
        random_state: None draws from the operating system. A whole number gives a simulation that is NOT PRIVATE.

    Attributes:
        counts_: Private counts by region.
        intervals_: Bounds by region, or None.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Example:
        >>> table = np.vstack([np.zeros((400, 1)), [[-9.0]]])
        >>> halves = {"left": {"x0": (None, -1)}, "right": {"x0": (-1, None)}}
        >>> RegionCount(regions=halves, k=5, radius=1, epsilon=500, random_state=1).fit(table).counts_
        {'left': 1, 'right': 0}
    """

    relations = ("replace-one",)

    regions: Mapping[str, _Region]
    radius: float
    beta: AmountLike | None = None
    error_bar: AmountLike = 0.3
    confidence: float = 0.95
    columns: Sequence[int | str] | None = None

    def _checked(self) -> tuple[Ask, PowerVector, ErrorBar | None]:
        check_radius(self.radius)
        check_columns(self.columns)
        check_confidence(self.confidence)
        ask = self._terms()
        _check_disjoint(_parsed(self.regions, self.schema))
        share = check_shares(self.error_bar)
        law = PowerVector.of(epsilon=count_epsilon(ask.epsilon, share), outputs=len(self.regions), beta=self.beta)
        return ask, law, ErrorBar(epsilon=ask.epsilon * share, beta=law.beta) if share else None

    def plan(self, *, n_records: int, dimensions: int) -> CountPlan:
        """What to expect of each region's count in a table of that shape, from public facts alone.

        Args:
            n_records: Number of records.
            dimensions: Number of coordinates; with a schema, its `width`.
        """
        ask, law, bar = self._checked()
        return plan_regions(
            law,
            bar,
            epsilon=ask.epsilon,
            n_records=n_records,
            dimensions=dimensions,
            k=int(self.k),
            confidence=float(self.confidence),
        )

    def fit(self, X: object, y: object = None) -> Self:
        """Charges the ledger, counts by region, adds noise.

        Args:
            X: As in `OutlierCount.fit`.
            y: Ignored.

        Raises:
            DataError: X is no table of this kind, or lacks a column that a region speaks of.
        """
        del y
        ask, law, bar = self._checked()
        ask.must_be_payable()
        own, points = read_table(X, schema=self.schema, columns=check_columns(self.columns))
        if not len(points):
            raise DataError("a table must have at least one row; got none.")
        inside = _inside(_parsed(self.regions, self.schema), own)
        # While nothing is charged: what can fail in the public part fails here.
        load_loops()
        n, d = points.shape
        cap = region_bound(n=n, d=d, k=int(self.k))
        rungs = region_discounts(n=n, d=d, k=int(self.k), beta=law.beta).rungs
        check_memory(n=n, d=d, limit=int(self.k) + rungs, cover=self.cover, covers=2)
        if bar is not None:
            bar.width(0, tail=law.tail, miss=1 - float(self.confidence), cap=cap)
        self._learned(
            ask.answer(
                lambda: self._draw(points, inside, law, bar, ask.coin),
                kind="outliers.regions",
                promise=ask.guarantee(
                    "outlier counts by region: power",
                    assumptions=assumptions_for(X, unit=ask.unit, bounded=self.schema is not None),
                ),
                facts=self._facts(points, law) | facts_of(X),
                subject=columns_named(self.schema, self.columns),
                schema=self.schema,
            )
        )
        self.counts_: dict[str, int] = {name: self.release_["counts"][name] for name in self.regions}
        found = self.release_.value.get("intervals")
        self.intervals_: dict[str, tuple[int, int]] | None = (
            None if found is None else {name: (found[name][0], found[name][1]) for name in self.regions}
        )
        return self

    def _facts(self, points: NDArray[np.float64], law: PowerVector) -> dict[str, Any]:
        return {
            "k": int(self.k),
            "radius": float(self.radius),
            "records": len(points),
            "dimensions": points.shape[1],
            "regions": {name: str(dict(region)) for name, region in self.regions.items()},
            "cover": self.cover,
            "beta": law.beta,
            "confidence": float(self.confidence),
        }

    def _draw(
        self,
        points: NDArray[np.float64],
        inside: list[NDArray[np.bool_]],
        law: PowerVector,
        bar: ErrorBar | None,
        coin: Coin,
    ) -> dict[str, Any]:
        n = len(points)
        outlier, bound = measure_regions(points, k=int(self.k), radius=float(self.radius), beta=law.beta, cover=self.cover)
        exact = [int((outlier & member).sum()) for member in inside]
        noise = law.draw(bound, coin=coin)  # proof: vector-noise
        noisy = [min(max(count + z, 0), n) for count, z in zip(exact, noise, strict=True)]  # proof: clamp-each
        value: dict[str, Any] = {"counts": dict(zip(self.regions, noisy, strict=True))}
        if bar is None:
            return value
        cap = region_bound(n=n, d=points.shape[1], k=int(self.k))
        index = bar.draw(bound, coin=coin)  # proof: region-bar
        width = bar.width(index, tail=law.tail, miss=1 - float(self.confidence), cap=cap)
        ranges = {name: [max(0, c - width), min(n, c + width)] for name, c in value["counts"].items()}
        return value | {"intervals": ranges, "scale_estimate": bar.estimate(index, cap=cap)}


def _parsed(regions: object, schema: Schema | None) -> dict[str, dict[str, tuple[_Side, ...]]]:
    """Each region as unions of half-open ranges by column."""
    good = isinstance(regions, Mapping) and len(regions) > 0 and all(isinstance(name, str) and name for name in regions)
    checks.require(good, "a mapping from names to regions", regions=regions)
    assert isinstance(regions, Mapping)
    return {name: _parsed_region(name, region, schema) for name, region in regions.items()}


def _parsed_region(name: str, region: object, schema: Schema | None) -> dict[str, tuple[_Side, ...]]:
    good = isinstance(region, Mapping) and len(region) > 0
    checks.require(good, "a mapping from columns to ranges or labels", **{f"region {name!r}": region})
    assert isinstance(region, Mapping)
    sides = {}
    for column, limits in region.items():
        label = f"x{column}" if isinstance(column, int) and not isinstance(column, bool) else str(column)
        declared = None if schema is None else schema[label]
        sides[label] = _labels(declared, limits) if isinstance(declared, CategoryColumn) else (_range(limits, name, label),)
    return sides


def _labels(column: CategoryColumn, labels: object) -> tuple[_Side, ...]:
    chosen = [labels] if isinstance(labels, str) else list(labels) if isinstance(labels, list | tuple | set) else []
    known = list(column.features)
    codes = [known.index(f"{column.name}={label}") if f"{column.name}={label}" in known else -1 for label in chosen]
    strange = next((str(label) for label, code in zip(chosen, codes, strict=True) if code < 0), None)
    advice = checks.offered(strange, column.categories)
    checks.require(bool(codes) and min(codes) >= 0, f"labels of column {column.name!r}", advice, labels=labels)
    return tuple(_Side(code - 0.5, code + 0.5) for code in codes)


def _range(limits: object, name: str, column: str) -> _Side:
    rule = "a pair (low, high) of numbers with low < high, None for no limit"
    here = {f"column {column!r} of region {name!r}": limits}
    checks.require(isinstance(limits, tuple | list) and len(limits) == 2, rule, **here)
    assert isinstance(limits, tuple | list)
    low = -math.inf if limits[0] is None else limits[0]
    high = math.inf if limits[1] is None else limits[1]
    checks.require(checks.is_number(low) and checks.is_number(high) and low < high, rule, **here)
    return _Side(float(low), float(high))


def _check_disjoint(regions: dict[str, dict[str, tuple[_Side, ...]]]) -> None:
    for (name, one), (other_name, other) in itertools.combinations(regions.items(), 2):
        apart = any(
            all(a.high <= b.low or b.high <= a.low for a in one[column] for b in other[column]) for column in one.keys() & other
        )
        if not apart:
            raise ParameterError(
                f"regions must not overlap; {name!r} and {other_name!r} share no column that separates them. "
                "Give both a range of the same column that does."
            )


def _inside(regions: dict[str, dict[str, tuple[_Side, ...]]], own: Own) -> list[NDArray[np.bool_]]:
    """Which records lie in which region."""
    members = []
    for name, sides in regions.items():
        member = np.ones(len(own.values), dtype=np.bool_)
        for column, ranges in sides.items():
            if column not in own.names:
                raise DataError(f"the table has no column {column!r}, which region {name!r} speaks of.")
            values = own.values[:, own.names.index(column)]
            member &= np.any([(side.low <= values) & (values < side.high) for side in ranges], axis=0)
        members.append(member)
    return members
