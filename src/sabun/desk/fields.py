"""Forms of commands: each option of the command line is a field, and what was filled in becomes a command line again.

Nothing here lists options: a field is drawn from what the option itself says (its type, its metavar, its help, its default).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final
from unicodedata import normalize

from sabun.records import CategoryColumn, FilePart, NumberColumn, Schema
from sabun.telling.field_words import SPELLINGS
from sabun.telling.language import complained, language, phrase, retold, said
from sabun.telling.terminal.asked import ANY_COLUMN
from sabun.telling.terminal.options import LABEL_COLUMN, NUMBER_COLUMN

__all__ = ["Field", "as_typed", "fields_of", "helped", "lacks", "misfit", "offered", "on_page", "plainly", "private_table"]

_COLUMN, _COLUMNS, _TABLE = "COLUMN", "COLUMN,COLUMN", "TABLE"
_SETTLED = {"json", "overwrite", "encoding", "separator", "decimal", "thousands", "sheet", "owner_only", "lang", "organisation"}
"""What the desk says itself, what the schema of a table says, or what goes with a file that only the terminal can name."""
_NEEDED = ("target",)
"""What such a file would say."""
_OPTION = re.compile(r"( ?)(?<![\w'\"=-])(--[a-z]+(?:-[a-z]+)*)( ?)")
_FIRST = ("epsilon", "n_records", "yes", "bins")
"""What is asked first although a command could do without it: it decides how good the answer is, and whether there is one."""
_LABELS = {
    "n_records": phrase("About how many records there are"),
    "by": phrase("One answer for each"),
    "where": phrase("Only rows where"),
    "id": phrase("Column that tells persons apart"),
    "k": phrase("Neighbours (k)"),
    "yes": phrase("Release even if nothing but noise is expected"),
    "again": phrase("Draw anew and pay"),
    "epsilon": phrase("Privacy loss (epsilon)"),
    "public": phrase("Public table"),
    "set": phrase("Further settings"),
    "retry_key": phrase("Name for a free retry"),
    "error_bar": phrase("Share of epsilon for the intervals"),
    "confidence": phrase("How often intervals hold"),
    "resolution": phrase("How finely to look"),
    "accounting": phrase("Way of counting"),
    "processes": phrase("Processes side by side"),
    "accept_publishing_raw_records": phrase("Publish private rows as they are"),
    "allow_per_parameter": phrase("Allow a promise for each weight alone"),
    "n_public": phrase("Number of records, if public"),
    "like": phrase("A public table like it"),
    "subspace": phrase("Sets of columns"),
    "hidden": phrase("Hidden layers"),
    "relation": phrase("Between which tables it promises"),
}
_CHOICES = {
    "spelling": SPELLINGS,
    "accounting": {"shares": phrase("shares: by sums or a Rényi order"), "sums": phrase("sums: by sums alone")},
}
"""What choices are called that no method has its name from."""


@final
@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a form.

    Args:
        name: The parameter.
        option: How it is typed; empty for an argument.
        label: What people call it, in English.
        help: What the command line says about it.
        kind: text, number, lines, flag, choice, column, columns, table, ledger, schema or out.
        choices: What there is to choose from.
        usual: What is taken when nothing is filled in.
        required: Whether something must be filled in.
        ending: For what is written: how its name ends.
        taken: For a column: which ones can be meant, as its metavar says.
    """

    name: str
    option: str
    label: str
    help: str
    kind: str
    choices: tuple[str, ...] = ()
    usual: str = ""
    required: bool = False
    ending: str = field(default="", repr=False)
    taken: str = ""

    @property
    def first(self) -> bool:
        """Whether it is asked at once, and not among the further choices."""
        return self.required or self.name in _FIRST or self.kind in ("column", "columns", "table")

    @property
    def offers(self) -> list[tuple[str, str]]:
        """What there is to choose from, each with what people call it, in English."""
        return [(name, _CHOICES.get(self.name, {}).get(name, name)) for name in self.choices]

    @property
    def of_persons(self) -> bool:
        """Whether it says how several rows become one person."""
        return self.name in ("id", "rule", "spelling", "memory") or (self.name == "order" and self.kind == "column")


def fields_of(command: Any) -> list[Field]:
    """The fields of a command, in its own order; what the desk settles itself is left out."""
    made = [_field(option) for option in command.params if option.name not in _SETTLED]
    return [one for one in made if one is not None]


def offered(one: Field, *, schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a field can mean: of the table, of the schema, or those of it that hold what is wanted."""
    if one.taken == ANY_COLUMN:
        return tuple(names)
    kind = {LABEL_COLUMN: CategoryColumn, NUMBER_COLUMN: NumberColumn}.get(one.taken)
    return tuple(column.name for column in schema.columns if kind is None or isinstance(column, kind))


def private_table(fields: Sequence[Field]) -> Field:
    """The field for the private table: the first one for a table."""
    return next(one for one in fields if one.kind == "table")


def _field(option: Any) -> Field | None:
    kind = _kind(option)
    if kind is None:
        return None
    typed = option.opts[0] if option.param_type_name == "option" else ""
    metavar, usual = option.metavar or "", option.default
    return Field(
        name=option.name,
        option=typed,
        label=_label(option, typed.lstrip("-").replace("-", "_") or option.name),
        help=option.help or "",
        kind=kind,
        choices=tuple(metavar.split("|")) if kind == "choice" else (),
        usual="" if usual is None or isinstance(usual, bool) else str(usual),
        required=bool(option.required) or option.name in _NEEDED,
        ending={"FOLDER": "", "": ".json"}.get(metavar, Path(metavar).suffix),
        taken=metavar if kind in ("column", "columns") else "",
    )


def _label(option: Any, name: str) -> str:
    if option.metavar == ANY_COLUMN and name == "order":  # a ledger has another order
        return phrase("Column that says what is first and last")
    return _LABELS.get(name, str(option.name).replace("_", " ").capitalize())


def _kind(option: Any) -> str | None:
    """What an option takes; None for files that only the terminal can name."""
    taken, metavar = option.type_descriptor.annotation, option.metavar or ""
    if option.name in ("schema", "ledger", "out"):
        return str(option.name)
    if metavar == _TABLE:
        return "table"
    if "Path" in str(taken) or "FilePart" in str(taken):
        return None
    if getattr(option, "is_flag", False):
        return "flag"
    if option.multiple:
        return "lines"
    if metavar in (_COLUMN, _COLUMNS, ANY_COLUMN, LABEL_COLUMN, NUMBER_COLUMN):
        return "columns" if metavar == _COLUMNS else "column"
    if "|" in metavar:
        return "choice"
    return "number" if taken in (int, float) or option.name in ("epsilon", "delta") else "text"


def as_typed(
    fields: Sequence[Field], filled: Mapping[str, Sequence[str]], files: Mapping[str, FilePart | Path | str]
) -> list[str]:
    """The options of a command line: what was filled in, and files by the names of their options."""
    typed: list[str] = []
    for one in fields:
        if one.name in files:
            typed += _option(one, str(files[one.name]))
            continue
        given = [text.strip() for text in filled.get(one.name, ()) if text.strip()]
        if not given or one.kind in ("table", "ledger", "schema", "out"):
            continue
        if one.kind == "flag":
            typed.append(one.option)
        elif one.kind == "lines":
            lines = [line.strip() for text in given for line in text.splitlines()]
            typed += [part for line in lines if line for part in _option(one, line)]
        elif one.kind == "columns":
            typed += _option(one, ",".join(given))
        elif given[0] != one.usual:
            typed += _option(one, given[0])
    return typed


def plainly(fields: Sequence[Field], filled: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What was filled in, with plain digits for wide ones in numbers: an input method writes ８ where 8 is meant, ＝ for =."""
    plain: dict[str, Callable[[str], str]] = {"number": partial(normalize, "NFKC"), "lines": _with_equals_signs}
    kinds = {one.name: plain[one.kind] for one in fields if one.kind in plain}
    return {name: [kinds.get(name, str)(one) for one in given] for name, given in filled.items()}


def _with_equals_signs(text: str) -> str:
    return "\n".join(line if "=" in line else line.replace("＝", "=", 1) for line in text.splitlines())


def _option(one: Field, value: str) -> list[str]:
    """A value that begins with a hyphen must not be taken for an option."""
    if not one.option:
        return [f"./{value}" if value.startswith("-") else value]
    return [f"{one.option}={value}"] if value.startswith("-") else [one.option, value]


def misfit(fields: Sequence[Field], complaint: str, error: BaseException | None) -> str:
    """The field that a complaint is about; empty where it is about none, or about several."""
    if (option := getattr(error, "param", None)) is not None:
        return str(option.name)
    word = complaint.partition(" ")[0].strip("-'\"`.,;:").replace("-", "_")
    names = {one.name: one.name for one in fields} | {one.option.strip("-").replace("-", "_"): one.name for one in fields}
    return names.get(word, "")


def on_page(complaint: str, fields: Sequence[Field] = (), error: BaseException | None = None) -> str:
    """A complaint as whoever fills in a form can read it: in their language, with names of fields and not of options."""
    text = complaint.partition(" See: sabun ")[0]
    if (option := getattr(error, "param", None)) is not None:
        field = next(one for one in fields if one.name == option.name)
        return (
            lacks(field)
            if text.startswith("Missing")
            else said("“{name}” must be a number such as 3 or 0.5.", name=retold(field.label))
        )
    about = {word: one.option for one in fields if one.option for word in (one.name, one.option.strip("-").replace("-", "_"))}
    first, must, rest = text.partition(" must ")
    return _in_fields(complained(about.get(first.replace("-", "_"), first) + must + rest), fields)


def lacks(one: Field) -> str:
    """What is said about a field that was left empty."""
    return said("“{name}” must be filled in.", name=retold(one.label))


def helped(fields: Sequence[Field], one: Field) -> str:
    """What the command line says about a field, for whoever fills it in."""
    return _in_fields(retold(one.help), fields)


def _in_fields(text: str, fields: Sequence[Field]) -> str:
    """A text with the names of fields in the place of options."""
    labels = {one.option: one.label for one in fields if one.option}
    return _OPTION.sub(lambda found: _named(labels, *found.groups()), text)


def _named(labels: Mapping[str, str], before: str, option: str, after: str) -> str:
    """The name of a field in quotation marks, in the place of its option; Japanese has no blanks around them."""
    if option not in labels:
        return before + option + after
    quoted = said("“{name}”", name=retold(labels[option]))
    return before + quoted + after if language() == "en" else quoted
