"""`DensityRatio`: weights on a public table that answer questions about a private one."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sabun import checks
from sabun.density.answers import EARLIER, Answer, checked_bounds, column_values
from sabun.density.diagnostics import CoverageWarning, Diagnostics, diagnosed
from sabun.density.export import frame_of, resampled, table_of, write_csv, write_parquet
from sabun.density.features import Features
from sabun.density.inference import Inference
from sabun.density.kernel import Floats
from sabun.density.method import Method
from sabun.density.options import Options
from sabun.density.plan import DensityPlan
from sabun.density.rkhs import Embedding
from sabun.density.saved import KIND, features_from, features_tree, has_uncovered, plan_from
from sabun.density.tally import Tally, must_match
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import coin_for
from sabun.records import Schema
from sabun.release import Release, publish, refuse_seeded

__all__ = ["DensityRatio"]

_LEAST_SUPPORT = 0.5


class DensityRatio(BaseEstimator):  # type: ignore[misc]
    """Estimates p_private / p_public on the rows of a public table, privately.

    Guarantee: what is released is epsilon-differentially private ((epsilon, delta) when `delta` is given) for the private
    table under `relation`. Everything else, the weights, all answers, all choices of parameters, follows from that release and
    from public things. The default method needs no bounds: a record that is not finite counts as a record without features.

    Args:
        epsilon: Privacy loss, above 0; 0.1 is read as one tenth.
        delta: None for pure epsilon; otherwise above 0 and below one over the number of private rows.
        method: "rkhs" (default), or for comparison "ulsif-parametric", "ulsif-a", "ulsif-b", "ulsif-c", "ji-elkan".
        relation: "replace-one" (the number of private rows is public) or "add-remove" (it is private too); the ledger's when
            left out, else "replace-one".
        ledger: The budget to charge.
        schema: Public facts about the columns; needed for categories. Without it columns are plain numbers without bounds.
        columns: Names of the columns to compare, without a schema; all columns of the public table when left out.
        n_centers: Number of kernel centres, rows of the public table; 300 for "rkhs", otherwise 50.
        bandwidth: Kernel width in units of standardised columns; "median" takes the public table's median distance.
        centers: Public centres (rows in the table's own units) instead of public rows.
        standardize: Whether numbers are divided by their standard deviation in the public table.
        tau2: "rkhs": variance of a query's part that the kernel cannot express; larger means more even weights.
        n_public: A public guess (add-remove) or the public number (replace-one) of private rows.
        regularization: Penalty of the other methods; a public constant, never tuned on private records.
        bounds: "ulsif-a": pairs (lower, upper), one for each column, when the schema does not have them.
        basis: "ulsif-parametric" (and optionally "ji-elkan"): function of one record that returns a list of numbers.
        basis_bounds: Public bounds (lower, upper) that hold for each of those numbers; values outside are clipped.
        clip_norm: "ji-elkan": longest feature vector; a public quantile of the public rows when left out.
        accept_publishing_raw_records: "ulsif-c" publishes private records as they are and refuses without this.
        allow_large_delta: Whether `delta` may be one over the number of private rows or more.
        random_state: None draws from the operating system. A whole number gives a simulation that is NOT PRIVATE.

    Attributes:
        weights_: One weight >= 0 for each public row, mean 1.
        guarantee_: The promise.
        release_: What was released, with the promise.
        diagnostics_: Signs of trouble, from released quantities only.

    Example:
        >>> from sabun.datasets import density_paper
        >>> tables = density_paper(random_state=0)
        >>> ratio = DensityRatio(epsilon=1.0).fit(private=tables.private, public=tables.public)
        >>> bool(abs(ratio.mean(0) - tables.private.mean()) < 0.3)
        True
    """

    _seen: Tally | None
    _judged: Inference | None

    def __init__(
        self,
        *,
        epsilon: AmountLike,
        delta: AmountLike | None = None,
        method: str = "rkhs",
        relation: str | None = None,
        ledger: Ledger | None = None,
        schema: Schema | None = None,
        columns: Sequence[str] | None = None,
        n_centers: int | None = None,
        bandwidth: float | str = "median",
        centers: Any = None,
        standardize: bool = True,
        tau2: float = 0.5,
        n_public: int | None = None,
        regularization: float = 0.1,
        bounds: Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]] | None = None,
        basis: Callable[[Floats], Any] | None = None,
        basis_bounds: tuple[float, float] | None = None,
        clip_norm: float | None = None,
        accept_publishing_raw_records: bool = False,
        allow_large_delta: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.relation = relation
        self.ledger = ledger
        self.schema = schema
        self.columns = columns
        self.n_centers = n_centers
        self.bandwidth = bandwidth
        self.centers = centers
        self.standardize = standardize
        self.tau2 = tau2
        self.n_public = n_public
        self.regularization = regularization
        self.bounds = bounds
        self.basis = basis
        self.basis_bounds = basis_bounds
        self.clip_norm = clip_norm
        self.accept_publishing_raw_records = accept_publishing_raw_records
        self.allow_large_delta = allow_large_delta
        self.random_state = random_state
        self._options()

    def fit(self, *, private: Any, public: Any) -> Self:
        """Releases weights for the public rows.

        Args:
            private: The private table: an array, a pandas, polars or pyarrow frame, a .csv or .parquet file, or a stream of
                these.
            public: The public table, with the same columns (others are kept for answers and exports).

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: A table as a whole does not fit; never because of a private cell.
            BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
            SimulatedError: `random_state` together with a ledger.
        """
        self.set_public(public)
        empty, self._seen = self._seen, None  # the sums are this call's own: nothing of them is left when it fails
        return self._release(self._features.points(private) if empty is None else self._gathered(private, empty))

    @classmethod
    def restore(cls, release: Release | str | os.PathLike[str], *, public: Any) -> Self:
        """Takes up a release, one's own or another's, to ask questions of the public table; costs nothing.

        Args:
            release: A release of the default method, or the file it was saved in.
            public: The public table, row by row as it was (further columns do not matter).

        Raises:
            ReleaseError: The release is damaged or of another kind.
            DataError: The public table is another one.
        """
        found = release if isinstance(release, Release) else Release.load(release)
        features = features_from(found)
        promise, relation = found.guarantee, str(found.provenance.parameters.get("relation"))
        names = list(features.names) if features.schema is None else None
        self = cls(
            epsilon=promise.epsilon, delta=promise.delta or None, relation=relation, schema=features.schema, columns=names
        )
        self._fixed = self._options()
        self._table, self._features, self._seen = table_of(public, features.schema), features, None
        points = features.points(self._table)
        self._plan, self._rows = plan_from(found, points, self._fixed.target), len(points)
        self.release_ = found
        self._adopt()
        return self

    def set_public(self, public: Any) -> Self:
        """Prepares for private records that come in pieces; everything is planned from the public table."""
        options = self._options()
        refuse_seeded(coin_for(self.random_state), self.ledger)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        table = table_of(public, self.schema)
        features, points = self._public_points(table, options)
        plan = options.plan(points, features)
        # All that can fail is done; and a parameter changed from here on must not change half of a release.
        self._table, self._features, self._fixed, self._rows = table, features, options, len(points)
        self._plan: Method = plan
        self._digest = options.digest(points, features)
        self._seen = plan.start() if plan.streams else None
        return self

    def partial_fit(self, *, private: Any) -> Self:
        """Adds private records to the sums, all of them or (when a piece does not fit) none; nothing is released."""
        self._seen = (seen := self._open_tally()).merged(self._gathered(private, seen.fresh()))
        return self

    def merge(self, other: DensityRatio) -> Self:
        """Adds the sums of another part that was prepared with the same public table; the other part gives them up.

        Raises:
            ParameterError: The other part has another public table or other settings, or is a copy of one counted already.
        """
        checks.require(other is not self, "another part", other="the same one")
        mine, theirs = self._open_tally(), other._open_tally()
        must_match(self._digest == other._digest)
        self._seen, other._seen = mine.merged(theirs), None
        return self

    def finalize(self) -> Self:
        """Charges the ledger, draws the noise once, computes the weights, forgets the sums (kept when the ledger refuses)."""
        return self._release(self._open_tally())

    def predict(self, X: Any, *, min_support: float = _LEAST_SUPPORT) -> Floats:
        """The ratio at new points; NaN where the public table says nothing about them.

        Args:
            X: Points with the columns of the public table.
            min_support: Least `support_score` of a point that gets a number; 0 gives every point one.
        """
        self._must_be_fitted()
        points = self._features.points(X)
        ratio = self._plan.ratio(self.release_.value, points)
        if isinstance(self._plan, Embedding):
            ratio = np.where(self._plan.support_score(points) < min_support, math.nan, ratio)
        return ratio

    def support_score(self, X: Any) -> Floats:
        """How well the centres cover each point: near 1 on the public table, 0 far away from it."""
        return self._embedding("a support score").support_score(self._features.points(X))

    def mean(self, f: Any) -> Any:
        """The mean of f over the private table, estimated from the public one.

        Args:
            f: A function of the public table or of one row, a column's name or number, or one number for each public row.

        Returns:
            A float, or an array where f gives several numbers for each row.
        """
        self._must_be_fitted()
        values = column_values(f, self._table, self._rows)
        found = self.weights_ @ values / self.weights_.sum()
        return float(found) if values.ndim == 1 else found

    def query(
        self,
        f: Any,
        *,
        where: Any = None,
        bounds: tuple[float, float] | None = None,
        ci: bool = True,
        level: float = 0.95,
        worst_case: bool = False,
    ) -> Answer | float:
        """The mean of f over the private table, or over those of its rows that meet a condition.

        The interval rests on a smooth logarithm of the ratio; where the release leaves too much open there is none, and the
        answer says why. Without `bounds` it is about the covered rows, those on the public table's support.

        Args:
            f: As in `mean`, one number for each row.
            where: As f; rows with a number above 0 count. All of them when left out.
            bounds: Public bounds (low, high) of f for every record. With them (and without `where`) the interval is for the
                whole table: uncovered rows may lie anywhere in between.
            ci: Whether an interval is wanted.
            level: Of the intervals.
            worst_case: Whether to search for an interval that needs no smoothness too; takes longer, and is wide.
        """
        self._must_be_fitted()
        checks.require(checks.is_number(level) and 0 < level < 1, "above 0 and below 1", level=level)
        values = column_values(f, self._table, self._rows)
        checks.require(values.ndim == 1, "one number for each row", f="several numbers for each row")
        rows = np.ones(self._rows, dtype=np.bool_) if where is None else column_values(where, self._table, self._rows) > 0
        mass = self.weights_ * rows
        if not mass.sum() > 0:
            raise DataError("where must hold for a public row with weight; it holds for none.")
        declared = None if bounds is None else checked_bounds(bounds, values)
        if not ci:
            return float(mass @ values / mass.sum())
        inference = self._inference()
        if inference is None:
            return Answer(estimate=float(mass @ values / mass.sum()), interval=None, reason=EARLIER, level=level)
        return inference.answer(values, rows, level=level, bounds=declared, worst=worst_case)

    def covered(self, X: Any) -> Any:
        """Which points are on the public table's support: those that answers about "covered rows" speak of."""
        return ~self._embedding("the rule").off(self._features.points(X))

    def sample(self, m: int, *, random_state: int | None = None) -> Any:
        """Draws public rows with probability proportional to their weights: a table that looks like the private one."""
        self._must_be_fitted()
        return resampled(self._table, self.weights_, m, coin_for(random_state))

    def to_frame(self) -> Any:
        """The public table with a column `weight`."""
        self._must_be_fitted()
        return frame_of(self._table, self.weights_, self._features.names)

    def to_csv(self, path: Any, *, overwrite: bool = False) -> None:
        """Writes the weighted table, with the release beside it (`<path>.release.json`)."""
        write_csv(self.to_frame(), path, self.release_, overwrite=overwrite)

    def to_parquet(self, path: Any, *, overwrite: bool = False) -> None:
        """Writes the weighted table with the guarantee in its metadata, and the release beside it."""
        write_parquet(self.to_frame(), path, self.release_, overwrite=overwrite)

    def plan(self, *, public: Any, private_size: int) -> DensityPlan:
        """Cost and expected error from public quantities; no private record is touched, nothing is charged."""
        checks.whole(minimum=1, private_size=private_size)
        options = self._options()
        _, points = self._public_points(table_of(public, self.schema), options)
        return options.forecast(points, int(private_size))

    def _options(self) -> Options:
        """The parameters, checked and read exactly."""
        return Options.of(self.get_params(deep=False))

    def _public_points(self, table: Any, options: Options) -> tuple[Features, Floats]:
        return Features.of(table, schema=self.schema, columns=self.columns, standardize=options.standardizes)

    def _open_tally(self) -> Tally:
        plan = getattr(self, "_plan", None)
        if plan is None:
            raise NotFittedError("set_public must be called before private records can be added.")
        if not plan.streams:
            raise ParameterError(f"method must be 'rkhs', 'ulsif-b' or 'ulsif-parametric' to stream; got {self.method!r}.")
        if self._seen is None:
            raise ParameterError(
                "finalize must be called once; the noise was drawn already, or the sums were merged into another part, "
                "or fit failed and kept none. Call set_public to start again."
            )
        return self._seen

    def _gathered(self, private: Any, tally: Tally) -> Tally:
        for points in self._features.chunks(private):
            tally.add(points)
        return tally

    def _release(self, seen: Tally | Floats) -> Self:
        size = seen.count if isinstance(seen, Tally) else len(seen)
        options = self._fixed
        coin, ledger = coin_for(options.given["random_state"]), options.given["ledger"]
        options.check_size(size)
        promise = self._plan.promise(size)
        parameters = {**options.facts(), **promise.facts, "columns": list(self._features.names), "public_rows": self._rows}
        self.release_: Release = publish(
            kind=KIND,
            guarantee=options.guarantee(promise),
            parameters=parameters,
            draw=lambda: {**self._plan.draw(seen, coin), "features": features_tree(self._features)},
            ledger=ledger,
            coin=coin,
            subject=self._features.names,
            schema_hash=None if self._features.schema is None else self._features.schema.hash,
            notes=("The weights are for the rows of the public table, in its order; their mean is 1.",),
        )
        self._seen = None
        self._adopt()
        return self

    def _adopt(self) -> None:
        """Sets what follows from the release."""
        self.guarantee_ = self.release_.guarantee
        self.weights_: Floats = np.array(self.release_["weights"])
        self._judged = None
        self.n_features_in_ = len(self._features.names)
        self._diagnose()

    def _diagnose(self) -> None:
        inference = self._inference() if isinstance(self._plan, Embedding) else None
        self.diagnostics_: Diagnostics = diagnosed(self.weights_, inference)
        if not self.diagnostics_.covered:
            warnings.warn("; ".join(self.diagnostics_.notes), CoverageWarning, stacklevel=4)

    def _inference(self) -> Inference | None:
        """What the release says about errors; None for one of an earlier version."""
        plan = self._embedding("an interval")
        if self._judged is None and has_uncovered(self.release_):
            self._judged = Inference.of(plan, self.release_.value)
        return self._judged

    def _embedding(self, what: str) -> Embedding:
        self._must_be_fitted()
        if not isinstance(self._plan, Embedding):
            advice = " Ask with ci=False." if what == "an interval" else ""
            raise ParameterError(f"method must be 'rkhs' for {what}; got {self.method!r}.{advice}")
        return self._plan

    def _must_be_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError("fit (or finalize) must be called first.")
