"""Whether what an item of a paper names is there."""

from __future__ import annotations

import ast
import functools
import importlib
import shlex
from pathlib import Path
from typing import Any

import typer

from sabun.cli import build
from sabun.telling.reproduction import MADE

ROOT = Path(__file__).resolve().parents[2]


def lost_place(place: str) -> str:
    """What is wrong with a place; empty where it is there. Tables and figures are held against the run of their room."""
    if place.startswith(MADE):
        return ""
    if place.startswith("sabun "):
        return _lost_command(shlex.split(place)[1:])
    return "" if _importable(place) else "no such name"


def lost_test(test: str) -> str:
    """What is wrong with the name of a test; empty where pytest would find it."""
    file, *names = test.partition("[")[0].split("::")
    if not (ROOT / file).is_file():
        return "no such file"
    if not names:  # the whole file
        return "" if any(name.startswith("test_") for name in _tests(file)) else "no test in it"
    if names[-1].partition("_")[0] != "test":
        return "not a test"
    return "" if ".".join(names) in _tests(file) else "no such test"


@functools.cache
def _tests(file: str) -> set[str]:
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        elif isinstance(node, ast.Assign):  # a test that is made by a function
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _importable(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(lambda known, part: getattr(known, part, None), parts[cut:], found) is not None
    return False


@functools.cache
def _commands() -> Any:
    return typer.main.get_command(build())


def _lost_command(words: list[str]) -> str:
    command: Any = _commands()
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands"):
        return f"no such command: {' '.join(words) or 'a verb is missing'}"
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    lost = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"no such option: {', '.join(lost)}" if lost else ""
