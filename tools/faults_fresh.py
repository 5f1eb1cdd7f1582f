"""Measures how many fresh faults are noticed: by `sabun audit` without its digests, else by tests.

    python tools/faults_fresh.py --run first      a run under that name; what it holds already is left alone
    python tools/faults_fresh.py --run second --after first      only what the first run did not notice
    python tools/faults_fresh.py --run third --list faults_by_another_reader      another list of tests/audit
    python tools/faults_fresh.py --page           writes what is kept into docs/audit.md (then: tools/docs/wrap.py)

Each fault is planted in a copy. The quick checks of `sabun audit` are asked first, those of the room concerned (see
`sabun.audit.museum`); where none notices, the tests of the source tree, those first that are about the module, then the others,
five minutes each at most; then the slow checks; then the tests that are about every part. A test that fails counts only if it
passes on the unbroken copy and fails again on the broken one. What was found is kept in docs/results/faults_fresh.json; a first
run of a list stays what it was, whatever is mended afterwards.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import dataclasses
import json
import math
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mutants import ROOT, copied

from sabun.audit.museum import Exhibit, Sight, tour

LISTS = ROOT / "tests" / "audit"
KEPT = ROOT / "docs" / "results" / "faults_fresh.json"
AUDIT = ROOT / "docs" / "results" / "audit.json"
PAGE = ROOT / "docs" / "audit.md"
PLACE = re.compile(r"(<!-- fresh -->).*?(<!-- /fresh -->)", re.DOTALL)
PATIENCE = 300
"""Seconds that the tests have for one fault."""
AUDIT_ALONE, NEAR = "the quick checks pass", "the quick checks and the nearest tests pass"
FAR = "the quick checks and all its tests pass"
ALL = "every check of its room and all its tests pass"
HOUSE = "every check of its room, all its tests and those of the whole house pass"
CUT = ", cut short"
"""What is known of a fault that nobody has noticed so far."""
WITHIN = 0.3
"""Processor seconds that a check of the audit may take to be asked, unless it is about the module by name."""
WORKERS = 2
ELSEWHERE = {
    "asking": ("contracts", "summaries", "outliers"),
    "keyvalue": ("keyvalue", "clients"),
    "privacy": ("privacy", "distribution"),
    "records": ("records", "contracts"),
    "telling": ("reports",),
}
"""Where the tests of a part lie, unless in the folder of its name."""
EVERYWHERE = ("examples", "contracts", "cli", "reports")
"""Where the tests lie that are about every part."""
LEFT_OUT = ("chromium", "reproduction", "postgres", "servers", "roles", "tls", "spark", "dask", "notebook")
"""Words in the names of tests that need a browser, a server, a cluster or half an hour."""


def listed(name: str = "faults_fresh") -> list[Exhibit]:
    """The faults of a list, in its order."""
    told = tomllib.loads((LISTS / f"{name}.toml").read_text(encoding="utf-8"))["fault"]
    return [
        Exhibit(room=one["path"].split("/")[0], name=one["name"], file=one["path"], edits=((one["old"], one["new"]),))
        for one in told
    ]


def kept() -> dict[str, Any]:
    """All runs so far, by name."""
    runs: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    return runs


def keep(run: str, of: str, found: dict[str, Any]) -> None:
    """Writes a run down as far as it has come, in the order of its list."""
    faults = {one.name: found[one.name] for one in listed(of) if one.name in found}
    by = [one["noticed"] for one in faults.values()]
    told = {"total": len(faults), "audit": by.count("audit"), "tests": by.count("tests"), "survived": by.count(None)}
    runs = kept()
    runs[run] = {"list": of} | told | {"date": datetime.now(UTC).date().isoformat(), "faults": faults}
    whole = KEPT.with_suffix(".new")
    whole.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    whole.replace(KEPT)  # a run that is stopped while it writes loses nothing


def tests_of(fault: Exhibit, place: Path, stage: str) -> list[str]:
    """Files of tests: those named after the module, then those that speak of it; all the others of its part; those of all."""
    part, stem = Path(fault.file).parts[0], Path(fault.file).stem
    dotted = "sabun." + fault.file.removesuffix(".py").replace("/", ".")
    own = ELSEWHERE.get(part, (part,))
    folders = own if stage != HOUSE else [folder for folder in EVERYWHERE if folder not in own]
    files = [file for folder in folders for file in sorted((place / "tests" / folder).rglob("test_*.py"))]
    files += (place / "tests").glob(f"test_{stem}.py") if part == f"{stem}.py" and stage == NEAR else ()  # of no part
    files = [file for file in files if not any(word in file.name for word in LEFT_OUT)]

    def distance(file: Path) -> tuple[bool, bool]:
        return stem not in file.stem, dotted not in file.read_text(encoding="utf-8")

    chosen = [file for file in files if stage == HOUSE or (distance(file) == (True, True)) == (stage == FAR)]
    return [str(file.relative_to(place)) for file in sorted(chosen, key=distance)]


def failure(place: Path, tests: list[str], deadline: float) -> str | None:
    """The first test that fails; None where none does, or time is over."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={place}/basetemp"]
    around = os.environ | {"PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    left = max(deadline - time.monotonic(), 1.0)
    try:
        done = subprocess.run(
            [*command, *tests], cwd=place, env=around, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    failed = [line.split(" ", 1)[1].split(" - ")[0] for line in told]  # the name of a test may have blanks in it
    return None if done.returncode == 0 else failed[0] if failed else "pytest does not start"


def tested(fault: Exhibit, place: Path, stage: str) -> dict[str, Any]:
    """Breaks the copy, asks the tests, mends the copy."""
    target, began = place / "src" / "sabun" / fault.file, time.monotonic()
    whole, asked, unsound = target.read_text(encoding="utf-8"), tests_of(fault, place, stage), list[str]()
    if not asked:
        return {"noticed": None, "by": stage, "seconds": 0.0}
    while True:
        left_out = [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in unsound]
        with _broken(target, fault, whole):
            found = failure(place, [*asked, *left_out], began + PATIENCE)
        seconds = round(time.monotonic() - began, 1)
        if found is None:
            cut = CUT if seconds >= PATIENCE else ""
            return {"noticed": None, "by": stage + cut, "seconds": seconds}
        if found == "pytest does not start" or _tells(place, target, fault, whole, found):
            return {"noticed": "tests", "by": found, "seconds": seconds}
        unsound.append(found)  # fails without the fault too, or by chance


@contextlib.contextmanager
def _broken(target: Path, fault: Exhibit, whole: str) -> Iterator[None]:
    target.write_text(fault.applied(whole), encoding="utf-8")
    try:
        yield
    finally:
        target.write_text(whole, encoding="utf-8")


def _tells(place: Path, target: Path, fault: Exhibit, whole: str, test: str) -> bool:
    """Whether a test passes on the unbroken copy and fails again on the broken one: a busy machine fails some by itself."""
    if failure(place, [test], time.monotonic() + PATIENCE) is not None:
        return False
    with _broken(target, fault, whole):
        return failure(place, [test], time.monotonic() + PATIENCE) is not None


def _copy(place: Path) -> Path:
    """The source tree with all that its tests look at."""
    copied(place)
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, place / folder)
    compileall.compile_dir(place / "src", quiet=1)  # once: nothing is compiled for keeps while faults come and go
    return place


def measure(run: str, names: list[str], *, of: str, after: str) -> None:
    """Asks the audit about every fault, then the tests about those that got away, the nearest tests first, then the audit."""
    earlier = kept().get(after, {}).get("faults", {})
    found: dict[str, Any] = {name: told for name, told in earlier.items() if told["noticed"] is not None}
    found |= kept().get(run, {}).get("faults", {})
    asked = [one for one in listed(of) if not names or any(word in one.name for word in names)]
    findings = json.loads(AUDIT.read_text(encoding="utf-8"))["findings"]
    cost = {(one["room"], one["mechanism"], one["claim"]): one["seconds"] for one in findings}

    def note(name: str, told: dict[str, Any]) -> None:
        found[name] = told
        keep(run, of, found)
        print(f"{name}: {told['noticed'] or 'SURVIVES'} ({told['by']}, {told['seconds']} s)", flush=True)

    def audited(faults: list[Exhibit], within: float, otherwise: str) -> None:
        def seen(sight: Sight) -> None:
            if sight.caught is None:
                note(sight.exhibit.name, {"noticed": None, "by": otherwise, "seconds": 0.0})
                return
            told = dataclasses.asdict(sight.caught)
            by = f"{told['room']}: {told['mechanism']}: {told['claim']}"
            note(sight.exhibit.name, {"noticed": "audit", "by": by, "seconds": told["seconds"]})

        if faults:
            tour(faults, search=True, cost=cost, within=within, workers=WORKERS, seen=seen)

    audited([one for one in asked if one.name not in found], WITHIN, AUDIT_ALONE)
    with contextlib.ExitStack() as stack:
        places = queue.SimpleQueue[Path]()
        for _ in range(WORKERS):
            places.put(_copy(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))

        def tried(before: str, stage: str) -> None:
            left = [one for one in asked if found[one.name]["noticed"] is None and found[one.name]["by"].startswith(before)]
            tasks = {pool.submit(_tested_somewhere, one, places, stage): one.name for one in left}
            for task in as_completed(tasks):
                note(tasks[task], task.result())

        tried(AUDIT_ALONE, NEAR)
        tried(NEAR, FAR)
        for before, after_all in ((FAR, ALL), (FAR + CUT, ALL + CUT)):
            audited([one for one in asked if found[one.name]["by"] == before], math.inf, after_all)
        tried(ALL, HOUSE)


def _tested_somewhere(fault: Exhibit, places: queue.SimpleQueue[Path], stage: str) -> dict[str, Any]:
    place = places.get()
    try:
        return tested(fault, place, stage)
    finally:
        places.put(place)


def figures() -> str:
    """What the runs say, for the page about the audit."""
    runs = kept()
    told = f"In the first run {_noticed(runs['first'])}. With the laws that were missing then, {_noticed(runs['second'])}."
    for name, whose in (("third", "another"), ("fourth", "a third"), ("fifth", "a fourth")):
        told += f" Of {whose} reader's list (`tests/audit/{runs[name]['list']}.toml`) {_noticed(runs[name])}, in its first run."
    return told


def _noticed(run: dict[str, Any]) -> str:
    many, whole = run["total"] - run["survived"], run["total"]
    return f"{many} of the {whole} were noticed, {run['audit']} by the audit and {run['tests']} by the tests"


def page(text: str) -> str:
    """The page about the audit with what the runs say."""
    return PLACE.sub(lambda found: f"{found[1]}{figures()}{found[2]}", text)


def main() -> int:
    """Does what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults with one of these in their name")
    parser.add_argument("--run", help="the name under which the run is kept")
    parser.add_argument(
        "--after", default="", help="an earlier run: what it noticed is taken over, what survived is asked anew"
    )
    parser.add_argument("--list", default="faults_fresh", help="the list of tests/audit that the run is about")
    parser.add_argument("--page", action="store_true", help="write what the runs say into docs/audit.md")
    said = parser.parse_args()
    if said.run:
        measure(said.run, said.words, of=said.list, after=said.after)
    if said.page:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
