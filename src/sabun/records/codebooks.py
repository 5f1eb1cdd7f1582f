"""Columns declared in a code book that somebody else wrote: public facts, read without a look at the table.

.csv                  a line for each column: name, kind, lower, upper, labels (between |), missing, unit
.json                 a Table Schema of frictionless, or a DataFrameSchema of pandera (`to_json`)
.yaml                 the same of pandera (`to_yaml`)
.xml                  a DDI code book (version 2): variables with ranges and categories
"""

from __future__ import annotations

import csv
import datetime
import importlib
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sabun.errors import BoundsError, DataError, ParameterError
from sabun.foreign import one_line, parse_json
from sabun.records.columns import LONGEST_UNIT, Column

__all__ = ["CodeBook", "read_code_book"]

_LARGEST = 16 << 20
_BETWEEN = "|"
_NUMBERS = ("number", "integer", "year", "int", "uint", "float", "numeric", "decimal")
_DATES = ("date", "datetime")


class CodeBook(NamedTuple):
    """What a code book declares.

    Args:
        columns: Those that it says enough about.
        short: The others, with what is missing.
    """

    columns: tuple[Column, ...]
    short: dict[str, str]


class _Entry(NamedTuple):
    """One variable as a code book describes it."""

    name: str
    kind: str = ""
    lower: object = None
    upper: object = None
    labels: tuple[object, ...] = ()
    missing: object = None
    unit: object = None


def read_code_book(path: str | os.PathLike[str]) -> CodeBook:
    """The columns that a code book declares.

    Raises:
        DataError: The file is absent, too large, or none of the kinds above.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        content = file.read_bytes() if size <= _LARGEST else b""
    except OSError as error:
        raise DataError(f"a code book must be a file that can be read; {file.name!r} is not: {error.strerror}.") from None
    if size > _LARGEST:
        raise DataError(f"a code book must have at most {_LARGEST >> 20} MiB; {file.name!r} has more.")
    readers = {".csv": _of_lines, ".json": _of_json, ".yaml": _of_yaml, ".yml": _of_yaml, ".xml": _of_ddi}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise DataError(f"a code book must be a file {', '.join(sorted(readers))}; got {file.name!r}.")
    columns, short = list[Column](), dict[str, str]()
    for entry in _entries(reader, content, file.name):
        if not entry.name or entry.name in short or entry.name in {column.name for column in columns}:
            raise DataError(f"a code book must name each column once; it does not ({one_line(entry.name)!r:.60}).")
        try:
            columns.append(_column(entry))
        except (BoundsError, ParameterError, ValueError) as error:
            short[entry.name] = str(error)
    if not columns and not short:
        raise DataError(f"a code book must describe columns; {file.name!r} describes none.")
    return CodeBook(columns=tuple(columns), short=short)


def _entries(reader: Callable[[bytes], Iterator[_Entry]], content: bytes, name: str) -> list[_Entry]:
    """What a reader finds; a file that it chokes on (half a date, an unknown encoding, endless nesting) is no code book."""
    found: list[_Entry] | None = None
    try:
        found = list(reader(content))
    except DataError:
        raise
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, csv.Error):
        found = None
    if found is None:
        raise DataError(f"a code book must be a file that can be read as what its name says; {name!r} cannot.")
    return found


def _column(entry: _Entry) -> Column:
    kind = entry.kind.lower()
    if entry.labels:
        if any(isinstance(label, Mapping | list) for label in entry.labels):
            raise ParameterError("a label that is no text")
        return Column.category(entry.name, entry.labels, missing=entry.missing)
    if any(kind.startswith(word) for word in _DATES) and entry.lower is not None and entry.upper is not None:
        return Column.date(entry.name, lower=_word(entry.lower)[:10], upper=_word(entry.upper)[:10])
    if kind.startswith("bool"):
        return Column.category(entry.name, ["false", "true"])
    if entry.lower is None or entry.upper is None:
        what = "a number" if kind.startswith(_NUMBERS) else "a date" if kind.startswith(_DATES) else "a text"
        needed = "a list of labels" if what == "a text" else "a lower and an upper bound"
        raise ParameterError(f"{what} without {needed}")
    missing = None if entry.missing is None else _finite(entry.missing)
    ends = (_finite(entry.lower), _finite(entry.upper))
    return Column.number(entry.name, bounds=ends, missing=missing, unit=_unit(entry.unit))


def _unit(value: object) -> str:
    """A unit that can stand beside a number; a longer remark is none, and no reason to leave the column out."""
    words = " ".join(_word(value).split())
    return words if len(words) <= LONGEST_UNIT and words.isprintable() else ""


def _finite(value: object) -> float:
    text = _word(value)
    try:
        number = float(text)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"a bound that is no number ({one_line(text)!r:.40})")
    return number


def _word(value: object) -> str:
    """The text of a plain value. Of a list none is made: one that YAML lets hold itself many times over has no end."""
    return str(value) if isinstance(value, str | int | float | datetime.date) else "" if value is None else type(value).__name__


def _of_lines(content: bytes) -> Iterator[_Entry]:
    text = _text(content)
    sign = ";" if text.partition("\n")[0].count(";") > text.partition("\n")[0].count(",") else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=sign)
    names = [str(name).strip().lower() for name in rows.fieldnames or ()]
    if "name" not in names:
        raise DataError(
            "a code book in CSV must have a column 'name' (and kind, lower, upper, labels, missing, unit); it has none."
        )
    rows.fieldnames = names
    for row in rows:
        cells = {name: (row.get(name) or "").strip() for name in names}
        listed = tuple(label.strip() for label in cells.get("labels", "").split(_BETWEEN) if label.strip())
        ends = (cells.get("lower") or None, cells.get("upper") or None)
        yield _Entry(cells["name"], cells.get("kind", ""), *ends, listed, cells.get("missing") or None, cells.get("unit"))


def _of_json(content: bytes) -> Iterator[_Entry]:
    yield from _of_tree(parse_json(content, what="a code book", error=DataError))


def _of_yaml(content: bytes) -> Iterator[_Entry]:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise DataError("a code book in YAML needs PyYAML: pip install pyyaml; or write the schema with to_json.") from None
    try:
        tree = yaml.safe_load(_text(content))
    except yaml.YAMLError:
        tree = None
    yield from _of_tree(tree)


def _of_tree(tree: Any) -> Iterator[_Entry]:
    if isinstance(tree, Mapping) and isinstance(tree.get("fields"), list):
        return (_of_frictionless(field) for field in tree["fields"] if isinstance(field, Mapping))
    if isinstance(tree, Mapping) and isinstance(tree.get("columns"), Mapping):
        return (_of_pandera(str(name), rules) for name, rules in tree["columns"].items() if isinstance(rules, Mapping))
    if isinstance(tree, Mapping) and isinstance(tree.get("resources"), list):  # a whole package: its first table
        first = next((one for one in tree["resources"] if isinstance(one, Mapping)), {})
        return _of_tree(first.get("schema"))
    raise DataError("a code book must be a Table Schema ('fields') or a pandera schema ('columns'); it is neither.")


def _of_frictionless(field: Mapping[str, Any]) -> _Entry:
    rules = field.get("constraints")
    rules = rules if isinstance(rules, Mapping) else {}
    listed = rules.get("enum") or field.get("categories") or ()
    labels = tuple(one.get("value") if isinstance(one, Mapping) else one for one in listed) if isinstance(listed, list) else ()
    ends = (rules.get("minimum"), rules.get("maximum"))
    return _Entry(_word(field.get("name")), _word(field.get("type")), *ends, labels, unit=field.get("unit"))


_LOWER = ("greater_than_or_equal_to", "greater_than", "ge", "gt")
_UPPER = ("less_than_or_equal_to", "less_than", "le", "lt")


def _of_pandera(name: str, column: Mapping[str, Any]) -> _Entry:
    found: dict[str, Any] = {}
    for check, value in _checks(column.get("checks")):
        if check == "in_range" and isinstance(value, Mapping):
            found |= {"lower": value.get("min_value"), "upper": value.get("max_value")}
        elif check == "isin":
            listed = value.get("value", value.get("allowed_values")) if isinstance(value, Mapping) else value
            found["labels"] = tuple(listed) if isinstance(listed, list) else ()
        elif check in _LOWER or check in _UPPER:
            end = value.get("value", value.get("min_value", value.get("max_value"))) if isinstance(value, Mapping) else value
            found["lower" if check in _LOWER else "upper"] = end
    return _Entry(name, _word(column.get("dtype")), **found)


def _checks(listed: object) -> Iterator[tuple[str, Any]]:
    """Older pandera writes a mapping by the checks' names, newer ones a list with the name among the options."""
    if isinstance(listed, Mapping):
        yield from ((str(name), value) for name, value in listed.items())
    for one in listed if isinstance(listed, list) else ():
        options = one.get("options") if isinstance(one, Mapping) else None
        if isinstance(options, Mapping):
            yield _word(options.get("check_name")), {key: value for key, value in one.items() if key != "options"}


def _of_ddi(content: bytes) -> Iterator[_Entry]:
    from xml.etree import ElementTree

    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("a code book in XML must have no DOCTYPE: what it declares could swell without end. Remove it.")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError:
        raise DataError("a code book in XML must be well-formed; it is not.") from None
    for element in root.iter():
        if _bare(element.tag) == "var":
            yield _of_variable(element)


def _of_variable(element: Any) -> _Entry:
    labels, lower, upper, kind = list[object](), None, None, ""
    for part in element.iter():
        tag = _bare(part.tag)
        if tag == "range" and lower is None:
            lower, upper = part.get("min"), part.get("max")
        elif tag == "catgry" and part.get("missing", "N") != "Y":
            labels += [(one.text or "").strip() for one in part if _bare(one.tag) == "catValu" and (one.text or "").strip()]
        elif tag == "varFormat":
            kind = "number" if part.get("type") == "numeric" else str(part.get("type") or "")
    ranged = lower is not None and upper is not None
    listed = () if ranged else tuple(labels)
    return _Entry(str(element.get("name") or ""), kind, lower, upper, listed, unit=element.get("measUnit"))


def _bare(tag: object) -> str:
    return str(tag).rpartition("}")[2]


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp932", errors="replace")
