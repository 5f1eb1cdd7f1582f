"""A room's checks, each a function whose name is its claim, and what came of them."""

from __future__ import annotations

import itertools
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from sabun.asking.evidence.bench import Bench, Refuted
from sabun.errors import InternalError

__all__ = ["Check", "Checklist", "Finding", "Shown", "each"]

Shown = Literal["tight", "lower bound", "checked"]
"""The loss was found exactly; at least so much is lost; a property that the claim rests on was tried."""


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the table: what was claimed of a mechanism, and what was found.

    Args:
        room: The room of the mechanism, or the part of the hall it belongs to.
        mechanism: Its name.
        claim: What is claimed.
        shown: How far what was found goes.
        evidence: The figures, or what went wrong.
        seconds: How much processor time it took.
        passed: Whether the claim holds as far as was looked; None where an extra is missing, which is said.
    """

    room: str
    mechanism: str
    claim: str
    shown: Shown
    evidence: str
    seconds: float
    passed: bool | None


@final
@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim about some mechanisms, with what tries it.

    Args:
        mechanisms: Their names, as `PROMISING` of the room has them.
        claim: A sentence.
        shown: How far it goes.
        function: Tries one case; raises `Refuted` where the claim does not hold, may return figures in words.
        cases: What it is tried with.
        needs: The extra it needs, such as "learning".
        thorough: Whether it is only run when somebody asks for more.
    """

    mechanisms: tuple[str, ...]
    claim: str
    shown: Shown
    function: Callable[..., str | None]
    cases: tuple[Mapping[str, Any], ...]
    needs: str = ""
    thorough: bool = False

    @property
    def name(self) -> str:
        """The mechanisms in one line."""
        return ", ".join(self.mechanisms)

    def try_case(self, bench: Bench, case: Mapping[str, Any]) -> None:
        """Tries one case in quiet: what a room says of tables this small is not the point here."""
        with bench, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = self.function(bench, **case)
        if told:
            bench.note(told)

    def run(self, room: str, *, thorough: bool = False) -> Finding:
        """Tries every case; whatever is raised is a claim that does not hold."""
        began, bench = time.process_time(), Bench(thorough=thorough)
        passed, told = True, ""
        try:
            for case in self.cases:
                self.try_case(bench, case)
            told = "; ".join(filter(None, (bench.told(), f"{len(self.cases)} cases" if len(self.cases) > 1 else "")))
        except Exception as error:
            passed, told = False, _failure(error, case)
        seconds = time.process_time() - began
        return Finding(
            room=room,
            mechanism=self.name,
            claim=self.claim,
            shown=self.shown,
            evidence=told or "holds",
            seconds=seconds,
            passed=passed,
        )


def _failure(error: Exception, case: Mapping[str, Any]) -> str:
    """Where it went wrong, with what; nothing private is at stake: the tables are made up."""
    last = traceback.extract_tb(error.__traceback__)
    place = next((step for step in reversed(last) if Path(step.filename).name != "bench.py"), last[-1])
    words = str(error) if isinstance(error, Refuted) else f"{type(error).__name__}: {error}"
    tried = ", ".join(f"{name}={value!r:.60}" for name, value in case.items())
    return f"REFUTED ({Path(place.filename).name}:{place.lineno}: {place.line or ''}) {words} {tried and f'[{tried}]'}".strip()


def each(names: str, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Cases whose parameters go together, a row for each.

    Example:
        >>> each("width cut", [(1, 2), (3, 4)])
        [{'width': 1, 'cut': 2}, {'width': 3, 'cut': 4}]
    """
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


@final
class Checklist:
    """Collects checks: a function that is decorated with it joins, and its name is the claim.

    Example:
        >>> CHECKS = Checklist()
        >>> @CHECKS("coin", n=(2, 6))
        ... def heads_come_up_half_the_time(bench: Bench, n: int) -> None:
        ...     bench.must(n % 2 == 0)
        >>> [check.claim for check in CHECKS]
        ['heads come up half the time']
        >>> CHECKS.checks[0].run("toy").passed
        True
    """

    def __init__(self, *others: Checklist) -> None:
        self.checks: list[Check] = [check for other in others for check in other]

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __call__(
        self,
        *mechanisms: str,
        claim: str = "",
        shown: Shown = "checked",
        cases: Sequence[Mapping[str, Any]] = ({},),
        needs: str = "",
        thorough: bool = False,
        **over: Sequence[Any],
    ) -> Callable[[Callable[..., str | None]], Callable[..., str | None]]:
        """Lets the function below join.

        Args:
            mechanisms: What it is about.
            claim: The claim, where the function's name is not enough.
            shown: How far it goes.
            cases: What it is tried with, one after the other; each with every combination of `over`.
            needs: The extra it needs.
            thorough: Whether it is only run when somebody asks for more.
            over: Values of further parameters.
        """
        if not mechanisms:
            raise InternalError("a check must name what it is about.")

        def join(function: Callable[..., str | None]) -> Callable[..., str | None]:
            products = [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]
            self.checks.append(
                Check(
                    mechanisms=mechanisms,
                    claim=claim or function.__name__.strip("_").replace("_", " "),
                    shown=shown,
                    function=function,
                    cases=tuple({**case, **more} for case in cases for more in products),
                    needs=needs,
                    thorough=thorough,
                )
            )
            return function

        return join
