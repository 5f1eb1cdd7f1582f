"""`DensityRatio`: weights on a public table that answer questions about a private one."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from sabun import checks
from sabun.asking import Part, Question, methodical, renamed, state_of
from sabun.density.answering import Answering
from sabun.density.crowding import NOWHERE, CrowdedWarning, Crowding
from sabun.density.diagnostics import CoverageWarning, Diagnostics, diagnosed
from sabun.density.export import frame_of, plainly, read_back, resampled, table_of, write_csv, write_parquet
from sabun.density.features import Features
from sabun.density.inference import Inference
from sabun.density.kernel import Floats
from sabun.density.method import Method
from sabun.density.plan import DensityPlan, forecast
from sabun.density.promise import Terms, must_be_rows
from sabun.density.rkhs import Embedding
from sabun.density.saved import KIND, digest_of, features_from, features_tree, has_uncovered, must_be_made_for, plan_from
from sabun.density.settings import FORMER, KINDS, DensitySettings
from sabun.density.statistic import Tally, must_match
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import coin_for
from sabun.records import Schema
from sabun.release import Release

__all__ = ["DensityRatio"]

_LEAST_SUPPORT = 0.5


@methodical(*KINDS, former=FORMER)
class DensityRatio(Answering, Question):
    """Estimates p_private / p_public on the rows of a public table, privately.

    Guarantee: what is released is epsilon-differentially private ((epsilon, delta) when `delta` is given) for the private
    table under `relation`. Everything else, the weights, all answers, all choices of parameters, follows from that release and
    from public things. The default method needs no bounds: a record that is not finite counts as a record without features.

    Args:
        epsilon: Privacy loss, above 0; 0.1 is read as one tenth.
        delta: None for pure epsilon; otherwise above 0 and below one over the number of private rows.
        method: "rkhs" (default), or for comparison "ulsif-parametric", "ulsif-a", "ulsif-b", "ulsif-c", "ji-elkan"; or its
            settings, such as `RkhsSettings(n_centers=100)`. What they hold can be given by its own name (`n_centers=100`) too.
        relation: "replace-one" (the number of private rows is public) or "add-remove" (it is private too); the ledger's when
            left out, else "replace-one".
        ledger: The budget to charge.
        retry_key: Name under which the same question gets the same bytes for free; only with a ledger.
        schema: Public facts about the columns; needed for categories. Without it columns are plain numbers without bounds.
        columns: Names of the columns to compare, without a schema; all columns of the public table when left out.
        standardize: Whether numbers are divided by their standard deviation in the public table.
        n_public: A public guess (add-remove) or the public number (replace-one) of private rows.
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

    _fixed: Terms
    _part: Part[Tally] | None
    _judged: Inference | None

    def __init__(
        self,
        *,
        epsilon: AmountLike,
        delta: AmountLike | None = None,
        method: str | DensitySettings = "rkhs",
        relation: str | None = None,
        ledger: Ledger | None = None,
        retry_key: str | None = None,
        schema: Schema | None = None,
        columns: Sequence[str] | None = None,
        standardize: bool = True,
        n_public: int | None = None,
        allow_large_delta: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.relation = relation
        self.ledger = ledger
        self.retry_key = retry_key
        self.schema = schema
        self.columns = columns
        self.standardize = standardize
        self.n_public = n_public
        self.allow_large_delta = allow_large_delta
        self.random_state = random_state
        self._terms()

    def fit(self, *, private: Any, public: Any) -> Self:
        """Releases weights for the public rows.

        Args:
            private: The private table: an array, a pandas, polars or pyarrow frame, a .csv or .parquet file, a stream of
                these, or (with a schema) `persons` with several rows each.
            public: The public table, with the same columns (others are kept for answers and exports).

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: A table as a whole does not fit; never because of a private cell.
            BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
            SimulatedError: `random_state` together with a ledger.
        """
        self.set_public(public)
        part, self._part = self._part, None  # the sums are this call's own: nothing of them is left when it fails
        self._fixed = self._fixed.about(private)
        return self._release(self._features.people(private) if part is None else state_of(part.statistic, private))

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
        self._fixed = self._terms()
        self._table, schema = read_back(public, features.schema)
        self._features, self._part = replace(features, schema=schema), None
        self._points = self._features.points(self._table)
        self._plan = plan_from(found, self._points, self._fixed.target)
        self._crowding = Crowding.of(self._features, self._points)
        return self._adopt(found)

    def set_public(self, public: Any, *, pieces: int | None = None) -> Self:
        """Prepares for private records that come in pieces; everything is planned from the public table.

        Args:
            public: The public table.
            pieces: How many pieces there are, where they are numbered: each is then counted exactly once, whoever counts it.
        """
        terms = self._terms()
        self._ask(**terms.asked).must_be_payable()
        if pieces is not None:
            checks.whole(minimum=1, pieces=pieces)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        table = table_of(public, self.schema)
        features, points = self._public_points(table, terms)
        plan = terms.settings.plan(points, features, terms.target, self.n_public)
        part = None
        if plan.streams:
            statistic = plan.statistic(features, terms.digest(points, features))
            part = Part.unnumbered(statistic) if pieces is None else Part.empty(statistic, pieces=int(pieces))
        # All that can fail is done; and a parameter changed from here on must not change half of a release.
        self._table, self._features, self._fixed, self._points = table, features, terms, points
        self._plan: Method = plan
        self._part = part
        self._crowding = Crowding.of(features, points) if isinstance(plan, Embedding) else NOWHERE
        if self._crowding.advice is not None:
            warnings.warn(self._crowding.advice, CrowdedWarning, stacklevel=3)
        return self

    def partial_fit(self, *, private: Any, piece: int | None = None) -> Self:
        """Adds private records to the sums, all of them or (when a piece does not fit) none; nothing is released.

        Args:
            private: The records.
            piece: Which of the `pieces` of `set_public` they are, from 0 on.

        Raises:
            DataError: That piece was counted before.
        """
        part = self._open_part()
        must_be_rows(private)
        self._part = part.with_rows(private) if piece is None else part.with_piece(piece, private)
        return self

    def merge(self, other: DensityRatio) -> Self:
        """Adds the sums of another part that was prepared with the same public table; the other part gives them up.

        Raises:
            ParameterError: The other part has another public table or other settings, or is a copy of one counted already.
            DataError: Both have counted the same numbered piece.
        """
        checks.require(other is not self, "another part", other="the same one")
        mine, theirs = self._open_part(), other._open_part()
        must_match((mine.statistic, mine.pieces) == (theirs.statistic, theirs.pieces))
        self._part, other._part = mine.merged(theirs), None
        return self

    def finalize(self) -> Self:
        """Charges the ledger, draws the noise once, computes the weights, forgets the sums (kept when the ledger refuses)."""
        return self._release(self._open_part().whole())

    def predict(self, X: Any, *, min_support: float = _LEAST_SUPPORT) -> Floats:
        """The ratio at new points; NaN where the public table says nothing about them.

        Args:
            X: Points with the columns of the public table.
            min_support: Least `support_score` of a point that gets a number; 0 gives every point one.
        """
        self._must_be_fitted()
        points = self._features.points(X)
        ratio = self._plan.ratio(self.release_.value, points)
        covered = not isinstance(self._plan, Embedding) or self._plan.support_score(points) >= min_support
        return np.where(covered, ratio, math.nan)

    def support_score(self, X: Any) -> Floats:
        """How well the centres cover each point: near 1 on the public table, 0 far away from it."""
        return self._embedding("a support score").support_score(self._features.points(X))

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
        write_csv(plainly(self.to_frame(), self.schema), path, self.release_, overwrite=overwrite)

    def to_parquet(self, path: Any, *, overwrite: bool = False) -> None:
        """Writes the weighted table with the guarantee in its metadata, and the release beside it."""
        write_parquet(plainly(self.to_frame(), self.schema), path, self.release_, overwrite=overwrite)

    @renamed(private_size="n_records")
    def plan(self, *, n_records: int, public: Any = None) -> DensityPlan:
        """Cost and expected error from public quantities; no private record is touched, nothing is charged.

        Args:
            public: The public table; the one that was set when left out.
            n_records: About how many private rows there are; a public number.
        """
        checks.whole(minimum=1, n_records=n_records)
        terms = self._terms()
        checks.require(terms.settings.method == "rkhs", "'rkhs' for a plan", method=terms.settings.method)
        terms.check_delta(int(n_records))
        features, points = self._public_points(table_of(self._table if public is None else public, self.schema), terms)
        plan = terms.settings.plan(points, features, terms.target, self.n_public)
        return forecast(plan, n_records=int(n_records), crowding=Crowding.of(features, points))

    @property
    def rows_read(self) -> int | None:
        """How many private rows were added so far; None where their number is private."""
        return None if self._fixed.target.relation == "add-remove" else self._open_part().state.count

    def _terms(self) -> Terms:
        """The parameters, checked and read exactly."""
        return Terms.of(self.get_params(deep=False), self._ask)

    def _public_points(self, table: Any, terms: Terms) -> tuple[Features, Floats]:
        return Features.of(table, schema=self.schema, columns=self.columns, standardize=terms.standardizes)

    def _open_part(self) -> Part[Tally]:
        if (plan := getattr(self, "_plan", None)) is None:
            raise NotFittedError("set_public must be called before private records can be added.")
        if not plan.streams:
            raise ParameterError(f"method must be 'rkhs', 'ulsif-b' or 'ulsif-parametric' to stream; got {str(self.method)!r}.")
        if self._part is None:
            raise ParameterError(
                "finalize must be called once; the noise was drawn already, or the sums were merged into another part, "
                "or fit failed and kept none. Call set_public to start again."
            )
        return self._part

    def _release(self, seen: Tally | Floats) -> Self:
        terms, features, size = self._fixed, self._features, seen.count if isinstance(seen, Tally) else len(seen)
        ask = self._ask(**terms.asked)
        terms.check_size(size)
        promise = self._plan.promise(size)
        guarantee, drawn = terms.guarantee(ask, promise), list[bool]()

        def draw() -> dict[str, Any]:
            drawn.append(True)
            return {**self._plan.draw(seen, ask.coin), "features": features_tree(features)}

        release = ask.answer(
            draw,
            kind=KIND,
            promise=guarantee,
            facts={**terms.facts(), **promise.facts, "columns": list(features.names), "public_rows": len(self._points)},
            subject=features.names,
            schema=features.schema,
            notes=("The weights are for the rows of the public table, in its order; their mean is 1.",),
            price=promise.price(guarantee.relation),
            apart=digest_of(self._points),
        )
        if not drawn:  # a retry key is tied to the facts, and the cells of the public table are not among them
            must_be_made_for(release, self._plan, features, self._points, key=ask.retry_key)
        return self._adopt(release)

    def _adopt(self, release: Release) -> Self:
        """Sets what follows from the release."""
        self._learned(release)
        self.weights_: Floats = np.array(release["weights"])
        self._judged = self._part = None
        self.n_features_in_ = len(self._features.names)
        inference = self._inference() if self._has_errors() else None
        self.diagnostics_: Diagnostics = diagnosed(self.weights_, inference, self._crowding)
        if not self.diagnostics_.covered:
            warnings.warn("; ".join(self.diagnostics_.notes), CoverageWarning, stacklevel=4)
        return self

    def _inference(self) -> Inference | None:
        """What the release says about errors; None for one of an earlier version."""
        plan = self._embedding("an interval")
        if self._judged is None and has_uncovered(self.release_):
            self._judged = Inference.of(plan, self.release_.value)
        return self._judged

    def _has_errors(self) -> bool:
        return isinstance(self._plan, Embedding)

    def _embedding(self, what: str) -> Embedding:
        self._must_be_fitted()
        if not isinstance(self._plan, Embedding):
            advice = " Ask with ci=False." if what == "an interval" else ""
            raise ParameterError(f"method must be 'rkhs' for {what}; got {str(self.method)!r}.{advice}")
        return self._plan

    def _must_be_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError("fit (or finalize) must be called first.")
