"""The same idea has the same name: the tables of CONTRIBUTING.md, held against the code."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from architecture.proofs import ROOT, SOURCE
from sabun.asking import rooms
from sabun.cli import build

ROOMS = list(rooms())
MOST_PARAMETERS = 16
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[list[str]]]:
    """The rows of the table with that first heading: the words between backquotes of each cell."""
    lines = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[re.findall(r"`([\w-]+)`", cell) for cell in line.strip("|").split("|")] for line in lines]


FILES = {name: (row[2], row[0]) for row in table("file") for name in row[0]}
OLDER_FILES = {older for row in table("file") for older in row[2]}
OLDER_NAMES = {older for row in table("idea") for older in row[2]}


def packages_of() -> dict[str, set[str]]:
    """The packages in which each file name stands."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        package, *_ = parts = file.relative_to(SOURCE).parts
        if package != "cli" and not file.stem.startswith("_") and len(parts) > 1:
            found[file.stem].add("/".join(parts[:-1]))
    return found


def test_both_tables_are_read() -> None:
    assert len(FILES) > 25
    assert {"retry_key", "n_records", "out"} <= {name for row in table("idea") for name in row[1]}
    assert {"key", "level", "mechanism"} <= OLDER_NAMES


def test_a_file_name_in_two_packages_stands_for_one_idea() -> None:
    shared = {name: places for name, places in packages_of().items() if len(places) > 1}
    assert shared
    assert {name: places for name, places in shared.items() if name not in FILES} == {}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_no_file_of_a_room_has_an_older_name(room: Any) -> None:
    assert sorted(file.name for file in room.folder.rglob("*.py") if file.stem in OLDER_FILES) == []


def public(room: Any) -> Iterator[tuple[str, Any]]:
    package = importlib.import_module(room.package)
    yield from ((name, getattr(package, name)) for name in package.__all__)


def parameters(thing: Any) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name != "self"]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_no_public_constructor_takes_too_much(room: Any) -> None:
    sizes = {
        name: len(parameters(thing))
        for name, thing in public(room)
        if inspect.isclass(thing) and not issubclass(thing, Exception)
    }
    assert {name: size for name, size in sizes.items() if size > MOST_PARAMETERS} == {}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_questions_and_plans_call_their_parameters_by_todays_names(room: Any) -> None:
    asked = [(question.__name__, question) for question in room.classes()]
    planned = [(f"{name}.plan", question.plan) for name, question in asked if hasattr(question, "plan")]
    others = [(name, thing) for name, thing in public(room) if name.startswith("plan")]
    older = {name: sorted(OLDER_NAMES & set(parameters(thing))) for name, thing in asked + planned + others}
    assert {name: found for name, found in older.items() if found} == {}


def options() -> Iterator[tuple[str, list[str]]]:
    wanted = {*(room.name for room in ROOMS), "ledger", "release", "report"}
    root = typer.main.get_command(build())
    for name, verb in root.commands.items():  # type: ignore[attr-defined]
        for inner, command in getattr(verb, "commands", {"": verb}).items():
            if name in wanted:
                yield from ((f"{name} {inner}", option.opts) for option in command.params)


def test_options_are_called_by_todays_names_first() -> None:
    older = {f"--{name.replace('_', '-')}" for name in OLDER_NAMES}
    assert [(verb, names) for verb, names in options() if names[0] in older] == []
    assert any("--key" in names[1:] for _, names in options())


def test_command_line_tests_have_one_name() -> None:
    tests = list((ROOT / "tests").rglob("test_*.py"))
    odd = re.compile(r"test_(cli|verb|.*_verb|mended.*|.*_again|.*refutation.*|second_.*)")
    assert [Path(file).name for file in tests if odd.fullmatch(file.stem)] == []
