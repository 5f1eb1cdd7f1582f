"""What reads bytes from elsewhere, each as one function of bytes: it is taken, or refused in our own words, and nothing else.

Formats with a checksum or a canonical form would turn nearly every mutation away at the door, so an input is also sealed anew:
what is behind the door is read too. A target returns whether the input was taken; anything that breaks a promise is raised.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import hmac
import io
import json
import shlex
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import typer

from sabun.cli import build
from sabun.density.expression import Expression
from sabun.errors import InternalError, SabunError
from sabun.keyvalue import Study
from sabun.keyvalue.client import wire
from sabun.keyvalue.client.refusals import ClientError
from sabun.keyvalue.tally import Tally
from sabun.keyvalue.typed import bytes_of, pairs_of, range_of
from sabun.learning import checkpoint
from sabun.learning.card import Card
from sabun.learning.folder import load_model
from sabun.learning.training import State
from sabun.learning.typed import chosen, layers
from sabun.ledger.row import Row
from sabun.records import Column, Schema, open_source
from sabun.regression import Study as Agreement
from sabun.regression.typed import number
from sabun.release import Release
from sabun.summaries.typed import typed_bins, typed_shares, typed_where
from sabun.telling.terminal.columns import typed_bounds

__all__ = ["TARGETS", "Target"]

HERE = Path(__file__).parent
FROZEN = HERE.parent / "corpus" / "v0.1.0"
PEOPLE = Schema(columns=[Column.number("age", lower=0, upper=120), Column.category("sex", ["F", "M", "?"])])


@dataclass(frozen=True, kw_only=True)
class Target:
    """One door of the house.

    Attributes:
        taken: Reads the input; whether it was taken.
        seeds: Inputs to start from.
    """

    taken: Callable[[bytes], bool]
    seeds: Callable[[], list[bytes]] = field(repr=False)


class Broken(AssertionError):
    """A promise about input was broken."""


def hold(rule: str, kept: bool) -> None:
    """Raises unless the promise was kept."""
    if not kept:
        raise Broken(rule)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Lets errors in our own words pass; a bug of ours is none of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except InternalError:
            raise
        except (SabunError, ClientError) as error:
            hold("a refusal must say something", bool(str(error)))


def either(*readers: Callable[[], bool]) -> bool:
    """Whether one of several ways to read was taken; all are tried."""
    taken = []
    for read in readers:
        with refusals():
            taken.append(read())
    return any(taken)


def frozen(*patterns: str) -> list[bytes]:
    """Files that earlier versions wrote."""
    return [path.read_bytes() for pattern in patterns for path in sorted(FROZEN.glob(pattern))]


def lines(name: str) -> list[bytes]:
    """Seeds that are one line each."""
    return (HERE / "seeds" / name).read_bytes().splitlines()


def canonical(content: bytes) -> bytes:
    """JSON as our formats write it, where it is any."""
    try:
        return json.dumps(json.loads(content), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return content


def text(content: bytes) -> str:
    """Bytes as text, as a command line hands them over: what is no UTF-8 becomes half characters."""
    return content.decode("utf-8", "surrogateescape")


def release(content: bytes) -> bool:
    def read(given: bytes) -> bool:
        found = Release.from_json(given)
        hold("a release that is taken is written again to the byte", found.to_json() == given)
        hold("it can be shown", bool(str(found)))
        return True

    return either(lambda: read(content), lambda: read(canonical(content)))


def schema(content: bytes) -> bool:
    def read() -> bool:
        found = Schema.from_json(text(content))
        again = Schema.from_json(found.to_json())
        hold("a schema that is taken is the same when it is read again", again.hash == found.hash)
        return True

    return either(read)


def study(content: bytes) -> bool:
    def read() -> bool:
        found = Study.from_json(text(content))
        again = Study.from_json(found.to_json())
        hold("a study that is taken is the same when it is read again", again.task_id == found.task_id)
        return True

    def agreed() -> bool:
        found = Agreement.from_json(text(content))
        hold("an agreement that is taken is the same when it is read again", Agreement.from_json(found.to_json()) == found)
        return True

    return either(read, agreed)


@cache
def studies() -> list[Study]:
    """The studies of earlier versions, one for each protocol and way to choose a key."""
    return [Study.load(path) for path in sorted(FROZEN.glob("keyvalue/*/study.json"))]


def tally(content: bytes) -> bool:
    """The first byte chooses the study."""
    of = studies()[content[0] % len(studies())] if content else studies()[0]

    def read(given: bytes) -> bool:
        found = Tally.from_bytes(given, study=of, seed=None)
        hold("a tally that is taken is written again to the byte", found.to_bytes() == given)
        return True

    body = content[1:-32]
    return either(lambda: read(content[1:]), lambda: read(body + hashlib.sha256(body).digest()))


def tallies() -> list[bytes]:
    return [
        bytes([place]) + path.read_bytes()
        for place, folder in enumerate(sorted(FROZEN.glob("keyvalue/*/study.json")))
        for path in sorted(folder.parent.glob("*.tally"))
    ]


def report(content: bytes) -> bool:
    """The first byte chooses the study; a refused report leaves a tally as it was."""
    of = studies()[content[0] % len(studies())] if content else studies()[0]
    given = content[1:]
    counted = Tally(of, seed=None if of.terms.index_commitment else b"")
    before = counted.to_bytes()

    def bare() -> bool:
        found = wire.unpack(of.terms, given)
        hold("a report that is taken is written again to the byte", wire.pack(of.terms, found) == given)
        hold("its JSON form says the same", wire.from_json(of.terms, wire.to_json(of.terms, given)) == given)
        return True

    def spelled() -> bool:
        return (
            bare() if (packed := wire.from_json(of.terms, text(given))) == given else len(packed) == wire.report_size(of.terms)
        )

    def added() -> bool:
        try:
            counted.add(given)
        finally:
            changed = counted.to_bytes() != before
            hold("a tally counts what it takes and nothing else", changed == (counted.n > 0))
        return True

    taken = either(bare, spelled)
    if not either(added):
        hold("a refused report leaves the tally as it was", counted.to_bytes() == before)
    return taken


def reports() -> list[bytes]:
    found = []
    for place, (of, file) in enumerate(zip(studies(), sorted(FROZEN.glob("keyvalue/*/reports.bin")), strict=True)):
        size, content = wire.report_size(of.terms), file.read_bytes()
        found += [bytes([place]) + content[start : start + size] for start in range(0, min(len(content), 3 * size), size)]
        found += [bytes([place]) + line for line in file.with_suffix(".jsonl").read_bytes().splitlines()[:2]]
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@cache
def copied(source: str) -> Path:
    """A folder of an earlier version's files, to be spoilt."""
    place = Path(tempfile.mkdtemp()) / "copy"
    shutil.copytree(FROZEN / source, place)
    return place


def safetensors(content: bytes) -> bool:
    """The weights of a model: as they are, then with the digests in the files beside them made to fit."""
    folder, original = copied("models/schema"), (FROZEN / "models/schema/model.safetensors").read_bytes()
    told, fits = (hashlib.sha256(part).hexdigest().encode() for part in (original, content))
    (folder / "model.safetensors").write_bytes(content)

    def read(digest: bytes) -> bool:
        for name in ("card.json", "release.json"):
            (folder / name).write_bytes((FROZEN / "models/schema" / name).read_bytes().replace(told, digest))
        before = contents(folder)
        try:
            load_model(folder)
        finally:
            hold("reading a model leaves its folder as it was", contents(folder) == before)
        hold("a model whose weights were changed is refused", content == original)
        return True

    return either(lambda: read(told), lambda: read(fits))


def saved_run(content: bytes) -> bool:
    """The first byte says whether it is tagged anew with the key of the run."""
    folder = copied("runs/laplace-sgd-2")
    key = (folder / "run.secret").read_bytes()
    state = content[1:]
    if content[:1] > b"\x7f":
        body = state.partition(b"\n")[2] or state
        state = hmac.new(key, checkpoint._DOMAIN + body, hashlib.sha256).hexdigest().encode() + b"\n" + body
    (folder / "run.state").write_bytes(state)
    before = contents(folder)

    def read() -> bool:
        found = checkpoint._Saved.read(folder, _first())
        hold("its states have the shape of the run", found.now.weights.shape == _first().weights.shape)
        return True

    taken = either(read)
    hold("reading a checkpoint leaves its folder as it was", contents(folder) == before)
    return taken


@cache
def _first() -> State:
    record = json.loads((FROZEN / "runs/laplace-sgd-2/run.state").read_bytes().rpartition(b"\n")[2] or "{}")
    size = len(record["now"]["weights"]) * 3 // 4 // 8
    return State(step=0, weights=np.zeros(size), velocity=np.zeros(len(record["now"]["velocity"]) * 3 // 4 // 8))


def saved_runs() -> list[bytes]:
    return [mark + content for content in frozen("runs/*/run.state") for mark in (b"\x00", b"\xff")]


def card(content: bytes) -> bool:
    def read(given: bytes) -> bool:
        found = Card.from_json(given)
        hold("a card that is taken is written again to the byte", found.to_json() == given)
        with refusals():
            found.check(b"no such model")
        return True

    def sealed() -> bytes:
        try:
            return (json.dumps(json.loads(content), indent=2, ensure_ascii=False) + "\n").encode()
        except (ValueError, RecursionError):
            return content

    return either(lambda: read(content), lambda: read(sealed()))


def ledger_row(content: bytes) -> bool:
    def read(given: str) -> bool:
        found = Row.read(given, hashlib.sha256(given.encode("utf-8", "replace")).hexdigest(), place="a ledger")
        hold("a row that is taken is written again to the letter", found.record == given)
        return True

    return either(lambda: read(text(content)), lambda: read(canonical(content).decode("utf-8", "replace")))


def ledger_rows() -> list[bytes]:
    found: list[bytes] = []
    for packed in frozen("ledgers/*.gz"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(gzip.decompress(packed))
            file.flush()
            with contextlib.closing(sqlite3.connect(file.name)) as book:
                tables = [name for (name,) in book.execute("select name from sqlite_master where type = 'table'")]
                rows = [row for table in tables for row in book.execute(f"select * from {table}")]
        found += [cell.encode() for row in rows for cell in row if isinstance(cell, str) and cell.startswith("{")][:6]
    return found


def csv_cells(content: bytes) -> bool:
    """A whole file: refused, or one row of numbers inside the bounds for each record, whatever its cells say."""
    file = Path(tempfile.gettempdir()) / "cells.csv"
    file.write_bytes(content)

    def read() -> bool:
        for matrix in open_source(file, schema=PEOPLE).partitions():
            hold("no cell becomes anything but a number in its bounds", bool(np.isfinite(matrix).all()))
            hold("an age lies in its bounds", bool(((matrix[:, 0] >= 0) & (matrix[:, 0] <= 120)).all()))
        return True

    return either(read)


@cache
def command() -> Any:
    """The whole command line, never run."""
    return typer.main.get_command(build())


def command_line(content: bytes) -> bool:
    """What is typed is parsed down to the last option of its verb; nothing is run."""
    try:
        words = shlex.split(text(content))
    except ValueError:
        return False
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), refusals():
        try:
            at = command()
            context = at.make_context("sabun", words)
            while hasattr(at, "resolve_command"):
                words = [*context._protected_args, *context.args]
                if not words:  # `--` alone: there a command is missing, as whoever runs it is told
                    return False
                name, at, rest = at.resolve_command(context, words)
                context = at.make_context(name, rest, parent=context)
        except (typer.TyperException, typer.Exit, typer.Abort):
            return False
        return True
    return False


def typed(content: bytes) -> bool:
    """The little languages inside options."""
    said = text(content)
    first, _, second = said.partition(" ")
    ways: list[Callable[[], object]] = [
        lambda: Expression.read(said),
        lambda: typed_bounds(said),
        lambda: typed_where([said], PEOPLE),
        lambda: typed_bins(said),
        lambda: typed_shares(said) and None,  # takes any text; what a share is, is checked later
        lambda: range_of(said),
        lambda: pairs_of([said], studies()[0]),
        lambda: bytes_of(said),
        lambda: layers(said),
        lambda: chosen("dp-sgd", [said]),
        lambda: number(said, "ridge"),
        lambda: chosen(first, [second]),
    ]
    return either(*[lambda way=way: way() is not None for way in ways])


TARGETS: dict[str, Target] = {
    "release": Target(taken=release, seeds=lambda: frozen("releases/*.json")),
    "schema": Target(taken=schema, seeds=lambda: frozen("*schema.json")),
    "study": Target(taken=study, seeds=lambda: frozen("keyvalue/*/study.json", "*.study.json")),
    "tally": Target(taken=tally, seeds=tallies),
    "wire": Target(taken=report, seeds=reports),
    "safetensors": Target(taken=safetensors, seeds=lambda: frozen("models/*/model.safetensors")),
    "checkpoint": Target(taken=saved_run, seeds=saved_runs),
    "card": Target(taken=card, seeds=lambda: frozen("models/*/card.json")),
    "ledger-row": Target(taken=ledger_row, seeds=ledger_rows),
    "csv": Target(taken=csv_cells, seeds=lambda: [(HERE / "seeds" / "people.csv").read_bytes(), *lines("cells.txt")]),
    "command-line": Target(taken=command_line, seeds=lambda: lines("commands.txt")),
    "typed": Target(taken=typed, seeds=lambda: lines("typed.txt")),
}
