"""Every example in a help text runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.terminal import exit_code
from sabun.cli import build, demo


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from commands(inner, (*path, name))


ALL = dict(commands(typer.main.get_command(build())))


def examples(command: Any) -> list[str]:
    words = (command.help or "").partition("Example:")[2]
    return [line.strip() for line in words.splitlines() if line.strip().startswith("sabun ")]


@pytest.mark.parametrize("name", ALL)
def test_every_help_has_an_example_of_itself(name: str) -> None:
    assert any(line.startswith(f"sabun {name}".strip()) for line in examples(ALL[name]))


@pytest.mark.parametrize("name", ALL)
def test_every_example_in_a_help_text_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = demo.jobs()[:1]
    monkeypatch.setattr(demo, "jobs", lambda: first)  # all of them are in test_demo
    monkeypatch.setattr("sabun.outliers.reproduction._QUICK_DRAWS", 1)  # a quick run is in the room's own tests
    for line in examples(ALL[name]):
        assert exit_code(*shlex.split(line)[1:]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if not hasattr(command, "commands")])
def test_every_command_speaks_json_and_explains_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ALL[name]
    options = {option for parameter in command.params for option in parameter.opts}
    assert "--json" in options
    assert all(getattr(parameter, "help", None) for parameter in command.params)
    assert exit_code(*name.split(), "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Example:" in shown
    assert "sabun " + name in shown
