"""What a command foretells before it charges: its plan is shown, one that foretells noise needs a yes, --json carries it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import typer

from sabun import checks
from sabun.errors import ParameterError, VacuousPlan
from sabun.privacy.amounts import exact, plain
from sabun.telling.floor import FEW, Floor
from sabun.telling.terminal.output import hearing, remark

__all__ = ["Guess", "at_least_one", "foretell", "plan_of", "shown_plan"]


def at_least_one(n_records: int | None) -> int | None:
    """The guess, where a plan can be made for it.

    Raises:
        ParameterError: It is less than one record.
    """
    if n_records is not None:
        checks.whole(minimum=1, n_records=n_records)
    return n_records


Guess: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--n-records",
        "--records",
        "--rows",
        callback=at_least_one,
        help="A public guess of the number of records, for the plan alone; where that number is public, it is read.",
    ),
]

_DOUBLINGS = 12
"""How often epsilon or the number of records is doubled in search of a plan that foretells more than noise."""

_UNKNOWN = (
    "No plan: the number of records is private here, and nobody guessed it. Pass --n-records with a public guess to see one."
)

_NOISE = "even at best nothing but noise is expected"


def foretell(question: Any, *, n_records: int | None, yes: bool, json: bool, told: str = "", **public: Any) -> dict[str, Any]:
    """Shows a question's plan before anything is charged, and refuses a vacuous one.

    Args:
        question: What will be fitted; `question.plan(n_records=…, **public)` touches no private record. A plan
            that is vacuous for another reason than its forecast shows has that reason as `because`.
        n_records: A public number of records: the true one only where that is public; None where nobody told one.
        yes: Whether noise is wanted all the same.
        json: Whether the plan is told with the answer, and not before.
        told: Why there is no plan, where there is none for another reason.
        public: What else a plan of that room takes.

    Returns:
        What `--json` adds to the answer: the plan; or None, with the reason as `no_plan`, and where more than `FEW` records are
        needed for more than noise, from how many on, as `vacuous_below`.

    Raises:
        VacuousPlan: The plan is vacuous, or would be for all but large tables, and nobody said yes; nothing is charged.
    """
    hears = hearing()
    if hears is not None and hears.plan_only:
        hears.foretold = (question, None if told else n_records, public)
    if n_records is None or told:
        floor = None if told else _floor(question, public)
        reason = told or (_UNKNOWN if floor is None else f"{_UNKNOWN} {floor}")
        if not json:
            remark(reason)
        if hears is not None and hears.plan_only:
            raise typer.Exit
        facts = {"plan": None, "no_plan": reason} | ({} if floor is None else {"vacuous_below": floor.records})
        if floor is not None and not yes:
            raise VacuousPlan(_without_guess(floor), facts)
        return facts
    if hears is not None and hears.plan_only:
        raise typer.Exit
    plan = plan_of(question, n_records=n_records, public=public)
    if not json:  # beside the answer, not in it
        remark(shown_plan(plan))
    if getattr(plan, "vacuous", False) and not yes:
        raise VacuousPlan(_refusal(question, plan, max(n_records, 1), public), {"plan": plan.to_dict()})
    return {"plan": plan.to_dict()}


def plan_of(question: Any, *, n_records: int, public: dict[str, Any], epsilon: Fraction | None = None) -> Any:
    """The plan of a question for so many records, or of the same question with another epsilon."""
    return (question if epsilon is None else _with(question, epsilon)).plan(n_records=max(n_records, 1), **public)


def shown_plan(plan: Any) -> str:
    """A plan in a few lines: its forecasts, what they assume, its remarks; a plan without forecasts as it is."""
    forecasts = tuple(getattr(plan, "forecasts", ()))
    if not forecasts:
        return f"Plan. {plan}"
    lines = []
    for one in forecasts:
        assumed = f" (if {'; '.join(one.assumed)})" if one.assumed else ""
        lines.append(f"Plan: {one}{assumed}.")
    return "\n".join([*lines, *getattr(plan, "remarks", ())])


def _floor(question: Any, public: dict[str, Any]) -> Floor | None:
    """From how many records on a plan is not vacuous; None where `FEW` are enough, and with fewer nobody should ask."""
    try:
        few = getattr(plan_of(question, n_records=FEW, public=public), "vacuous", False)
    except ParameterError:  # a question that takes more records than that: fitting says so
        few = False
    if not few:
        return None
    return Floor.of(lambda n_records: _vacuous(question, n_records, public), least=FEW)


def _without_guess(floor: Floor) -> str:
    return (
        f"n_records must be guessed where {floor.fewer} would give nothing but noise; got none. Nothing was released, nothing "
        "was charged. Pass a public guess, or a larger epsilon, or --yes to release anyway."
    )


def _refusal(question: Any, plan: Any, n_records: int, public: dict[str, Any]) -> str:
    epsilon, expected = getattr(question, "epsilon", None), tuple(getattr(plan, "forecasts", ()))
    ways, enough = [], None
    if epsilon is None:  # it stands in terms that others agreed on
        got = f"the number of records must be larger to tell anything; got {n_records}"
    else:
        amount = Fraction(exact(epsilon))
        got = f"epsilon must be larger to tell anything about {n_records} records; got {plain(amount)}"
        enough = _first(lambda times: _vacuous(_with(question, amount * times), n_records, public))
    if epsilon is not None and enough is not None:
        ways.append(f"--epsilon {plain(amount * enough)}")
    more = _first(lambda times: _vacuous(question, n_records * times, public))
    if more is not None:
        ways.append(f"{n_records * more} records")
    seen = getattr(plan, "because", "") or (f"even at best, {expected[0]}" if expected else _NOISE)
    way = f"From {' or '.join(ways)} on it is no longer refused; a good answer takes more. " if ways else ""
    return f"{got}: {seen}. Nothing was released, nothing was charged. {way}Pass --yes to release anyway."


def _with(question: Any, epsilon: Fraction) -> Any:
    return copy.copy(question).set_params(epsilon=epsilon)


def _vacuous(question: Any, n_records: int, public: dict[str, Any]) -> bool:
    try:
        return bool(plan_of(question, n_records=n_records, public=public).vacuous)
    except ParameterError:  # an amount, or a number, that this question does not take
        return True


def _first(vacuous: Callable[[int], bool]) -> int | None:
    """The least power of two for which a plan is not vacuous; None where none of some is."""
    low, high = 0, _DOUBLINGS
    if vacuous(1 << high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if vacuous(1 << middle) else (low, middle)
    return 1 << high
