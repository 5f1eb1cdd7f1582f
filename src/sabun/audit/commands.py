"""A command that is refused leaves the folder it was started in as it was: no output, no ledger row, no half file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sabun.asking.directory import Room
from sabun.asking.evidence import ROWS, Bench, Checklist, commands
from sabun.audit.questions import files_in
from sabun.ledger import Ledger

__all__ = ["checks_of"]

_CHILD = """
import contextlib, io, json, sys
from sabun.cli import main
told = []
for arguments in json.loads(sys.stdin.read()):
    words = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(words):
        try:
            main(arguments)
        except SystemExit as stop:
            if stop.code:
                told.append(words.getvalue())
                continue
        told.append("")
sys.stdout.write(json.dumps(told))
"""


def checks_of(room: Room) -> Checklist:
    """What is laid upon the commands of a room that charge."""
    checklist = Checklist()
    if any(name.startswith(f"{room.name} ") for name in commands()):
        checklist("commands", room=(room.name,))(_a_refused_command_leaves_every_file_as_it_was)
    return checklist


def _a_refused_command_leaves_every_file_as_it_was(bench: Bench, room: str) -> str:
    mine = {name: command for name, command in commands().items() if name.startswith(f"{room} ")}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [f"{20 + 70 * age:.3f},{15 + 25 * bmi:.3f},{'yes' if age > 0.5 else 'no'}" for age, bmi in ROWS]
        for name in ("t.csv", "public.csv"):
            (place / name).write_text("\n".join(["age,bmi,sick", *rows]) + "\n", encoding="utf-8")
        Ledger.create(place / "book", name="book", unit="patient", epsilon="0.01", delta="1e-3")
        asked = [
            [*name.split(), *one.arguments, "--epsilon", "2", "--ledger", "book", "--out", f"{number}-{one.out}"]
            for number, (name, one) in enumerate(mine.items())
        ]
        before = files_in(place)
        for name, words in zip(mine, _told(asked, place), strict=True):
            flat = " ".join(words.split())
            bench.must("epsilon 0.01 of 0.01 left" in flat, f"{name} was not refused for its budget: {flat[:200]}")
            bench.must("nothing was charged" in flat, f"{name} does not say that nothing was charged: {flat[:200]}")
        after = files_in(place)
        bench.must(after.keys() == before.keys(), f"a refusal wrote {sorted(after.keys() - before.keys())[:3]}.")
        bench.must(after == before, "a refusal changed a file.")
    return f"{', '.join(mine)}: refused without a byte"


def _told(asked: list[list[str]], place: Path) -> list[str]:
    """What each command says on its way out; empty where it went through."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(asked), cwd=place, capture_output=True, text=True, check=False
    )
    return [str(words) for words in json.loads(done.stdout or '["it did not start"]')]
