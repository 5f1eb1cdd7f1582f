"""What a check works with: it listens to the samplers, replaces names for a while, and keeps what was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, NoReturn, final

from sabun.asking.evidence.listening import Heard, listen
from sabun.asking.evidence.needed import WASTE

__all__ = ["Bench", "Inapplicable", "Refuted", "near"]


class Refuted(Exception):
    """What a check looked at is not as claimed."""


class Inapplicable(Exception):
    """There is nothing here that a check could look at: no evidence either way."""


def near(found: float, wanted: float, *, rel: float = 1e-6, abs: float = 0.0) -> bool:
    """Whether two numbers are the same but for rounding."""
    return math.isclose(float(found), float(wanted), rel_tol=rel, abs_tol=abs)


@final
class Bench:
    """The place where one case of a check is tried; what it replaced is put back when it is left.

    Names are replaced for the whole process: no other thread may use the package meanwhile.

    Args:
        thorough: More trials, for whoever has an hour.
    """

    def __init__(self, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.notes: list[str] = []
        self.ratios: list[float] = []
        self.proofs: list[str] = []
        self.assumptions: list[str] = []
        self._replaced: list[tuple[Any, str, Any, bool]] = []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.put_back()
        self.__dict__.pop("heard", None)  # the next case listens anew

    @cached_property
    def heard(self) -> Heard:
        """What the samplers are asked from now on."""
        return listen(self.replace)

    def replace(self, home: Any, name: str, new: Any) -> None:
        """Sets an attribute (an item, where the home is a dictionary) until the bench is left."""
        items = isinstance(home, dict)
        there = name in home if items else name in vars(home)
        self._replaced.append((home, name, (home[name] if items else vars(home)[name]) if there else None, there))
        _set(home, name, new)

    def put_back(self, keep: int = 0) -> None:
        """Undoes replacements, the newest first; the oldest so many stay."""
        while len(self._replaced) > keep:
            home, name, old, there = self._replaced.pop()
            if there:
                _set(home, name, old)
            elif isinstance(home, dict):
                del home[name]
            else:
                delattr(home, name)

    def must(self, holds: Any, words: str = "") -> None:
        """Raises where it does not hold; where it was asked is told by the traceback."""
        if not holds:
            raise Refuted(words or "what must hold there does not.")

    def fail(self, words: str) -> NoReturn:
        """Raises with these words."""
        raise Refuted(words)

    def enough(self, found: float, needed: float, *, slack: float = 1e-6, waste: float = WASTE) -> None:
        """Noise of that size must be at least what is needed, but for rounding, without being wasteful."""
        ratio = float(found) / float(needed)
        if not 1 - slack <= ratio <= waste:
            raise Refuted(f"{float(found):.6g} was found where {float(needed):.6g} is needed: {ratio:.4g} times as much.")
        self.ratios.append(ratio)

    def note(self, words: str) -> None:
        """Keeps a figure for the table."""
        self.notes.append(words)

    def rest(self, proofs: Sequence[str], assumptions: Sequence[str]) -> None:
        """Keeps what a promise rests on, and what it takes for granted."""
        self.proofs += proofs
        self.assumptions += assumptions
        self.note(f"rests on {', '.join(proofs)}; assumes: {'; '.join(assumptions) or 'nothing further'}")

    def told(self) -> str:
        """What was found, in words."""
        return "; ".join([*dict.fromkeys(self.notes), *_in_words(self.ratios)])


def _set(home: Any, name: str, value: Any) -> None:
    if isinstance(home, dict):
        home[name] = value
    else:
        setattr(home, name, value)


def _in_words(ratios: Sequence[float]) -> list[str]:
    if not ratios:
        return []
    low, high = min(ratios), max(ratios)
    return [
        f"noise {low:.4g} to {high:.4g} times what is needed"
        if f"{low:.4g}" != f"{high:.4g}"
        else f"noise {low:.4g} times what is needed"
    ]
