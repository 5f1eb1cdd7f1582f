"""Theorem 3 of the paper as a number: what it bounds the risk of mirror averaging by, from public figures alone.

Notation of (13), with n rows in each of M organisations and n0 at home: A2(l) + (sqrt(L/n) + sqrt(4/n) + C1 L/n) / l +
C2 / (epsilon n) + tau log(M) / n0, where L = log(2 M / alpha) and tau = 2 sigma**2 + 8 B**2. The theorem leaves C1 and C2 open;
those of the theorems it cites are C1 = 8/3 (Steinwart and Christmann 6.24) and C2 = 4 zeta p B + 2 B**2 with zeta = 2 (B + 1)
(Kifer et al., Theorem 4). For a covariance s I the approximation error is A2(l) = |beta|**2 s l / (s + l).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from sabun import checks
from sabun.regression.study import Study

__all__ = ["RiskBound", "bound_of_study", "risk_bound"]

_C1 = 8 / 3
_LAMBDAS = np.logspace(-4, 6, 401)


@final
@dataclass(frozen=True, kw_only=True)
class RiskBound:
    """The right side of (13), term by term, in squared units of the scaled target (its bounds are -1 and 1).

    Args:
        ridge_terms: A2 and what ridge regression without privacy is bounded by.
        privacy_term: The price of the noise.
        mixing_term: The price of choosing by home data.
        risk_of_zero: The excess risk of answering zero always.
        regularization: The lambda of these terms.
        temperature: The least tau the theorem allows.
        confidence: Over the other organisations' data.
        rows_needed: From about how many rows in each organisation (and at home) on the bound is below the risk of answering
            zero; None where it never is.
    """

    ridge_terms: float
    privacy_term: float
    mixing_term: float
    risk_of_zero: float
    regularization: float
    temperature: float
    confidence: float
    rows_needed: int | None

    @property
    def total(self) -> float:
        """The right side of (13)."""
        return self.ridge_terms + self.privacy_term + self.mixing_term

    @property
    def informative(self) -> bool:
        """Whether it is below the risk of answering zero."""
        return self.total < self.risk_of_zero

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"total": self.total, "informative": self.informative}

    def __str__(self) -> str:
        needed = "for no number of rows" if self.rows_needed is None else f"from about {self.rows_needed:,} rows in each on"
        return (
            f"Theorem 3 bounds the mean excess risk of mirror averaging by {self.total:.4g} (ridge {self.ridge_terms:.4g} at "
            "lambda "
            f"{self.regularization:.3g}, privacy {self.privacy_term:.4g}, mixing {self.mixing_term:.4g}), with probability "
            f"{self.confidence:g} over the others' data.\n"
            f"Answering zero always costs {self.risk_of_zero:.4g}: the bound "
            f"{'says' if self.informative else 'does not say'} that "
            f"the model is better; it does so {needed}."
        )


def risk_bound(
    *,
    n_records: int,
    organisations: int,
    features: int,
    epsilon: float,
    home_records: int | None = None,
    coef_bound: float = 1.0,
    coef_length: float | None = None,
    curvature: float | None = None,
    residual: float = 0.2,
    confidence: float = 0.95,
    regularization: float | None = None,
) -> RiskBound:
    """What Theorem 3 says about a study, before anybody looks at a record.

    Guarantee: none is needed; every figure is public. What is bounded is the mean over home data and noise, for the method of
    the paper (objective perturbation inside the ball, then mirror averaging), where all organisations draw from one law.

    Args:
        n_records: Rows of each organisation.
        organisations: M, without the home organisation.
        features: p, rows being vectors in the unit ball.
        epsilon: Of each release.
        home_records: Rows at home; as many as elsewhere when left out.
        coef_bound: B, the radius of the ball of coefficients; targets lie in [-1, 1].
        coef_length: A guess of the true length of the coefficients; 4/5 of B when left out.
        curvature: A guess of s, the mean square of a feature; 1/(p + 2), rows spread evenly over the ball, when left out.
        residual: A guess of sigma.
        confidence: 1 - alpha.
        regularization: lambda; None takes the one with the least bound.

    Raises:
        ParameterError: A figure breaks its rule.

    Example:
        >>> found = risk_bound(n_records=1000, organisations=10, features=5, epsilon=1)
        >>> round(found.privacy_term, 3), found.informative
        (0.082, False)
    """
    checks.whole(minimum=1, n_records=n_records, organisations=organisations, features=features)
    checks.positive(epsilon=epsilon, coef_bound=coef_bound, residual=residual)
    for name, value in (("coef_length", coef_length), ("curvature", curvature), ("regularization", regularization)):
        if value is not None:
            checks.positive(**{name: value})
    if home_records is not None:
        checks.whole(minimum=1, home_records=home_records)
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    world = _World(
        organisations=int(organisations),
        features=int(features),
        epsilon=float(epsilon),
        bound=float(coef_bound),
        length=0.8 * float(coef_bound) if coef_length is None else float(coef_length),
        curvature=1 / (int(features) + 2) if curvature is None else float(curvature),
        residual=float(residual),
        alpha=1 - float(confidence),
        lambdas=_LAMBDAS if regularization is None else np.array([float(regularization)]),
    )
    home = n_records if home_records is None else home_records
    ridge, chosen, privacy, mixing = world.terms(int(n_records), int(home))
    return RiskBound(
        ridge_terms=ridge,
        privacy_term=privacy,
        mixing_term=mixing,
        risk_of_zero=world.zero,
        regularization=chosen,
        temperature=world.temperature,
        confidence=float(confidence),
        rows_needed=world.rows_needed(),
    )


def bound_of_study(study: Study, *, n_records: int, organisations: int | None = None, **more: Any) -> RiskBound:
    """The same for an agreed study: its width, its epsilon, its bound on coefficients (half of it is the guess).

    Args:
        study: The terms.
        n_records: Rows of each organisation.
        organisations: How many release; those of the study when left out.
        **more: As in `risk_bound`.
    """
    many = max(1, len(study.organisations)) if organisations is None else organisations
    bound = float(study.coef_bound)
    known = {"features": study.width, "epsilon": float(study.epsilon), "coef_bound": bound, "coef_length": bound / 2}
    return risk_bound(**{"n_records": n_records, "organisations": many} | known | more)


@final
@dataclass(frozen=True, kw_only=True)
class _World:
    organisations: int
    features: int
    epsilon: float
    bound: float
    length: float
    curvature: float
    residual: float
    alpha: float
    lambdas: Any

    @property
    def zero(self) -> float:
        return self.curvature * self.length**2

    @property
    def temperature(self) -> float:
        return 2 * self.residual**2 + 8 * self.bound**2

    def terms(self, rows: int, home: int) -> tuple[float, float, float, float]:
        """Ridge terms at their best lambda, that lambda, privacy term, mixing term."""
        many = math.log(2 * self.organisations / self.alpha)
        spread = math.sqrt(many / rows) + math.sqrt(4 / rows) + _C1 * many / rows
        found = self.lambdas * self.curvature / (self.lambdas + self.curvature) * self.length**2 + spread / self.lambdas
        best = int(np.argmin(found))
        zeta = 2 * (self.bound + 1)
        noise = 4 * zeta * self.features * self.bound + 2 * self.bound**2
        privacy, mixing = noise / (self.epsilon * rows), self.temperature * math.log(self.organisations) / home
        return float(found[best]), float(self.lambdas[best]), privacy, mixing

    def rows_needed(self) -> int | None:
        """The least power of the square root of two, rounded, at which the bound is below the risk of answering zero."""
        for step in range(2 * 60 + 1):
            rows = round(2 ** (step / 2))
            ridge, _, privacy, mixing = self.terms(rows, rows)
            if ridge + privacy + mixing < self.zero:
                return rows
        return None
