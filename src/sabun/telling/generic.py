"""The page of any release, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from sabun.privacy import Guarantee
from sabun.release import Release
from sabun.telling.charts import bars, histogram
from sabun.telling.field_words import term
from sabun.telling.language import retold, said
from sabun.telling.measures import PLAIN, Measure
from sabun.telling.reading import Unfit, has, number_at, pair_at
from sabun.telling.rounding import rounded
from sabun.telling.story import Answer, Chart, Grid, Story
from sabun.telling.words import count, number, shown

__all__ = ["leaves", "level_of", "of_persons", "results", "spread", "stages", "story", "vacuous", "wide"]

_MOST_CHARTS = 4
_MOST_ROWS = 200
_FEW = 40
_NEARLY_ALL = 0.9
_FEW_THINGS = 10
_ENDS = ("interval", "intervals")
_NONE: Mapping[str, Measure] = MappingProxyType({})


def story(release: Release) -> Story:
    """What can be said without knowing the kind."""
    return Story(
        title=_sentence(release.provenance.kind),
        answer=_answer(release),
        stages=stages(release, ()),
        charts=tuple(_charts(release)),
        grids=(results(release),),
        cautions=_cautions(release),
    )


def vacuous(low: float, high: float, most: float) -> bool:
    """Whether an interval holds nearly everything that is possible anyway."""
    return most > 0 and high - low >= _NEARLY_ALL * most


def wide(found: float, low: float, high: float) -> tuple[str, ...]:
    """What a reader must know of an interval that is wider than the answer itself."""
    if high - low > max(abs(found), _FEW_THINGS):
        return (said("The interval is wider than the answer: read it as “between these two numbers” and no more."),)
    return ()


def stages(release: Release, own: tuple[str, ...]) -> tuple[str, ...]:
    """How any release is made, with the steps of its own kind in their place."""
    origin = release.provenance
    steps = [
        said(
            "The public choices under “Where it comes from” were made; none may have been made by looking at the private data."
        )
    ]
    if origin.schema_hash is not None:
        steps.append(
            said("The rows were read through a public schema: each value is one the schema allows, whatever the file held.")
        )
    if together := of_persons(release):
        steps.append(together)
    if origin.receipt is not None:
        steps.append(
            said(
                "The file says that its cost was written to the ledger “{ledger}” as entry {entry}; only then was noise drawn.",
                ledger=origin.receipt.ledger_name,
                entry=origin.receipt.entry,
            )
        )
    steps += own or (said("The result was drawn with the mechanism “{mechanism}”.", mechanism=origin.mechanism),)
    steps.append(said("The result was frozen together with its guarantee and its origin."))
    if release.signature is not None:
        steps.append(said("The whole file was signed."))
    return tuple(steps)


def of_persons(release: Release) -> str:
    """How the rows of a person became one; empty where each had one row anyway."""
    persons = release.provenance.parameters.get("persons")
    rules = persons.get("rules") if isinstance(persons, Mapping) else None
    if not isinstance(rules, Mapping):
        return ""
    named = said(", ").join(f"{name}: {retold(str(rule))}" for name, rule in list(rules.items())[:_FEW])
    if not named:
        return said(
            "All rows of one person were made into one first: the mean of numbers, the most frequent label; of equally "
            "frequent ones the one declared first."
        )
    return said(
        "All rows of one person were made into one first ({rules}); else the mean of numbers, the most frequent label; of "
        "equally frequent ones the one declared first.",
        rules=named,
    )


def promised(release: Release) -> Guarantee:
    """Its guarantee; where persons were made of rows and nobody named the unit, it speaks of persons."""
    stated = release.guarantee
    unnamed = stated.unit == "record" and bool(of_persons(release))
    return replace(stated, unit="person") if unnamed else stated


def results(
    release: Release,
    *,
    short: bool = False,
    measures: Mapping[str, Measure] = _NONE,
    named: Callable[[str], str] = term,
) -> Grid:
    """All results by name, long ones in a few words; or the short ones only.

    Args:
        release: Whose.
        short: Whether single numbers are wanted only.
        measures: What the numbers in some of the results count, by their first names.
        named: What stands for a dotted name.
    """
    found = [(name, leaf) for name, leaf in leaves(release.value) if not short or isinstance(leaf, int | float | Fraction)]
    rows = tuple(
        (shown(named(name)), shown(_counted(leaf, measures.get(first := name.partition(".")[0], PLAIN), ends=first in _ENDS)))
        for name, leaf in found[:_MOST_ROWS]
    )
    more = len(found) - _MOST_ROWS
    note = said("{more} in the release file.", more=count(more, "more result")) if more > 0 else ""
    title = said("Other results") if short else said("All results")
    return Grid(title=title, columns=(said("name"), said("result")), rows=rows, note=note)


def _counted(leaf: Any, measure: Measure, *, ends: bool) -> Any:
    """The numbers of a result with their unit, or as dates; an interval as everywhere on the page, rounded outwards."""
    if ends and isinstance(leaf, tuple) and len(leaf) == 2 and all(isinstance(end, int | float) for end in leaf):
        low, high = measure.ends(*leaf)
        return said("{low} to {high}", low=low, high=high)
    if isinstance(leaf, tuple):
        return tuple(_counted(one, measure, ends=ends) for one in leaf)
    if measure == PLAIN or isinstance(leaf, bool) or not isinstance(leaf, int | float):
        return leaf
    return measure.exactly(leaf)


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in nested mappings, under dotted names."""
    for name, branch in tree.items():
        if isinstance(branch, Mapping) and branch:
            yield from leaves(branch, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", branch


def spread(centre: float, low: float, high: float, *, level: str, measure: Measure = PLAIN) -> str:
    """An interval as "± half" when it is centred, otherwise as its ends, with its confidence where that is known."""
    left, right = centre - low, high - centre
    sure = f" ({level})" if level else ""
    if left > 0 and right > 0 and abs(left - right) <= 0.02 * (left + right):
        return f"± {measure.off(max(left, right))}{sure}"
    least, most = measure.ends(low, high)
    return said("between {low} and {high}{sure}", low=least, high=most, sure=sure)


def level_of(facts: Mapping[str, Any]) -> str:
    """The confidence of the intervals in per cent; empty where the release does not say it."""
    return f"{number(100 * number_at(facts, 'confidence'))} %" if has(facts, "confidence") else ""


def _headline(release: Release) -> str | None:
    """The name of the number that is most likely the answer."""
    scalars = [name for name, leaf in release.value.items() if isinstance(leaf, int | float) and not isinstance(leaf, bool)]
    return next((known for known in ("count", "mean", "total", "value") if known in scalars), scalars[0] if scalars else None)


def _cautions(release: Release) -> tuple[str, ...]:
    name = _headline(release)
    try:
        return () if name is None else wide(number_at(release.value, name), *pair_at(release.value, "interval"))
    except Unfit:
        return ()


def _answer(release: Release) -> Answer:
    name = _headline(release)
    if name is None:
        return Answer(big=count(len(release.value), "result"), sentence=said("They are in the table below."))
    value, told, around = number_at(release.value, name), number(release.value[name]), ""
    try:
        low, high = pair_at(release.value, "interval")
        told, around = rounded(value, low, high), spread(value, low, high, level=level_of(release.provenance.parameters))
    except Unfit:
        pass
    others = len(release.value) - 1 - bool(around)
    return Answer(
        big=told,
        spread=around,
        sentence=_named(name, others),
    )


def _named(name: str, others: int) -> str:
    more = count(others, "other result")
    return said("This is “{name}”; {more} in the table below.", name=term(name), more=more) if others else ""


def _charts(release: Release) -> Iterator[Chart]:
    made = 0
    for name, leaf in leaves(release.value):
        if name == "interval":  # it stands beside the answer
            continue
        if made == _MOST_CHARTS:
            return
        chart = _chart(name, _line(leaf))
        if chart is not None:
            made += 1
            yield chart


def _line(leaf: object) -> np.ndarray[Any, Any] | None:
    """The numbers of an array or list, flattened."""
    if isinstance(leaf, np.ndarray) and leaf.size > 1:
        return leaf.astype(np.float64).ravel()
    if isinstance(leaf, tuple) and len(leaf) > 1 and all(isinstance(x, int | float) and not isinstance(x, bool) for x in leaf):
        return np.array(leaf, dtype=np.float64)
    return None


def _chart(name: str, values: np.ndarray[Any, Any] | None) -> Chart | None:
    if values is None:
        return None
    if len(values) <= _FEW:
        return bars(
            [str(place + 1) for place in range(len(values))],
            values,
            title=term(name),
            axis=said("value"),
            heading=said("place"),
        )
    return histogram(values, title=term(name), axis=said("value"))


def _sentence(kind: str) -> str:
    words = kind.replace(".", ": ").replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]
