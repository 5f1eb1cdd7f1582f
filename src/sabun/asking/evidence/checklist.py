"""A room's checks, each a function whose name is its claim, and what came of them."""

from __future__ import annotations

import itertools
import linecache
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from sabun.asking.evidence.bench import Bench, Inapplicable, Refuted
from sabun.errors import InternalError

__all__ = ["Absent", "Check", "Checklist", "Finding", "Shown", "each"]

Shown = Literal["tight", "lower bound", "checked"]
"""The loss was found exactly; at least so much is lost; a property that the claim rests on was tried."""
Absent = Literal["left out", "does not apply"]
"""Why there is no evidence: nobody looked, or there was nothing to look at."""


@final
@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the table: what was claimed of a mechanism, and what was found.

    Args:
        room: The room of the mechanism, or the part of the hall it belongs to.
        mechanism: Its name.
        claim: What is claimed.
        shown: How far what was found goes; None where nothing was looked at.
        evidence: The figures, or what went wrong.
        seconds: How much processor time it took.
        passed: Whether the claim holds as far as was looked; None where nothing was looked at.
        absent: Why nothing was looked at, in a word.
        needs: The extra for want of which it was left out.
        proofs: The proofs it rests on, where it is about them: files below the package.
        assumes: What those take for granted.
    """

    room: str
    mechanism: str
    claim: str
    shown: Shown | None
    evidence: str
    seconds: float
    passed: bool | None
    absent: Absent | None = None
    needs: str = ""
    proofs: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()


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
        """Tries one case in quiet: what a room says of tables this small is not the point here.

        Raises:
            Refuted: The claim does not hold.
            Inapplicable: The case has nothing that could be looked at.
        """
        with bench, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = self.function(bench, **case)
        if told:
            bench.note(told)

    def run(self, room: str, *, thorough: bool = False) -> Finding:
        """Tries every case; whatever is raised is a claim that does not hold."""
        began, bench = time.process_time(), Bench(thorough=thorough)
        passed, told, applied = True, "", False
        try:
            for case in self.cases:
                try:
                    self.try_case(bench, case)
                    applied = True
                except Inapplicable as reason:
                    bench.note(f"does not apply: {reason}")
            told = "; ".join(filter(None, (bench.told(), f"{len(self.cases)} cases" if len(self.cases) > 1 else "")))
        except Exception as error:
            applied, passed, told = True, False, _failure(error, case)
        return Finding(
            room=room,
            mechanism=self.name,
            claim=self.claim,
            shown=self.shown if applied else None,
            evidence=told or "holds",
            seconds=time.process_time() - began,
            passed=passed if applied else None,
            absent=None if applied else "does not apply",
            proofs=tuple(dict.fromkeys(bench.proofs)),
            assumes=tuple(dict.fromkeys(bench.assumptions)),
        )

    def left_out(self, room: str, why: str, *, needs: str = "") -> Finding:
        """What is told where nobody tries it."""
        return Finding(
            room=room,
            mechanism=self.name,
            claim=self.claim,
            shown=None,
            evidence=f"left out: {why}",
            seconds=0.0,
            passed=None,
            absent="left out",
            needs=needs,
        )


def _failure(error: Exception, case: Mapping[str, Any]) -> str:
    """What went wrong, with what, and where; nothing private is at stake: the tables are made up."""
    last = traceback.extract_tb(error.__traceback__)
    place = next((step for step in reversed(last) if Path(step.filename).name != "bench.py"), last[-1])
    words = str(error) if isinstance(error, Refuted) else f"{type(error).__name__}: {error}"
    tried = ", ".join(f"{name}={textwrap.shorten(repr(value), 80, placeholder=' …')}" for name, value in case.items())
    where = f"({Path(place.filename).name}:{place.lineno}: {_statement(place)})"
    return " ".join(filter(None, (f"REFUTED: {words}", tried and f"[{tried}]", where)))


def _statement(place: traceback.FrameSummary) -> str:
    """What stands there, to its end, in one line."""
    lines = range(place.lineno or 1, (place.end_lineno or place.lineno or 1) + 1)
    return " ".join(linecache.getline(place.filename, line).strip() for line in lines).strip()


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
