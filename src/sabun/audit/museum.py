"""The museum of faults: every way in which we break the package on purpose, and the check of `sabun audit` that notices.

An exhibit is one small change to one module. It is made in a temporary copy of the installed package, never in the package
itself, and a process of its own (`guide`, `tour`) runs the audit's checks on the copy. That a proof's digest no longer fits
does not count: any change at all would do that. `exhibits.json` comes with the package; `tools/museum.py` writes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from sabun.errors import InternalError, ParameterError

__all__ = ["Caught", "Exhibit", "Sight", "Tour", "exhibits", "tour"]

Key = tuple[str, str, str]
_DATA = Path(__file__).with_name("exhibits.json")


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

    @property
    def not_tried(self) -> int:
        """Of how many no check was asked."""
        return sum(not sight.tried for sight in self.sights)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "passed": self.passed,
            "exhibits": len(self.sights),
            "caught": self.caught,
            "not_tried": self.not_tried,
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
    cost: Mapping[Key, float] | None = None,
    within: float = math.inf,
    workers: int = 1,
    progress: Callable[[float, str], None] | None = None,
    seen: Callable[[Sight], None] | None = None,
) -> Tour:
    """Breaks a copy of the package in each of these ways, and lets the audit look.

    Args:
        shown: The exhibits.
        search: Try every check of the rooms concerned, instead of the one that noticed before.
        cost: Seconds that checks take, as far as they are known; a search begins with the cheap ones.
        within: Seconds that a check may take to be tried in a search, unless it is about the module by name.
        workers: How many processes.
        progress: Called with the share done and what is being done.
        seen: Called with each sight as it comes.

    Raises:
        InternalError: A check that noticed something fails on the unbroken copy, too; or an exhibit does not fit this version.
    """
    step, found = progress or (lambda _share, _doing: None), dict[int, Sight]()
    with contextlib.ExitStack() as stack:
        copies = queue.SimpleQueue[_Copy]()
        for _ in range(workers):
            copies.put(stack.enter_context(_Copy()))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        # Here, not in the threads: the first look at the catalogue loads every room.
        wanted = [
            order_of(one, cost or {}, within=within) if search else [one.caught.key] if one.caught else [] for one in shown
        ]
        tasks = {pool.submit(_seen, *given, copies): place for place, given in enumerate(zip(shown, wanted, strict=True))}
        for done, task in enumerate(as_completed(tasks)):
            sight = found[tasks[task]] = task.result()
            step((done + 1) / (len(shown) + 1), f"{sight.exhibit.room}: {sight.exhibit.name}")
            if seen is not None:
                seen(sight)
        _must_be_sound(copies.get(), list(found.values()))
    return Tour(sights=tuple(found[place] for place in range(len(shown))))


def order_of(exhibit: Exhibit, cost: Mapping[Key, float] = MappingProxyType({}), *, within: float = math.inf) -> list[Key]:
    """The checks that may concern a fault, those first that are about its module by name; of the others, the cheap ones."""
    from sabun.audit.tour import asked

    steps = Path(exhibit.file).with_suffix("").parts  # one alone for a module of no part
    part, stem = steps[0], steps[-1]
    rooms, words = _CONCERNED.get(part, (part,)), [_letters(one) for one in (*Path(exhibit.file).parts[1:-1], stem)]

    def distance(key: Key) -> tuple[int, bool, float]:
        about = _letters(key[1] + key[2])
        return rooms.index(key[0]), not any(word in about for word in words), cost.get(key, 0.0)

    near = (key for key in asked() if key[0] in rooms)
    return sorted((key for key in near if cost.get(key, 0.0) <= within or not distance(key)[1]), key=distance)


_CONCERNED = {
    "checks": ("privacy", "release", "ledger"),
    "foreign": ("release", "ledger"),
    "asking": ("summaries", "outliers", "density"),
    "privacy": ("privacy", "ledger"),
    "records": ("records", "summaries", "regression"),
    "engine": ("engine", "density", "regression"),
    "release": ("release", "ledger", "summaries"),
}
"""The rooms whose checks are tried on faults outside the rooms."""


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


@cache
def _package() -> Path:
    return Path(__file__).parents[1]


@final
class _Copy:
    """A copy of the package with its guide."""

    def __enter__(self) -> _Copy:
        self._folder = tempfile.TemporaryDirectory(prefix="sabun-museum-")
        self._place = Path(self._folder.name)
        # Times of files stay, so that what was compiled from them still counts.
        shutil.copytree(_package(), self._place / "sabun")
        # No bytecode is written: two faults of the same size within a second would be taken for each other.
        around = os.environ | {"PYTHONPATH": str(self._place), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        guide = [sys.executable, "-P", "-W", "ignore", str(Path(__file__).with_name("guide.py")), str(self._place)]
        self._guide = subprocess.Popen(
            guide,
            cwd=self._place,
            env=around,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._guide.kill()
        with self._guide:  # closes its pipes and waits for it
            pass
        self._folder.cleanup()

    @contextlib.contextmanager
    def broken(self, exhibit: Exhibit) -> Iterator[None]:
        """The copy with one fault, for a while."""
        sound, target = _package() / exhibit.file, self._place / "sabun" / exhibit.file
        target.write_text(exhibit.applied(sound.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            yield
        finally:
            shutil.copy2(sound, target)

    def visited(self, keys: Sequence[Sequence[str]], *, stop: bool) -> list[dict[str, Any]] | None:
        """What the checks find; None where the copy does not load or they do not come back."""
        out = self._place / "found.json"
        out.unlink(missing_ok=True)
        asked = {"copy": str(self._place), "keys": [list(key) for key in keys], "stop": stop, "out": str(out)}
        assert self._guide.stdin is not None
        assert self._guide.stdout is not None
        self._guide.stdin.write(json.dumps(asked) + "\n")
        self._guide.stdin.flush()
        if not self._guide.stdout.readline():
            raise InternalError("the guide of the museum left.")
        return json.loads(out.read_text(encoding="utf-8")) if out.exists() else None


def _seen(exhibit: Exhibit, keys: Sequence[Key], copies: queue.SimpleQueue[_Copy]) -> Sight:
    """Breaks a copy, asks the checks, mends the copy."""
    if not keys:
        return Sight(exhibit=exhibit, caught=None, evidence="", tried=0)
    copy = copies.get()
    try:
        with copy.broken(exhibit):
            failed, tried = _noticed(copy, list(keys))
    finally:
        copies.put(copy)
    if failed is None:
        return Sight(exhibit=exhibit, caught=None, evidence="", tried=tried)
    room, mechanism, claim = failed["key"]
    caught = Caught(room=room, mechanism=mechanism, claim=claim, seconds=failed["seconds"])
    return Sight(exhibit=exhibit, caught=caught, evidence=failed["evidence"], tried=tried)


def _noticed(copy: _Copy, keys: list[Key]) -> tuple[dict[str, Any] | None, int]:
    """The first check that fails, and fails again when it is asked again: some toss coins, and may fail by bad luck."""
    tried = 0
    while keys:
        found = copy.visited(keys, stop=True)
        if not found:
            return None, tried
        tried, last = tried + len(found), found[-1]
        if last["passed"] is not False:
            return None, tried
        again = copy.visited([last["key"]], stop=True)
        if again and again[0]["passed"] is False:
            return last, tried
        keys = keys[len(found) :]
    return None, tried


def _must_be_sound(copy: _Copy, sights: Sequence[Sight]) -> None:
    """A check that fails on the unbroken copy would seem to notice everything."""
    keys = list(dict.fromkeys(sight.caught.key for sight in sights if sight.caught is not None))
    found = copy.visited(keys, stop=False)
    failed = (
        ["it does not load"]
        if found is None
        else [f"{one['key']}: {one['evidence']}" for one in found if one["passed"] is False]
    )
    if failed:
        raise InternalError(f"the unbroken copy must pass its own checks: {failed[0]}")
