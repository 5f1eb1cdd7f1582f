"""The command line as a page, read from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from sabun.cli import build

__all__ = ["cli_page", "commands"]

_OF_THE_SHELL = {"--help", "--install-completion", "--show-completion"}


def commands() -> dict[str, Any]:
    """Every command by its full name, `sabun` itself first."""
    return dict(_walk(typer.main.get_command(build()), ("sabun",)))


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _walk(inner, (*path, name))


def cli_page() -> str:
    """One section for each command: what it does, its arguments and options, an example."""
    return "\n".join(_section(name, command) for name, command in commands().items())


def _section(name: str, command: Any) -> str:
    words, _, example = (command.help or "").partition("Example:")
    level = "##" if name.count(" ") <= 1 else "###"
    parts = [f"{level} {name}", _plain(words), _table(command), _example(example)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _plain(words: str) -> str:
    return re.sub(r"\n[ \t]+", "\n", words.replace("\b", "")).strip()


def _example(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = [f"$ {line}" if line.startswith("sabun ") else line for line in lines]
    return "```text\n" + "\n".join(shown) + "\n```" if shown else ""


def _table(command: Any) -> str:
    rows = [_row(parameter) for parameter in command.params if not _OF_THE_SHELL & set(parameter.opts)]
    return "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) if rows else ""


def _row(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    name = parameter.name.upper() if is_argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    words = [getattr(parameter, "help", None) or ""]
    if parameter.required and not is_argument:
        words.append("*Required.*")
    elif not parameter.required and not getattr(parameter, "is_flag", False) and _shown(parameter.default):
        words.append(f"Default: `{parameter.default}`.")
    return f"| `{name}` | {' '.join(words).replace('|', chr(92) + '|')} |"


def _shown(default: object) -> bool:
    return isinstance(default, str | int | float) and default != ""
