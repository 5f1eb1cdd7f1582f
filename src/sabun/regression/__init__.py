"""One linear model from organisations that cannot share data: only private numbers leave each of them.

records ─► Moments (exact sums) ─► method ─► Release ─► combine ─► PublicModel / HomeModel

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.regression.combining import METHODS, combine
    from sabun.regression.contribution import Contribution, read_all
    from sabun.regression.forecasting import Shape
    from sabun.regression.mirror import mirror_weights
    from sabun.regression.models import HomeModel, Influence, PublicModel
    from sabun.regression.narrowing import narrowed
    from sabun.regression.plan import Plan, plan_of
    from sabun.regression.ridge import PrivateRidge
    from sabun.regression.settings import Penalized
    from sabun.regression.study import MECHANISMS, Study
    from sabun.regression.theorem_three import RiskBound, risk_bound

__all__ = [
    "MECHANISMS",
    "METHODS",
    "Contribution",
    "HomeModel",
    "Influence",
    "Penalized",
    "Plan",
    "PrivateRidge",
    "PublicModel",
    "RiskBound",
    "Shape",
    "Study",
    "combine",
    "mirror_weights",
    "narrowed",
    "plan_of",
    "read_all",
    "risk_bound",
]

_HOMES = {
    "Contribution": "contribution",
    "HomeModel": "models",
    "Influence": "models",
    "MECHANISMS": "study",
    "METHODS": "combining",
    "Penalized": "settings",
    "Plan": "plan",
    "PrivateRidge": "ridge",
    "PublicModel": "models",
    "RiskBound": "theorem_three",
    "Shape": "forecasting",
    "Study": "study",
    "combine": "combining",
    "mirror_weights": "mirror",
    "narrowed": "narrowing",
    "plan_of": "plan",
    "read_all": "contribution",
    "risk_bound": "theorem_three",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
