"""What is printed or logged by accident: nothing that may hold cells of a table, sums of it or a secret."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

HALL = ("records", "engine", "ledger", "release", "privacy", "asking")
ROOMS = ("summaries", "outliers", "density", "regression", "keyvalue", "learning")
WHERE_ROWS_GO = ("records", "engine")
MAY_HOLD_ROWS = re.compile(r"\b(Any|bytes|Floats|NDArray|Keys|Counter|State|Table|Callable)\b")
SAID_TO_BE_SECRET = re.compile(r"(?<!NOT )PRIVATE|never (be )?shown")
PUBLIC = {
    ("Chunks", "pieces"): "a function that makes the stream",
    ("ByPerson", "statistic"): "a recipe",
    ("Part", "statistic"): "a recipe",
    ("Part", "names"): "random",
    ("Dask", "cluster"): "who counts",
    ("Spark", "session"): "who counts",
}


def _classes(parts: Iterable[str]) -> Iterator[type[Any]]:
    for part in parts:
        package = importlib.import_module(f"sabun.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"sabun.{part}."):
            module = importlib.import_module(found.name)
            yield from (one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == found.name)


def _fields(kind: type[Any]) -> dict[str, str]:
    """The fields of a record with their declared types."""
    if dataclasses.is_dataclass(kind):
        return {field.name: str(field.type) for field in dataclasses.fields(kind)}
    return {name: str(kind.__annotations__[name]) for name in getattr(kind, "_fields", ())}


def _first(kind: type[Any]) -> str:
    """What its documentation begins with; nothing where a dataclass made it up."""
    told = kind.__doc__ or ""
    return "" if told.startswith(f"{kind.__name__}(") else told.partition("\n\n")[0]


RECORDS = [kind for kind in _classes(HALL) if _fields(kind) and not inspect.isabstract(kind)]
PRIVATE = [kind for kind in _classes(ROOMS) if _fields(kind) and re.search(r"(?<!NOT )PRIVATE", _first(kind))]


class Mark(str):
    """Stands in a field, and can be found again in whatever is printed."""

    __slots__ = ()


def _shown(kind: type[Any]) -> set[str]:
    """The fields whose content stands in what is printed of a record, past every check of its class."""
    marks = {name: Mark(f"«{name}»") for name in _fields(kind)}
    if issubclass(kind, tuple):
        made = kind(**marks)
    else:
        made = object.__new__(kind)
        for name, mark in marks.items():
            object.__setattr__(made, name, mark)
    return {name for name, mark in marks.items() if mark in repr(made)}


def _secret(kind: type[Any]) -> set[str]:
    """The fields that are said to be secret, or may hold rows where rows go."""
    told = {
        name for name in _fields(kind) if re.search(rf"^ +{name}: .*({SAID_TO_BE_SECRET.pattern})", kind.__doc__ or "", re.M)
    }
    rows = kind.__module__.startswith(tuple(f"sabun.{part}." for part in WHERE_ROWS_GO))
    held = {name for name, declared in _fields(kind).items() if rows and MAY_HOLD_ROWS.search(declared)}
    return {name for name in told | held if (kind.__name__, name) not in PUBLIC}


@pytest.mark.parametrize("kind", [kind for kind in RECORDS if _secret(kind)], ids=lambda kind: kind.__name__)
def test_a_record_that_holds_rows_sums_or_a_secret_shows_none_of_them(kind: type[Any]) -> None:
    assert _shown(kind) & _secret(kind) == set()


@pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_a_record_that_calls_itself_private_shows_nothing(kind: type[Any]) -> None:
    assert _shown(kind) == set()


def test_records_are_found_with_what_they_show() -> None:
    found = {kind.__name__: _secret(kind) for kind in RECORDS}
    wanted = {"Persons": {"table"}, "DatabaseTable": {"url"}, "Address": {"secrets"}, "Met": {"rows"}, "Part": {"state"}}
    assert {name: found[name] for name in wanted} == wanted
    assert {name for name, _ in PUBLIC} <= set(found), "mend the list of what is public"
