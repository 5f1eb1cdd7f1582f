"""Finds and runs the code blocks of a Markdown page, in order, in an empty folder.

Blocks marked `python` share one namespace per page; in blocks marked `console`, each line that starts with `$ ` is run (a
trailing backslash continues it): by a shell on the first page of the site, and wherever it is more than a plain call of
`sabun`. All other calls run in this process, as one of its own for each would spend most of its time on loading. Blocks of any
other kind are not run.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.terminal import exit_code

_FENCE = re.compile(r"^```(?P<kind>[\w-]*)[^\n]*\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_FOR_A_SHELL = re.compile(r"[|&;<>$`*?~#(){}\[\]]")


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match["kind"], match["body"], text.count("\n", 0, match.start()) + 1)


def commands(body: str) -> list[str]:
    joined = re.sub(r"\\\n\s*(?:> )?", " ", body)
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


def run_page(page: Path, folder: Path) -> int:
    """Runs every block; returns how many were run."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    done = 0
    for block in blocks(page):
        if block.kind == "python":
            exec(compile("\n" * block.line + block.body, str(page), "exec"), namespace)
            done += 1
        elif block.kind == "console":
            for command in commands(block.body):
                run = _shell if page.name == "index.md" or not plain(command) else _here
                run(command, folder, f"{page.name}:{block.line}")
                done += 1
    return done


def plain(command: str) -> bool:
    """Whether a command is one call of `sabun` in which a shell would do nothing but part the words."""
    return command.startswith("sabun ") and not _FOR_A_SHELL.search(re.sub(r"'[^']*'", "", command))


def _here(command: str, folder: Path, where: str) -> None:
    with contextlib.chdir(folder):
        assert exit_code(*shlex.split(command)[1:]) == 0, f"{where}: $ {command}"


def _shell(command: str, folder: Path, where: str) -> None:
    path = f"{Path(sys.executable).parent}"
    done = subprocess.run(["bash", "-c", f"export PATH='{path}':$PATH; {command}"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{where}: $ {command}\n{done.stdout}\n{done.stderr}"
