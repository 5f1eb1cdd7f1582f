"""The same question elsewhere: as a command, and as Python."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from sabun.desk.errands import Errand
from sabun.desk.jobs import Job
from sabun.desk.shelf import Shelf
from sabun.errors import ParameterError, SabunError
from sabun.ledger import Ledger
from sabun.records import Column, FileFormat, Schema
from sabun.records.workbooks import is_workbook

__all__ = ["command_of", "python_of"]


def command_of(errand: Errand, shelf: Shelf) -> str:
    """What to type in a terminal to ask the same: the ledger gives the kept answer, for nothing.

    What the desk wrote is there already, so the command writes under another name.
    """
    words, out = errand.words, errand.about["files"].get("out")
    if out is not None:
        fresh = shelf.fresh(out.name.removesuffix(out.suffix), out.suffix).name
        words = [word.removesuffix(out.name) + fresh if word in (out.name, f"--out={out.name}") else word for word in words]
    return f"cd {shlex.quote(str(shelf.folder))}\n{shlex.join(['sabun', *words])}"


class _Unwritable(Exception):
    """Something that no line of Python stands for."""


@final
@dataclasses.dataclass(kw_only=True)
class _Script:
    """A script that is being written."""

    known: Schema
    imports: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def value(self, value: Any) -> str:
        """A parameter as an expression.

        Raises:
            _Unwritable: There is none.
        """
        if isinstance(value, Ledger):
            return "ledger"
        if isinstance(value, Schema):
            return self._schema(value)
        if isinstance(value, Column):
            if value.name in self.known.names and self.known[value.name] == value:
                return f"schema[{value.name!r}]"
            raise _Unwritable
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kind = type(value)
            self.imports.add((kind.__module__, kind.__name__))
            return (
                f"{kind.__name__}({self.arguments(value, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})})"
            )
        try:
            ast.literal_eval(repr(value))
        except (ValueError, SyntaxError):
            raise _Unwritable from None
        return repr(value)

    def arguments(self, thing: Any, values: Mapping[str, Any]) -> str:
        """The parameters of a thing that are not what they are usually."""
        usual = {name: one.default for name, one in inspect.signature(type(thing)).parameters.items()}
        told = [(name, value) for name, value in values.items() if name in usual and not _equal(value, usual[name])]
        return ", ".join(f"{name}={self.value(value)}" for name, value in told)

    def _schema(self, schema: Schema) -> str:
        if schema == self.known:
            return "schema"
        try:
            chosen = self.known.select(schema.names)
        except ParameterError:
            raise _Unwritable from None
        if chosen != schema:
            raise _Unwritable
        return f"schema.select({list(schema.names)!r})"


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except (TypeError, ValueError):
        return False


def python_of(errand: Errand, schema: Path) -> str:
    """The same in Python; empty where a setting cannot be written down, or the schema is gone."""
    about, question = errand.about, errand.about["question"]
    if question is None:
        return ""
    job: Job = about["job"]
    filled, table = about["filled"], about["table"].name
    try:
        script = _Script(known=Schema.load(schema))
    except SabunError:  # it was moved since; the answer is there all the same
        return ""
    script.imports |= {(job.room.package, type(question).__name__), ("sabun", "Ledger"), ("sabun", "Schema")}
    try:
        asked = f"{type(question).__name__}({script.arguments(question, question.get_params(deep=False))})"
    except _Unwritable:
        return ""
    lines, given = _fitted(script, question, table, about)
    remark = _last(filled, "purpose")
    named = "" if _last(filled, "again") else f", table={_last(filled, 'label') or table!r}"
    imports = [f"from {module} import {name}" for module, name in sorted(script.imports)]
    return "\n".join(
        [
            *(line for line in lines if line.startswith("import ")),
            *imports,
            "",
            f"schema = Schema.load({schema.name!r})",
            f"ledger = Ledger.open({about['ledger'].name!r}{named}{f', remark={remark!r}' if remark else ''})",
            *(line for line in lines if not line.startswith("import ")),
            f"question = {asked}",
            f"question.fit({given})",
            "release = question.release_",
        ]
    )


def _last(filled: Mapping[str, list[str]], name: str) -> str:
    return (filled.get(name) or [""])[-1].strip()


def _fitted(script: _Script, question: Any, table: str, about: Mapping[str, Any]) -> tuple[list[str], str]:
    """What `fit` is given, and the lines before it: rooms differ in whether they take one table, two, or a table and labels."""
    filled, taken = about["filled"], inspect.signature(question.fit).parameters
    people = _persons(script, table, filled)
    if "public" in taken:
        return [], f"private={people or repr(table)}, public={about['files']['public'].name!r}"
    if "y" in taken and taken["y"].default is inspect.Parameter.empty:
        target = _last(filled, "target")
        if people:
            return [], f"{people}, {target!r}"
        names = list(question.schema.names)
        return ["import pandas as pd", f"rows = {_read(table, script.known.file)}"], f"rows[{names!r}], rows[{target!r}]"
    return [], people or repr(table)


def _persons(script: _Script, table: str, filled: Mapping[str, list[str]]) -> str:
    """The table with several rows per person; empty where nobody says how to tell them apart."""
    if not (id := _last(filled, "id")):
        return ""
    script.imports.add(("sabun.records", "persons"))
    rules = dict(line.strip().rpartition("=")[::2] for line in _last(filled, "rule").splitlines() if line.strip())
    told = {"id": id, "rules": rules} | {name: _last(filled, name) for name in ("order", "spelling")}
    return f"persons({table!r}, {', '.join(f'{name}={value!r}' for name, value in told.items() if value)})"


def _read(table: str, form: FileFormat) -> str:
    """A table in pandas; text stays text, for the schema says how its numbers are written."""
    if is_workbook(Path(table)):
        sheet = f", sheet_name={form.sheet!r}" if form.sheet else ""
        return f'pd.read_excel({table!r}{sheet}, engine="calamine")'
    if Path(table).suffix == ".parquet":
        return f"pd.read_parquet({table!r})"
    usual = FileFormat()
    told = {"encoding": (form.encoding, usual.encoding), "sep": (form.separator, usual.separator)}
    said = "".join(f", {name}={value!r}" for name, (value, other) in told.items() if value != other)
    return f"pd.read_csv({table!r}, dtype=str, keep_default_na=False{said})"
