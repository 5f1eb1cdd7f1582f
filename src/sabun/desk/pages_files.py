"""The first pages: coming in, the folder's tables, what is declared about one, what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

from starlette.responses import Response

from sabun.desk.fields import on_page
from sabun.desk.jobs import jobs
from sabun.desk.shelf import Item
from sabun.desk.visitor import Visitor
from sabun.errors import SabunError
from sabun.records import CategoryColumn, Column, FileFormat, FilePart, NumberColumn, Schema
from sabun.records.files import file_column
from sabun.records.inspection import inspect_table
from sabun.records.workbooks import is_workbook, sheets_of
from sabun.release.files import write_whole
from sabun.telling.language import phrase, said
from sabun.telling.terminal.interview import ADVICE, KINDS, NOT_PRIVATE, column_of, looked_at, typed_labels

__all__ = ["columns", "enter", "entered", "files", "front", "jobs_of"]

_ELSEWHERE = {
    "keyvalue": phrase("People's devices answer here, and no table: in a terminal, `sabun keyvalue serve` starts it.")
}

_TEXT = {"encoding": ("utf-8", "cp932", "utf-16"), "separator": (",", ";", "tab")}
_NUMBERS = {"decimal": (".", ","), "thousands": (",", ".", "space")}

_LABELS = {
    "sheet": phrase("sheet"),
    "encoding": phrase("encoding, such as cp932 for Shift-JIS"),
    "separator": phrase("between cells: a comma, ; or tab"),
    "decimal": phrase("decimal sign: a point or a comma"),
    "thousands": phrase("between thousands, if anything"),
}
_MOST_SHOWN = 5


def front(visitor: Visitor) -> Response:
    """What this is, and how to come in; there is a code for whoever can read it."""
    return visitor.page("front.html", file=str(visitor.desk.entrance.ready()), wrong=False)


def entered(visitor: Visitor) -> Response:
    """Lets somebody in who typed the code."""
    if not visitor.desk.entrance.admits(visitor.field("code").strip()):
        return visitor.page("front.html", status=403, file=str(visitor.desk.entrance.ready()), wrong=True)
    return _come_in(visitor)


def enter(visitor: Visitor) -> Response:
    """Lets a browser in that comes from the owner's file."""
    if not visitor.desk.entrance.admits(visitor.named("code")):
        return visitor.page("front.html", status=403, file=str(visitor.desk.entrance.ready()), wrong=True)
    return _come_in(visitor)


def _come_in(visitor: Visitor) -> Response:
    """A page that goes on by itself: a redirect would begin at the owner's file, and SameSite cookies stay behind then."""
    visits = visitor.desk.visits
    visit = visits.planned("desk")
    response = visitor.page("entered.html", address=visits.root(visit))
    visits.seal(response, visit, b"")
    return response


def files(visitor: Visitor) -> Response:
    """The folder's tables."""
    shelf = visitor.desk.shelf
    rows = [(item, shelf.declared(item)) for item in shelf.tables()]
    return visitor.page("files.html", here="tables", folder=str(shelf.folder), rows=rows, ledgers=shelf.ledgers())


@final
@dataclass(kw_only=True)
class _Asked:
    """What a form asks about one column, as it was typed."""

    name: str
    place: int
    kind: str = "skip"
    low: str = ""
    high: str = ""
    labels: str = ""
    missing: str = ""
    unit: str = ""
    seen: str = ""
    fits: tuple[str, ...] = field(default=(), init=False)
    wrong: str = ""

    def column(self) -> Column | None:
        """The column; None where it is skipped or cannot be, which is then told beside it."""
        try:
            ends = {"low": self.low, "high": self.high, "missing": self.missing}
            return column_of(self.name, self.kind, **ends, labels=self.labels, unit=self.unit)
        except SabunError as error:
            self.wrong = on_page(str(error))
            return None


def columns(visitor: Visitor) -> Response:
    """What everybody knows about a table's columns; rows are not read unless the owner says so."""
    shelf, table = visitor.desk.shelf, visitor.table()
    known, wrong, act = shelf.declared(table), "", visitor.field("act")
    form, asked = FileFormat() if known is None else known.file, list[_Asked]()
    try:
        form = _form(visitor) if visitor.posts else form
        part = FilePart.of(table.path).written(form)
        asked = [_asked(visitor, name, place, known) for place, name in enumerate(part.names())]
        if act == "look":
            for one in asked:
                one.seen = looked_at(file_column(part, one.name), form)
            _look_whether_they_fit(part, asked, form)
    except SabunError as error:
        wrong = on_page(str(error))
    if act == "save" and asked:
        declared = [_as_known(column, known) for one in asked if (column := one.column()) is not None]
        if not any(one.wrong for one in asked):
            if declared:
                schema = Schema(columns=tuple(_in_order(declared, known)), file=form)
                write_whole(shelf.schema_for(table), schema.to_text().encode(), overwrite=known is not None)
                return visitor.to(f"tables/{table.handle}/jobs")
            wrong = said("At least one column must be declared.")
    return visitor.page(
        "columns.html",
        status=400 if visitor.posts and (wrong or any(one.wrong for one in asked)) else 200,
        here="tables",
        table=table,
        asked=asked,
        kinds=tuple(reversed(KINDS.values())),
        labels=_LABELS,
        form=_shown(form) if not (wrong and visitor.posts) else {name: visitor.field(name) for name in form.parts},
        written=_written(table),
        title=len(asked) == 1 and is_workbook(table.path),
        wrong=wrong,
        advice=ADVICE,
        notice=NOT_PRIVATE if act == "look" else "",
        saved=shelf.schema_for(table).name,
        scripts=("desk.js",),
    )


def _look_whether_they_fit(part: FilePart, asked: list[_Asked], form: FileFormat) -> None:
    """Tells beside each declared column how many of its cells fit, and some that do not: NOT PRIVATE, as all of a look."""
    declared = [column for one in asked if (column := one.column()) is not None]
    if not declared:
        return
    found = {fit.name: fit for fit in inspect_table(part, schema=Schema(columns=tuple(declared), file=form)).columns}
    for one in asked:
        if (fit := found.get(one.name)) is None:
            continue
        one.fits = (said("{fitting} of {rows} cells fit what is declared.", fitting=f"{fit.fitting:,}", rows=f"{fit.rows:,}"),)
        if fit.strange:
            cells = ", ".join(f"{text!r:.40} ({times:,})" for text, times in fit.strange.most_common(_MOST_SHOWN))
            one.fits += (said("Not read: {cells}.", cells=cells),)
        if fit.many_empty:
            share = f"{fit.empty / fit.rows:.0%}"
            one.fits += (said("{share} are empty, and count as {missing}.", share=share, missing=fit.missing),)
        if fit.below or fit.above:
            one.fits += (said("{below} lie below the bounds, {above} above.", below=fit.below, above=fit.above),)


def _form(visitor: Visitor) -> FileFormat:
    said_ = {name: visitor.field(name) for name in FileFormat().parts}
    return FileFormat.from_dict({name: value for name, value in said_.items() if value})


def _written(table: Item) -> dict[str, tuple[str, ...]]:
    """What there is to say about how a table of its kind is written, with what is usual."""
    if is_workbook(table.path):
        return {"sheet": sheets_of(table.path), **_NUMBERS}
    return _NUMBERS if table.path.suffix == ".parquet" else _TEXT | _NUMBERS


def _shown(form: FileFormat) -> dict[str, str]:
    return {name: "tab" if value == "\t" else value for name, value in form.parts.items()}


def _asked(visitor: Visitor, name: str, place: int, known: Schema | None) -> _Asked:
    if visitor.posts:
        given = {part: visitor.field(f"{part}-{place}") for part in ("kind", "low", "high", "labels", "missing", "unit")}
        if visitor.field(f"name-{place}") == name:
            return _Asked(name=name, place=place, **{**given, "kind": given["kind"] or "skip"})
        known = None
    if known is None or name not in known.names:
        return _Asked(name=name, place=place)
    told: dict[str, Any] = known[name].to_dict()
    column = known[name]
    if isinstance(column, CategoryColumn):
        return _Asked(
            name=name, place=place, kind="category", labels=typed_labels(column.categories), missing=column.missing or ""
        )
    ends = {part: _plain(told[end]) for part, end in (("low", "lower"), ("high", "upper"), ("missing", "missing"))}
    return _Asked(name=name, place=place, kind=str(told["kind"]), **ends, unit=told.get("unit", ""))


def _as_known(column: Column, known: Schema | None) -> Column:
    """The column; as it was declared before where it only lacks what the page does not ask for (a heavy tail)."""
    before = known[column.name] if known is not None and column.name in known.names else None
    if not (isinstance(before, NumberColumn) and isinstance(column, NumberColumn)):
        return column
    return before if replace(before, log1p=False) == column else column


def _in_order(declared: list[Column], known: Schema | None) -> list[Column]:
    """The columns as the schema had them, new ones after them: in another order it is another schema, and its answers cost."""
    before = [] if known is None else list(known.names)
    return sorted(declared, key=lambda one: before.index(one.name) if one.name in before else len(before))


def _plain(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value == int(value) and abs(value) < 1e15 else str(value)


def jobs_of(visitor: Visitor) -> Response:
    """What can be asked of a table."""
    table: Item = visitor.table()
    known = visitor.desk.shelf.declared(table)
    if known is None:
        return visitor.to(f"tables/{table.handle}")
    found = [(room, own, said(_ELSEWHERE.get(room.name, ""))) for room, own in jobs(visitor.desk.command).items()]
    return visitor.page("jobs.html", here="tables", table=table, rooms=found, schema=known)
