"""Every way to alter one field of a record: another number, another word, something more, something less."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

__all__ = ["Altered", "altered"]


@final
@dataclass(frozen=True)
class Altered:
    """A record with one field changed, and the way to that field."""

    record: Any
    way: str


def altered(record: Any) -> Iterator[Altered]:
    """Each plain field of a JSON record changed, each field left out, and one that is not there added."""
    for path in _paths(record):
        for value in _others(_at(record, path)):
            yield Altered(_with(record, path, value), "".join(f"[{step!r}]" for step in path))
    if isinstance(record, dict):
        for name in record:
            yield Altered({key: value for key, value in record.items() if key != name}, f" without {name!r}")
        yield Altered(record | {"more": 1}, " with more")


def _paths(record: Any) -> Iterator[tuple[Any, ...]]:
    inner = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else None
    if inner is None:
        yield ()
        return
    for name, part in inner:
        yield from ((name, *rest) for rest in _paths(part))


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, bool) or value is None:
        yield {True: False, False: True, None: "x"}[value]
    elif isinstance(value, int | float):
        yield value + 1
    elif isinstance(value, str) and value.replace("/", "").isdigit():
        yield f"1{value}"
    else:
        yield f"{value}x"
        yield ("0" if value[:1] != "0" else "1") + value[1:]


def _at(record: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        record = record[step]
    return record


def _with(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(record)
    _at(changed, path[:-1])[path[-1]] = value
    return changed
