"""The second of two rounds: residuals of every organisation around the model that all of their first rounds give.

    round one: R, A, c, q with noise, from each ─► combine ─► public model ─► round two: residual sums with noise, from each

The model of all is nearer to the truth than an organisation's own, so residuals around it are smaller, and so is their noise.
The table is read once for each round. Each round is a file of its own under its own promise; `combine` takes both.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sabun.asking import Part, state_of
from sabun.errors import DataError, ParameterError
from sabun.privacy.noise import Coin
from sabun.records import Persons
from sabun.records.persons import facts_of
from sabun.regression.contribution import Contribution, read_one
from sabun.regression.mixing import Axes
from sabun.regression.models import PublicModel
from sabun.regression.sharing import shares_of
from sabun.regression.staged import add_residual_noise, free_level, level_for, start_for
from sabun.regression.stages import Residuals, Tally, staged_design
from sabun.regression.study import Study
from sabun.regression.sums import first_sums, released_radius
from sabun.regression.variances import released_variance

__all__ = ["Second", "add_second_noise", "residuals_around"]

_SURE = 2.0
"""An organisation's residuals are taken for larger than the common ones where its own sums say so by as many deviations."""


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Second:
    """A table whose residuals around a public model were read. PRIVATE.

    Args:
        study: The terms.
        first: The same organisation's release of the first round.
        part: The residual sums.
        persons: How rows were made into persons, if they were.
    """

    study: Study
    first: Contribution
    part: Part[Tally]
    persons: Persons | None = None

    @property
    def state(self) -> Tally:
        """The sums."""
        return self.part.whole()

    @property
    def statistic(self) -> Residuals:
        """What was summed: residuals around which model, cut where; public."""
        found = self.part.statistic
        assert isinstance(found, Residuals)
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """The public choices behind the second round: which first round, which model, which level."""
        return {"first": self.first.digest, "start": list(self.statistic.start), "level": self.statistic.level}

    @classmethod
    def of(
        cls,
        study: Study,
        source: object,
        *,
        first: Any,
        around: Any,
        organisation: str | None,
        persons: Persons | None = None,
    ) -> Second:
        """Reads the residuals of a table.

        Args:
            study: The terms.
            source: The table of the first round.
            first: The release of the first round, or its path.
            around: The public model of all first rounds, or its path.
            organisation: Who releases.
            persons: How rows were made into persons, as in the first round.

        Raises:
            ParameterError: The release is no first round of this organisation in this study, or the model is of another study.
            ReleaseError: The release is damaged or forged.
            DataError: The table does not fit the declared columns, or has another number of rows than in the first round.
        """
        if study.method != "rounds":
            raise ParameterError(f"method must be 'rounds' for a second round; got {study.method!r}. Agree on it first.")
        if first is None or around is None:
            raise ParameterError(
                "first and around must be given together: the own first release, and the model of all of them."
            )
        own = read_one(first, study, label="first")
        if own.is_second or own.value["organisation"] != organisation:
            raise ParameterError(
                "first must be the release of the first round by the same organisation; it is not. "
                "Pass the file that its `fit` wrote."
            )
        if own.release.provenance.parameters.get("persons") != facts_of(persons).get("persons"):
            raise ParameterError(
                "the table must be read as in the first round, with the same column of ids and the same rules; it is not."
            )
        model = PublicModel.load(around) if isinstance(around, str | os.PathLike) else around
        if not isinstance(model, PublicModel) or model.study.hash != study.hash or model.method != "pool":
            raise ParameterError(
                "around must be the public model of the first rounds of this study, pooled; it is not. "
                "Combine all first releases without home data."
            )
        statistic = residuals_around(study, own.value, model)
        part = Part(statistic=statistic, state=state_of(statistic, source))
        found = cls(study=study, first=own, part=part, persons=persons)
        if study.relation == "replace-one" and found.state.rows != own.value["rows"]:  # proof: same-rows
            raise DataError("the table must be that of the first round; it has another number of rows. Nothing was charged.")
        return found


def residuals_around(study: Study, first: Any, model: Any) -> Residuals:
    """What an organisation sums in the second round, from released numbers alone.

    Args:
        study: The terms.
        first: The organisation's numbers of the first round.
        model: `beta`, `covariance` and `variance` of the pooled model in row units.
    """
    sums, design = first_sums(study, first), staged_design(study.design, released_radius(study, first))
    own = max(float(np.sum(model.covariance * sums.gram)), 0.0) / sums.rows
    found = released_variance([sums], model.beta, own)
    variance = max(model.variance, min(found.found - _SURE * found.deviation, 1.0))
    level = level_for(variance, own, free_level(study, shares_of(study, first["rows"]), sums.near, Axes.of([sums]), variance))
    return Residuals(design=design, start=start_for(study, design, model.beta), level=level)


def add_second_noise(second: Second, coin: Coin) -> dict[str, Any]:
    """The released value of the second round: the digest of the first, start, level, residual sums.

    Guarantee: that of one round of the study, given the first; both together keep (epsilon, delta) of the study, see
    `second_round.proof.md`. Sizes depend on the study alone.
    """
    study, rows = second.study, second.first.value["rows"]
    noisy = add_residual_noise(study, second.state, shares_of(study, rows), coin)  # proof: second-round
    return {"rows": rows, **second.facts, **noisy}
