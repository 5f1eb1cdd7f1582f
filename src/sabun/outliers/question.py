"""What the three questions about outliers share: who is an outlier, the terms, and when they are checked."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from sabun import checks
from sabun.asking import Ask, Question
from sabun.ledger import Ledger
from sabun.outliers.points import check_k
from sabun.outliers.settings import check_cover
from sabun.privacy.amounts import AmountLike
from sabun.records import Schema

__all__ = ["OutlierQuestion"]


@dataclass(kw_only=True, eq=False, repr=False)
class OutlierQuestion(Question):
    """A question about records with fewer than k others within a radius."""

    k: int = 5
    epsilon: AmountLike
    cover: str = "degeneracy"
    schema: Schema | None = None
    ledger: Ledger | None = None
    retry_key: str | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        self._checked()

    def __sklearn_tags__(self) -> Any:
        """Cells that are no finite numbers have a place only under a schema."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.schema is not None
        return tags

    @abstractmethod
    def _checked(self) -> Any:
        """Every parameter, checked; what follows from them."""

    def _terms(self) -> Ask:
        """The parameters above, checked."""
        check_k(self.k)
        checks.require(self.schema is None or isinstance(self.schema, Schema), "a Schema or None", schema=self.schema)
        ask = self._ask()
        check_cover(self.cover, ask.relation)
        return ask
