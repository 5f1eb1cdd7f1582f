"""The public class: a ridge regression whose released numbers are differentially private."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from sabun import checks
from sabun.asking import Ask, Part, Question, renamed, state_of
from sabun.asking.fitting import check_shape, check_target
from sabun.engine.by_person import here
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.privacy.amounts import AmountLike, exact, plain
from sabun.privacy.noise import coin_for
from sabun.records import Persons, open_source
from sabun.records.persons import terms_of
from sabun.regression.combining import own_model
from sabun.regression.declared import is_pair, names_of, study_of, width_of
from sabun.regression.design import Floats
from sabun.regression.forecasting import Shape
from sabun.regression.models import PublicModel
from sabun.regression.plan import Plan, plan_of
from sabun.regression.releasing import release_second, release_totals, request_key
from sabun.regression.second_round import Second
from sabun.regression.settings import Penalized, named, penalizing
from sabun.regression.staged import Reading
from sabun.regression.stages import Lengths
from sabun.regression.statistic import Labelled, Moments, Totals
from sabun.regression.study import STAGED, Study
from sabun.release import load_key, refuse_seeded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sabun.ledger import Ledger

__all__ = ["PrivateRidge"]

_STUDY_SAYS = ("epsilon", "delta", "x_bounds", "y_bounds", "clip_radius", "regularization", "relation")
_STUDY_SETTLES: dict[str, Any] = {"method": "staged", "coef_bound": 2, "fit_intercept": True, "records_per_person": 1}
"""Terms with a default, which cannot be told from a value left out: another value must be the study's own."""
_SAME_TERMS = "residuals that were read on these terms"


@renamed(mechanism="method", ridge="regularization", regularisation="regularization", key="signing_key")
@penalizing
class PrivateRidge(RegressorMixin, Question):  # type: ignore[misc]
    """Linear regression that releases differentially private numbers.

    Guarantee: (epsilon, delta) for one `unit`'s rows, under the relation; see the proof files beside the mechanisms. With
    `method="paper"` there is none, and the guarantee says so.

    Args:
        epsilon: Privacy of the release.
        delta: The same; 1e-6 for `staged` and `ssp-gauss` when left out. The pure methods (`ssp-laplace`, `objpert`) keep 0
            whatever is asked.
        method: `staged` (noisy sums of weighted rows, then of residuals around the model they give: the default), `rounds`
            (the same in two rounds, around the model of all organisations: `fit`, `combine`, then `refine`), `ssp-gauss`
            (noisy sums alone, the former default), `ssp-laplace` (the same, pure), `objpert` (objective perturbation over a
            ball, pure), `paper` (eq. 8 as printed, not private), `auto` (by delta and the number of coefficients). The two that
            take a public constant on the diagonal: `Penalized(method="objpert", regularization=1)`.
        x_bounds: Public bounds: a list of pairs, a mapping from column names to pairs, one pair for all columns of an array or
            a frame, or a Schema.
        y_bounds: Public bounds of the target: a pair, or a mapping from its name to a pair.
        coef_bound: Public guess of the length of the coefficient vector in units in which the longest row has length 1.
        fit_intercept: Whether the model has a constant.
        clip_radius: Length that rows in scaled units are shortened to. When left out, `staged` chooses one privately; with the
            others none is shortened.
        relation: `replace-one` or `add-remove`; the ledger's when left out, else `replace-one`.
        records_per_person: The most rows of one unit.
        study: Says all of the above at once; a value beside it that contradicts it is refused.
        organisation: The releasing organisation's name.
        signing_key: Its private key, or better the path of its file; the release is then signed. A key never goes into a
            pickle.
        ledger: The book to charge. In a study, asking again returns the identical bytes and costs nothing. Without a ledger
            nothing is charged, and asking again spends again: keep count yourself, or pass one.
        retry_key: Name under which the same question gets the same bytes for free; only with a ledger. In a study every
            organisation has one already.
        random_state: None draws from the operating system. A number gives a simulation: NOT PRIVATE.

    Attributes:
        coef_: Coefficients in original units.
        intercept_: The constant in original units.
        guarantee_: The promise about the release.
        release_: What may leave the organisation.
        model_: The public model of this one release.

    Example:
        >>> X = np.column_stack([np.linspace(0, 10, 400), 5 + 5 * np.sin(np.arange(400))])
        >>> m = PrivateRidge(epsilon=1, x_bounds=[(0, 10), (0, 10)], y_bounds=(0, 30)).fit(X, X[:, 0] + 2 * X[:, 1])
        >>> m.coef_.shape, str(m.guarantee_.delta), m.conf_int().shape
        ((2,), '1/1000000', (2, 2))
    """

    def __init__(
        self,
        *,
        epsilon: AmountLike | None = None,
        delta: AmountLike | None = None,
        method: str | Penalized = "staged",
        x_bounds: Any = None,
        y_bounds: Any = None,
        coef_bound: AmountLike = 2.0,
        fit_intercept: bool = True,
        clip_radius: AmountLike | None = None,
        relation: str | None = None,
        records_per_person: int = 1,
        study: Study | None = None,
        organisation: str | None = None,
        signing_key: Ed25519PrivateKey | str | os.PathLike[str] | None = None,
        ledger: Ledger | None = None,
        retry_key: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.x_bounds = x_bounds
        self.y_bounds = y_bounds
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.clip_radius = clip_radius
        self.relation = relation
        self.records_per_person = records_per_person
        self.study = study
        self.organisation = organisation
        self.signing_key = signing_key
        self.ledger = ledger
        self.retry_key = retry_key
        self.random_state = random_state
        self._asked(self._terms(width_of(x_bounds)))

    def fit(self, X: object, y: object = None) -> Self:
        """Releases private numbers about the records, then estimates coefficients from them.

        Args:
            X: Features: a table; or, without `y`, a table, file, folder of Parquet files or stream that also holds the target
                under its name (files are read in bounded memory), `persons` with several rows each of such a table, or what
                `read` made of one.
            y: Targets.

        Raises:
            SimulatedError: A seed came with a ledger; no data was read.
            BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
            DataError: The tables do not fit the declared columns.
        """
        refuse_seeded(coin_for(self.random_state), self.ledger)
        signer = None if self.signing_key is None else _private_key(self.signing_key)
        study, sums = (self._study_of(X), X) if isinstance(X, Part | Reading | Second) else self._read(X, y)
        ask = self._asked(study, second=isinstance(sums, Second))
        if isinstance(sums, Second):
            release = release_second(sums, ask, organisation=self.organisation)
        else:
            totals = sums if isinstance(sums, Reading) else sums.whole()
            release = release_totals(study, totals, ask, organisation=self.organisation, persons=terms_of(X))
        if signer is not None:
            release = release.sign(signer)
        self._learned(release)
        self.study_ = study
        self.n_features_in_ = len(study.features.columns)
        self.model_ = own_model(study, release, sums.first.release if isinstance(sums, Second) else None)
        self.coef_, self.intercept_ = self.model_.coef_, self.model_.intercept_
        return self

    def read(self, X: object, y: object = None) -> Part[Totals] | Reading | Persons:
        """What `fit` needs to know of a table before it charges, for whoever looks at a plan in between. PRIVATE.

        With most methods these are all sums that there are. `staged` reads the table twice more when it draws: a file must stay
        where it is, and a stream that can be read only once is kept in memory. Of persons it is one row each, in the order that
        was drawn for them.

        Args:
            X: As in `fit`.
            y: As in `fit`.

        Raises:
            DataError: The tables do not fit the declared columns.
        """
        if isinstance(X, Persons) and y is None:
            return self._people(X)
        return self._read(X, y)[1]

    def refine(self, X: object, y: object = None, *, first: Any, around: Any) -> Self:
        """The second round of a study by `rounds`: releases residuals around the public model that all first rounds give.

        Args:
            X: The table of the first round, as in `fit`.
            y: As in `fit`.
            first: This organisation's release of the first round, or its path.
            around: What `combine` made of all first releases without home data, or the path it was saved to.

        Raises:
            ParameterError: `first` or `around` is of something else; nothing was charged.
            BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
            DataError: The table does not fit, or is not that of the first round.
        """
        return self.fit(self.read_again(X, y, first=first, around=around))

    def read_again(self, X: object, y: object = None, *, first: Any, around: Any) -> Second:
        """What `refine` needs to know of a table before it charges, to be passed to `fit`. PRIVATE."""
        refuse_seeded(coin_for(self.random_state), self.ledger)
        study, source = self._source(X, y)
        return Second.of(study, source, first=first, around=around, organisation=self.organisation, persons=terms_of(X))

    def _read(self, X: object, y: object) -> tuple[Study, Part[Totals] | Reading]:
        study, source = self._source(X, y)
        if study.method in STAGED:
            return study, Reading.of(study, source)
        moments = Moments(design=study.design)
        return study, Part(statistic=moments, state=state_of(moments, source))

    def _people(self, X: Persons) -> Persons:
        """One row each, in the one order that is drawn for them."""
        schema = Moments(design=self._terms(names_of(X, self.x_bounds)).design).schema
        found, _ = open_source(here(X, schema=schema), schema=schema, by_person=True).held()
        assert isinstance(found, Persons)
        return found

    def _source(self, X: object, y: object) -> tuple[Study, object]:
        check_shape(X, owner=self)
        if isinstance(X, Persons):
            if y is not None:
                raise DataError("y must be left out for persons, whose target is a column of their table; got one.")
            checks.require(self.records_per_person == 1, "1 for persons", records_per_person=self.records_per_person)
            X = self._people(X)
        if y is not None or isinstance(X, np.ndarray | list | tuple):  # only files and frames can hold both
            check_target(y, owner=self)
        if self.study is None and is_pair(self.x_bounds) and isinstance(X, list | tuple):
            raise BoundsError(
                "x_bounds must hold a pair for each column where X is a list of rows; got one pair for all. "
                "How many columns a list has, its private records alone can say: pass an array, or [(lower, upper), ...]."
            )
        return self._terms(names_of(X, self.x_bounds)), X if y is None else Labelled(X, y)

    def predict(self, X: object) -> Floats:
        """Predictions; numbers outside the public bounds count as the nearest bound, as they did in the fit."""
        model = self._fitted()
        check_shape(X, owner=self, columns=self.n_features_in_)
        return model.predict(X)

    @renamed(level="confidence")
    def conf_int(self, confidence: float = 0.95, *, tails: str = "any") -> Floats:
        """Confidence intervals of the coefficients, privacy noise included; not for `objpert` and `paper`."""
        return self._fitted().conf_int(confidence, tails=tails)

    @renamed(level="confidence")
    def predict_interval(self, X: object, confidence: float = 0.95) -> Floats:
        """Prediction intervals for new records."""
        return self._fitted().predict_interval(X, confidence)

    @renamed(rows="n_records")
    def plan(self, *, n_records: int, organisations: int = 1, shape: Shape | None = None) -> Plan:
        """Cost and expected error from public numbers: rows of each organisation, how many organisations, their shape."""
        width = width_of(self.x_bounds)
        advice = "Pass x_bounds as a list with a pair for each column."
        checks.require(
            self.study is not None or width is not None, "bounds of each column to plan", advice, x_bounds=self.x_bounds
        )
        return plan_of(self._terms(width), n_records=n_records, organisations=organisations, shape=shape)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: everything but a private key."""
        state: dict[str, Any] = dict(super().__getstate__())
        return state if isinstance(self.signing_key, str | os.PathLike) else state | {"signing_key": None}

    def __sklearn_tags__(self) -> Any:
        """Noise makes scores poor on small tables."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _fitted(self) -> PublicModel:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "model_")
        return self.model_

    def _study_of(self, sums: Part[Totals] | Reading | Second) -> Study:
        """The terms as they are now, which must have the design that the sums were made with."""
        if isinstance(sums, Second):
            same = self._terms(sums.study.features.names).hash == sums.study.hash
            checks.require(same and sums.first.value["organisation"] == self.organisation, _SAME_TERMS, X="others")
            return sums.study
        moments = sums.part.statistic if isinstance(sums, Reading) else sums.statistic
        if not isinstance(moments, Moments | Lengths):
            raise ParameterError(f"X must be sums that a regression read; got {moments.name}. Read the table with `read`.")
        study = self._terms(moments.design.features.names)
        design = Reading.first_design(study) if isinstance(moments, Lengths) else study.design
        if isinstance(sums, Reading) != (study.method in STAGED) or design != moments.design:
            raise ParameterError(
                "X must be sums that were read on these terms; columns or bounds differ. Read the table again."
            )
        return study

    def _asked(self, study: Study, *, second: bool = False) -> Ask:
        """The terms of the study, with this organisation's coin and ledger; a study's release is paid for once."""
        fixed = self.study is not None and study.relation == "replace-one"  # a ledger of another relation is refused as such
        return self._ask(
            epsilon=study.epsilon,
            delta=study.delta,
            relation=None if fixed else study.relation,
            relations=(study.relation,) if fixed else self.relations,
            retry_key=self.retry_key or (None if self.ledger is None else request_key(study, self.organisation, second=second)),
        )

    def _terms(self, columns: int | Sequence[str] | None) -> Study:
        """The study this estimator stands for; raises where a parameter breaks its rule."""
        if self.organisation is not None:
            checks.text(organisation=self.organisation)
        if self.study is not None:
            return self._checked_study(self.study)
        checks.require(self.epsilon is not None, "given", "It has no default.", epsilon=self.epsilon)
        for name in ("x_bounds", "y_bounds"):
            if getattr(self, name) is None:
                raise BoundsError(f"{name} must be declared. Bounds must not come from the data: pass {name}=(lower, upper).")
        usual = self._ask(epsilon=1, delta=None)  # relation and unit, as every question settles them
        return study_of(
            self.x_bounds,
            self.y_bounds,
            columns,
            epsilon=self.epsilon,
            delta=self.delta,
            method=named(self.method),
            fit_intercept=self.fit_intercept,
            clip_radius=self.clip_radius,
            coef_bound=self.coef_bound,
            relation=usual.relation,
            unit=usual.unit,
            records_per_person=self.records_per_person,
            regularization=getattr(self, "regularization", None),
        )

    def _checked_study(self, study: Study) -> Study:
        if not isinstance(study, Study):
            raise ParameterError(f"study must be a Study; got {type(study).__name__}. Read one with Study.load(path).")
        for name in _STUDY_SAYS:
            checks.require(getattr(self, name) is None, "left out when a study says it", **{name: getattr(self, name)})
        for name, default in _STUDY_SETTLES.items():
            value, settled = named(getattr(self, name)), getattr(study, name)
            same = any(_agrees(name, value, wanted) for wanted in (default, settled))
            checks.require(same, f"left out, or the study's {_shown(settled)}, when a study says it", **{name: value})
        if study.organisations:
            study.public_key(self.organisation or "")
        return study


def _agrees(name: str, value: Any, wanted: Any) -> bool:
    """Whether a term is the wanted one; amounts are read as they are written."""
    if isinstance(wanted, str | bool):
        return isinstance(value, type(wanted)) and value == wanted
    return bool(exact(value, name=name) == wanted)


def _shown(settled: object) -> str:
    return plain(settled) if isinstance(settled, Fraction) else repr(settled)


def _private_key(key: object) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    found = load_key(key) if isinstance(key, str | os.PathLike) else key
    if not isinstance(found, Ed25519PrivateKey):
        raise ParameterError(f"signing_key must be a private Ed25519 key or the path of one; got {type(found).__name__}.")
    return found
