"""Breaks the privacy of a copy of the package in one line at a time, then asks the tests whether they notice.

    python tools/mutants.py              every mutant (about a quarter of an hour)
    python tools/mutants.py density      those of one room
    python tools/mutants.py --list       what there is

Only tests of behaviour are asked: that the digest in a proof no longer fits its module is a second net, shown beside the
result. Survivors are named at the end, and the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 900
"""Seconds one set of tests may take; a mutant that makes them hang longer has not been noticed by anybody."""


class Mutant(NamedTuple):
    """One way to break a promise: in a file, what stands there once, what takes its place."""

    room: str
    name: str
    file: str
    edits: tuple[tuple[str, str], ...]

    def applied(self, text: str) -> str:
        """The broken text; a fragment that is not there exactly once is a mistake of this list."""
        for old, new in self.edits:
            if text.count(old) != 1:
                raise SystemExit(f"{self.file}: {old!r} must stand there once; it does {text.count(old)} times. Mend the list.")
            text = text.replace(old, new)
        return text


def _found() -> tuple[dict[str, tuple[str, ...]], tuple[Mutant, ...]]:
    """Where each room's tests lie, with every mutant: from the `mutants*.py` beside the tests, whoever brought them."""
    tests: dict[str, tuple[str, ...]] = {}
    mutants: list[Mutant] = []
    for file in sorted((ROOT / "tests").glob("*/mutants*.py")):
        listed = runpy.run_path(str(file))
        tests[listed["ROOM"]] = listed["TESTS"]
        for name, place, old, new, *more in listed["MUTANTS"]:
            mutants.append(Mutant(listed["ROOM"], name, f"src/sabun/{place}", ((old, new), *more)))
    return tests, tuple(mutants)


TESTS, MUTANTS = _found()


def copied(place: Path) -> None:
    """A copy of the source tree whose proofs fit it."""
    for folder in ("src", "tests", "examples", "tools"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(ROOT / "pyproject.toml", place)
    subprocess.run([sys.executable, "tests/architecture/proofs.py", "--stamp"], cwd=place, capture_output=True, check=True)


def _failure(place: Path, tests: str) -> str | None:
    """The first test that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *shlex.split(f"tests/{tests}")]
    # Without bytecode: two mutants of the same size within a second would be taken for each other.
    around = os.environ | {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=place, env=around, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return None
    failed = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return None if done.returncode == 0 else failed[0] if failed else f"{tests} (exit {done.returncode})"


def _must_pass_unbroken(place: Path, tests: str, passed: set[str]) -> None:
    """A test that fails without a mutant would seem to notice every one."""
    if tests not in passed and (failure := _failure(place, tests)) is not None:
        raise SystemExit(f"the unbroken package must pass its tests first; it fails {failure}")
    passed.add(tests)


def _digests(place: Path) -> str:
    """What the proofs say about the digests of the code."""
    command = [sys.executable, "tests/architecture/proofs.py"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout


def survives(mutant: Mutant, place: Path, passed: set[str]) -> bool:
    """Breaks the copy, asks the room's tests until one notices, mends the copy; says what happened."""
    target, began = place / mutant.file, time.monotonic()
    whole, before = target.read_text(encoding="utf-8"), _digests(place)
    failure = None
    for tests in TESTS[mutant.room]:
        _must_pass_unbroken(place, tests, passed)
        target.write_text(mutant.applied(whole), encoding="utf-8")
        try:
            proof = "no proof" if _digests(place) == before else "proof too"
            failure = _failure(place, tests)
        finally:
            target.write_text(whole, encoding="utf-8")
        if failure is not None:
            break
    found = "SURVIVES" if failure is None else f"noticed by {failure}"
    print(f"{mutant.room}: {mutant.name}: {found} ({proof}, {time.monotonic() - began:.0f} s)", flush=True)
    return failure is None


def main() -> int:
    """Runs the chosen mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="room", help=f"one or more of {', '.join(TESTS)}; all when left out")
    parser.add_argument("--list", action="store_true", help="show the mutants and do nothing")
    asked = parser.parse_args()
    if unknown := set(asked.rooms) - set(TESTS):
        parser.error(f"there is no room {sorted(unknown)[0]!r}")
    chosen = [mutant for mutant in MUTANTS if not asked.rooms or mutant.room in asked.rooms]
    if asked.list:
        print("\n".join(f"{mutant.room}: {mutant.name} ({mutant.file})" for mutant in chosen))
        return 0
    for mutant in chosen:
        mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        passed: set[str] = set()
        left = [mutant for mutant in chosen if survives(mutant, Path(folder), passed)]
    print(f"{len(chosen)} mutants, {len(chosen) - len(left)} noticed, {len(left)} survive" + ("." if not left else ":"))
    for mutant in left:
        print(f"  {mutant.room}: {mutant.name} ({mutant.file})")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
