"""The page where a question is asked: its form, its plan as epsilon moves, and what comes of it."""

from __future__ import annotations

import copy
import hashlib
import os
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

from starlette.responses import Response

from sabun.desk.errands import Foreseen
from sabun.desk.fields import Field, as_typed, helped, lacks, misfit, offered, on_page, plainly, private_table
from sabun.desk.jobs import Job
from sabun.desk.picture import Budget, Outlook, budget_after, outlook
from sabun.desk.shelf import Item
from sabun.desk.visitor import Visitor
from sabun.errors import ParameterError, SabunError
from sabun.privacy.amounts import exact_positive
from sabun.telling.language import retold

__all__ = ["question", "sent"]

_EPSILON = "0.5"
_APART = ("ledger", "schema", "out")
_BESIDE = ("epsilon", "yes")
"""Fields that have a place of their own on the page."""


@final
@dataclass(kw_only=True)
class _Form:
    """A form as it was filled in, with the files it is about."""

    job: Job
    table: Item
    filled: Mapping[str, list[str]]
    files: dict[str, Path] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def epsilon(self) -> str:
        return (self.filled.get("epsilon") or [""])[-1].strip()

    def typed(self) -> list[str]:
        """The command line."""
        return [*self.job.words, *as_typed(self.job.fields, self.filled, self.files)]

    def words(self) -> list[str]:
        """The command line as one would type it in the folder."""
        return [
            *self.job.words,
            *as_typed(self.job.fields, self.filled, {name: file.name for name, file in self.files.items()}),
        ]

    def key(self, *, but: str = "") -> str:
        """What is asked, in short; with `but`, whatever that field says. Where a result is written is not part of it."""
        files = {name: file for name, file in self.files.items() if name != "out"}
        filled = {name: value for name, value in self.filled.items() if name != but}
        typed = as_typed(self.job.fields, filled, files)
        stamps = [(str(file), _stamp(file)) for file in files.values() if file != self.files.get("ledger")]
        return hashlib.sha256(repr((self.job.words, typed, stamps)).encode("utf-8", "replace")).hexdigest()

    def complain(self, complaint: str, error: BaseException | None) -> None:
        """Puts a complaint beside the field it is about."""
        self.wrong.setdefault(misfit(self.job.fields, complaint, error), on_page(complaint, self.job.fields, error))


def _stamp(file: Path) -> tuple[int, int]:
    """When a file was written, and how large it is; of one that is gone the command complains."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def question(visitor: Visitor) -> Response:
    """A form with its plan; a form that asks is sent off once, one that follows what is typed is passed over for a newer."""
    if visitor.field("act") != "follow":
        return _question(visitor)
    with visitor.desk.errands.turn(visitor.field("form")) as wanted:
        return _question(visitor) if wanted else Response(status_code=204)


def _question(visitor: Visitor) -> Response:
    table, errands = visitor.table(), visitor.desk.errands
    job = visitor.desk.job(visitor.named("room"), visitor.named("verb"))
    if visitor.desk.shelf.declared(table) is None:
        return visitor.to(f"tables/{table.handle}")
    form = _Form(job=job, table=table, filled=_filled(visitor, job))
    _choose_files(visitor, form)
    tried = "" if visitor.posts else visitor.request.query_params.get("tried", "")  # a form that is sent anew is tried anew
    seen = Foreseen()
    lacking, opened = _lacking(form), not (visitor.posts or tried)
    if lacking and not opened:
        form.wrong |= {one.name: lacks(one) for one in lacking}
    if not form.wrong and not lacking:
        seen = errands.foresee(form.typed(), epsilon=form.epsilon, key=form.key(but="epsilon"))
        if seen.complaint and not opened:
            form.complain(seen.complaint, seen.error)
        elif seen.complaint:  # what a form needs that was just opened is no mistake yet
            seen = Foreseen(remarks=(seen.complaint,))
    if tried and not form.wrong and (before := errands.sent(tried).hears).complaint:
        form.complain(before.complaint, before.error)
    if visitor.field("act") == "ask" and not form.wrong and "ledger" in form.files:
        name = f"{hashlib.sha256(visitor.field('form').encode('utf-8', 'replace')).hexdigest()[:16]}{form.key()[:32]}"
        about = {"filled": form.filled, "files": form.files, "table": table, "job": job, "question": _with_epsilon(seen, form)}
        errands.send(name, form.typed(), words=form.words(), ledger=form.files["ledger"], **about)
        return visitor.to(f"sent/{name}")
    return _page(visitor, form, seen)


def _page(visitor: Visitor, form: _Form, seen: Foreseen) -> Response:
    looks, budget = Outlook(), Budget()
    try:
        epsilon = exact_positive(form.epsilon or _EPSILON, name="epsilon")
        looks = outlook(seen, epsilon)
        budget = budget_after(form.files.get("ledger"), epsilon, looks.delta)
    except SabunError as error:
        form.complain(str(error), error)
    shelf, private = visitor.desk.shelf, private_table(form.job.fields)
    schema = shelf.declared(form.table)
    assert schema is not None  # a table without one was sent to be declared
    shown = [one for one in form.job.fields if one is not private and one.kind not in _APART and one.name not in _BESIDE]
    return visitor.page(
        "question.html",
        status=400 if form.wrong and visitor.posts and visitor.field("act") == "ask" else 200,
        here="tables",
        table=form.table,
        job=form.job,
        fields=form.job.fields,
        helped=partial(helped, form.job.fields),
        first=[one for one in shown if one.first and not one.of_persons],
        persons=[one for one in shown if one.of_persons],
        more=[one for one in shown if not one.first and not one.of_persons],
        filled=form.filled,
        wrong=form.wrong,
        chosen={name: file.name for name, file in form.files.items()},
        offered=partial(offered, schema=schema, names=shelf.names(form.table)),
        tables=[one for one in shelf.tables() if one != form.table],
        ledgers=shelf.ledgers(),
        form_name=secrets.token_hex(16),
        looks=looks,
        budget=budget,
        remarks=[on_page(line, form.job.fields) for line in seen.remarks],
        command=shlex.join(["sabun", *form.words()]),
        scripts=("desk.js",),
    )


def _with_epsilon(seen: Foreseen, form: _Form) -> Any:
    """The question that is asked: what was foreseen may have been with another epsilon."""
    known = getattr(seen.question, "epsilon", None)
    return seen.question if known is None else copy.copy(seen.question).set_params(epsilon=form.epsilon)


def _filled(visitor: Visitor, job: Job) -> dict[str, list[str]]:
    """What was filled in: now, by the form that was sent off before, or what is usual."""
    if visitor.posts:
        return plainly(job.fields, visitor.filled)
    if tried := visitor.request.query_params.get("tried", ""):
        return dict(visitor.desk.errands.sent(tried).about["filled"])
    return {one.name: [one.usual] for one in job.fields if one.usual} | {"epsilon": [_EPSILON]}


def _lacking(form: _Form) -> list[Field]:
    """What is left to fill in."""
    return [
        one
        for one in form.job.fields
        if one.required and one.name not in form.files and not any(map(str.strip, form.filled.get(one.name, ())))
    ]


def _choose_files(visitor: Visitor, form: _Form) -> None:
    """The files that the form names by their handles, each looked up in the folder again."""
    shelf = visitor.desk.shelf
    private = private_table(form.job.fields)
    form.files |= {private.name: form.table.path, "schema": shelf.schema_of(form.table)}
    books = shelf.ledgers()
    for one in form.job.fields:
        given = (form.filled.get(one.name) or [""])[-1]
        try:
            if one.kind == "table" and one is not private and given:
                form.files[one.name] = shelf.found(given, shelf.tables()).path
            elif one.kind == "ledger" and (given or books):
                form.files[one.name] = shelf.found(given or books[0].handle, books).path
            elif one.kind == "out" and one.required:
                name = f"{form.table.stem}-{form.job.room.name}-{form.job.verb}"
                form.files[one.name] = shelf.fresh(name, one.ending, taken=visitor.desk.errands.writing())
        except SabunError as error:
            form.wrong[one.name] = on_page(str(error), form.job.fields)


def sent(visitor: Visitor) -> Response:
    """How far a question is that was sent off; its answer, once it is there."""
    name = visitor.named("form")
    errand = visitor.desk.errands.sent(name)
    about, hears = errand.about, errand.hears
    if not errand.over:
        doing = ": ".join(map(retold, hears.doing.split(": ", 1)))
        words = shlex.join(["sabun", *errand.words])
        return visitor.page("sent.html", here="tables", doing=doing, share=hears.share, words=words, scripts=("sent.js",))
    table: Item = about["table"]
    if hears.complaint or not hears.record:
        job: Job = about["job"]
        return visitor.to(f"tables/{table.handle}/jobs/{job.room.name}/{job.verb}?tried={name}")
    shelf = visitor.desk.shelf
    ledger = next((one for one in shelf.ledgers() if one.path == about["ledger"]), None)
    if ledger is None:
        raise ParameterError(
            f"the ledger {about['ledger'].name!r} must be in the folder under that name; it is not any more. The question is "
            f"paid for, and entry {hears.record['entry']} of the ledger has its answer: give it back its name, or look there."
        )
    return visitor.to(f"ledgers/{ledger.handle}/{hears.record['entry']}?sent={name}")
