"""The museum of faults: every way in which we break the package on purpose, and the check of `sabun audit` that notices.

An exhibit is one small change to one module. It is made in a temporary copy of the installed package, never in the package
itself, and a process of its own (`visitor`) runs the audit's checks on the copy. That a proof's digest no longer fits does not
count: any change at all would do that. `exhibits.json` comes with the package and is written by `tools/museum.py`.
"""

from __future__ import annotations

import compileall
import contextlib
import dataclasses
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

from sabun.errors import InternalError, ParameterError

__all__ = ["Caught", "Exhibit", "Sight", "Tour", "exhibits", "tour"]

Key = tuple[str, str, str]
_DATA = Path(__file__).with_name("exhibits.json")
_PATIENCE_S = 900
"""What hangs longer was not noticed by anybody."""
_LOADING = "the package no longer loads"


@final
@dataclass(frozen=True, kw_only=True)
class Caught:
    """The check that noticed: its room, what it is about, its claim, and its processor seconds up to the finding."""

    room: str
    mechanism: str
    claim: str
    seconds: float

    @property
    def key(self) -> Key:
        """How the catalogue knows it."""
        return self.room, self.mechanism, self.claim


@final
@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """One fault.

    Args:
        room: Whose fault it is.
        name: What is wrong.
        file: The module, below the package.
        edits: Pairs of texts: what stands in the module once, and what takes its place.
        history: The published fault of the same kind, where there is one.
        caught: The check of the audit that noticed when the museum was last searched.
        reason: Why no check does.
        test: The tests of the source tree that notice.
    """

    room: str
    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    history: str = ""
    caught: Caught | None = None
    reason: str = ""
    test: str = ""

    def applied(self, text: str) -> str:
        """The broken module."""
        for old, new in self.edits:
            if text.count(old) != 1:
                raise InternalError(f"{self.file}: {old!r} must stand there once. The museum does not fit this version.")
            text = text.replace(old, new)
        return text

    def line(self) -> int:
        """Where the fault is, counted from 1."""
        text = (_package() / self.file).read_text(encoding="utf-8")
        return text[: text.index(self.edits[0][0])].count("\n") + 1

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return dataclasses.asdict(self) | {"edits": [list(pair) for pair in self.edits]}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Exhibit:
        """From plain data."""
        caught = told.get("caught")
        return Exhibit(
            **{name: told[name] for name in ("room", "name", "file")},
            edits=tuple((old, new) for old, new in told["edits"]),
            history=told.get("history", ""),
            caught=None if caught is None else Caught(**caught),
            reason=told.get("reason", ""),
            test=told.get("test", ""),
        )


@final
@dataclass(frozen=True, kw_only=True)
class Sight:
    """What a visit to an exhibit showed: the check that noticed now, if any, and its words."""

    exhibit: Exhibit
    caught: Caught | None
    evidence: str
    tried: int

    @property
    def as_recorded(self) -> bool:
        """Whether what was caught before is caught again."""
        return self.caught is not None or self.exhibit.caught is None


@final
@dataclass(frozen=True, kw_only=True)
class Tour:
    """A walk through the museum."""

    sights: tuple[Sight, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that is said to be caught was caught."""
        return all(sight.as_recorded for sight in self.sights)

    @property
    def caught(self) -> int:
        """How many were."""
        return sum(sight.caught is not None for sight in self.sights)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "passed": self.passed,
            "exhibits": len(self.sights),
            "caught": self.caught,
            "sights": [
                {
                    "room": sight.exhibit.room,
                    "fault": sight.exhibit.name,
                    "file": sight.exhibit.file,
                    "line": sight.exhibit.line(),
                    "history": sight.exhibit.history,
                    "caught": None if sight.caught is None else dataclasses.asdict(sight.caught),
                    "evidence": sight.evidence,
                    "checks_tried": sight.tried,
                    "reason": "" if sight.caught else sight.exhibit.reason,
                    "test": sight.exhibit.test,
                }
                for sight in self.sights
            ],
        }


def exhibits(room: str = "") -> tuple[Exhibit, ...]:
    """Every fault, or those of one room.

    Raises:
        ParameterError: There is no such room.
    """
    found = tuple(Exhibit.of(told) for told in json.loads(_DATA.read_text(encoding="utf-8")))
    rooms = list(dict.fromkeys(one.room for one in found))
    if room and room.lower() not in rooms:
        raise ParameterError(f"the museum must be asked for one of {', '.join(rooms)}; got {room!r}. Leave it out for all.")
    return tuple(one for one in found if not room or one.room == room.lower())


def tour(
    shown: Sequence[Exhibit],
    *,
    search: bool = False,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
    seen: Callable[[Sight], None] | None = None,
) -> Tour:
    """Breaks a copy of the package in each of these ways, and lets the audit look.

    Args:
        shown: The exhibits.
        search: Try every check of the rooms concerned, instead of the one that noticed before.
        workers: How many processes.
        progress: Called with the share done and what is being done.
        seen: Called with each sight as it comes.

    Raises:
        InternalError: A check fails on the unbroken copy, or an exhibit does not fit this version.
    """
    step, places = progress or (lambda _share, _doing: None), queue.SimpleQueue[Path]()
    found: dict[int, Sight] = {}
    with contextlib.ExitStack() as stack:
        for _ in range(workers):
            places.put(_copy(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sabun-museum-")))))
        step(0.0, "the unbroken copy")
        sound = _sound(places, shown, search=search)
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        tasks = {pool.submit(_seen, one, places, sound if search else None): place for place, one in enumerate(shown)}
        for done, task in enumerate(as_completed(tasks)):
            sight = found[tasks[task]] = task.result()
            step((done + 1) / len(shown), f"{sight.exhibit.room}: {sight.exhibit.name}")
            if seen is not None:
                seen(sight)
    return Tour(sights=tuple(found[place] for place in range(len(shown))))


def concerned(file: str) -> tuple[str, ...]:
    """The rooms whose checks are tried on a fault of this module, when one is searched for."""
    part = file.split("/")[0]
    return _CONCERNED.get(part, (part,))


_CONCERNED = {
    "privacy": ("privacy", "ledger", "release", "summaries", "learning"),
    "records": ("records", "summaries", "regression", "density", "learning"),
    "engine": ("engine", "density", "regression", "summaries"),
    "ledger": ("ledger", "release", "summaries", "learning"),
    "release": ("release", "ledger", "summaries", "learning"),
}
_LOCK = threading.Lock()


@cache
def _package() -> Path:
    return Path(__file__).parents[1]


def _copy(place: Path) -> Path:
    """A copy of the package; times of files stay, so that what was compiled from them still counts."""
    shutil.copytree(_package(), place / "sabun")
    with contextlib.redirect_stdout(None), _LOCK:
        compileall.compile_dir(place / "sabun", quiet=2)
    return place


def _sound(places: queue.SimpleQueue[Path], shown: Sequence[Exhibit], *, search: bool) -> list[dict[str, Any]]:
    """What the checks find on the unbroken copy; one that fails there would seem to notice everything."""
    wanted = list(dict.fromkeys(one.caught.key for one in shown if one.caught and one.caught.claim != _LOADING))
    if not search and not wanted:
        return []
    place = places.get()
    found = _visited(place, None if search else wanted, stop=False)
    places.put(place)
    if found is None or (failed := [one for one in found if not one["passed"]]):
        told = "it does not load" if found is None else f"{failed[0]['key']}: {failed[0]['evidence']}"
        raise InternalError(f"the unbroken copy must pass its own checks first: {told}")
    return sorted(found, key=lambda one: float(one["seconds"]))


def _seen(exhibit: Exhibit, places: queue.SimpleQueue[Path], sound: list[dict[str, Any]] | None) -> Sight:
    """Breaks a copy, asks the checks, mends the copy."""
    if sound is None:
        if exhibit.caught is None:
            return Sight(exhibit=exhibit, caught=None, evidence="", tried=0)
        keys: list[Key] = [] if exhibit.caught.claim == _LOADING else [exhibit.caught.key]
    else:
        order = concerned(exhibit.file)
        near = [one for one in sound if one["key"][0] in order]
        keys = [tuple(one["key"]) for one in sorted(near, key=lambda one: order.index(one["key"][0]))]
    place = places.get()
    try:
        with _broken(exhibit, place):
            found = _visited(place, keys, stop=True)
    finally:
        places.put(place)
    if found is None:
        caught = Caught(room=exhibit.room, mechanism="", claim=_LOADING, seconds=0.0)
        return Sight(exhibit=exhibit, caught=caught, evidence=_LOADING, tried=0)
    failed = [one for one in found if not one["passed"]]
    if not failed:
        return Sight(exhibit=exhibit, caught=None, evidence="", tried=len(found))
    room, mechanism, claim = failed[0]["key"]
    caught = Caught(room=room, mechanism=mechanism, claim=claim, seconds=failed[0]["seconds"])
    return Sight(exhibit=exhibit, caught=caught, evidence=failed[0]["evidence"], tried=len(found))


@contextlib.contextmanager
def _broken(exhibit: Exhibit, place: Path) -> Iterator[None]:
    sound, target = _package() / exhibit.file, place / "sabun" / exhibit.file
    target.write_text(exhibit.applied(sound.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        yield
    finally:
        shutil.copy2(sound, target)


def _visited(place: Path, keys: Sequence[Key] | None, *, stop: bool) -> list[dict[str, Any]] | None:
    """What the checks find in a copy; None where it does not load. Who hangs has found nothing."""
    out = place / "found.json"
    out.unlink(missing_ok=True)
    asked = json.dumps({"copy": str(place), "keys": keys, "stop": stop, "out": str(out)})
    # No bytecode is written: two faults of the same size within a second would be taken for each other.
    around = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "sabun.audit.visitor"]
    try:
        subprocess.run(
            command, cwd=place, env=around, input=asked, text=True, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return []
    return json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
