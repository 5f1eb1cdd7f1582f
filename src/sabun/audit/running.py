"""Runs the checks and keeps what they found: one table."""

from __future__ import annotations

import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import metadata
from typing import Any, final

from sabun.asking.evidence import Finding, installed
from sabun.audit.catalogue import Listed, catalogue, gaps
from sabun.audit.in_short import Summary, summaries
from sabun.audit.named import Kind, about, kind_of, known
from sabun.errors import ParameterError
from sabun.telling.harness import machine

__all__ = ["Audit", "audit"]

Progress = Callable[[float, str], None]
LIBRARIES = ("sabun", "numpy", "scipy", "scikit-learn", "pandas", "dp-accounting", "numba", "torch")

_NEEDS = "it needs the extra 'sabun[{}]', and so does what it would check"


@final
@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was found.

    Args:
        findings: A row for each check.
        machine: On what it was found.
        libraries: The versions that are installed.
        seconds: How long it took altogether.
        thorough: Whether more was tried than usual.
    """

    findings: tuple[Finding, ...]
    machine: dict[str, str]
    libraries: dict[str, str]
    seconds: float
    thorough: bool

    @property
    def passed(self) -> bool | None:
        """Whether nothing failed; None where nothing was tried, which is no pass."""
        return not self.failures if self.tried else None

    @property
    def tried(self) -> tuple[Finding, ...]:
        """What there is evidence about, for or against."""
        return tuple(finding for finding in self.findings if finding.passed is not None)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What failed."""
        return tuple(finding for finding in self.findings if finding.passed is False)

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """What nobody tried: an extra is missing, or it was not wanted."""
        return tuple(finding for finding in self.findings if finding.absent == "left out")

    @property
    def inapplicable(self) -> tuple[Finding, ...]:
        """Where there was nothing to look at."""
        return tuple(finding for finding in self.findings if finding.absent == "does not apply")

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Each promise on a few lines."""
        return tuple(summaries(self.findings))

    def count(self, kind: Kind) -> int:
        """About how many mechanisms, or classes, something was tried."""
        names = {(finding.room, name) for finding in self.tried for name in finding.mechanism.split(", ")}
        return sum(kind_of(room, name) == kind for room, name in names)

    def __str__(self) -> str:
        """What came of it, in a sentence."""
        counts = [(self.count("classes"), "class", "classes"), (self.count("mechanisms"), "mechanism", "mechanisms")]
        of = " and ".join(f"{many} {one if many == 1 else several}" for many, one, several in counts if many)
        verdict = {None: "NOTHING WAS TRIED, which is no pass", True: "nothing failed", False: f"{len(self.failures)} FAILED"}
        done = f"{len(self.tried)} {'check' if len(self.tried) == 1 else 'checks'}{of and f' of {of}'} in {self.seconds:.0f} s"
        return f"{', '.join([done, *self._apart()])}: {verdict[self.passed]}."

    def _apart(self) -> Iterator[str]:
        """What is no evidence, in words."""
        if self.left_out:
            extras = ", ".join(dict.fromkeys(f"sabun[{one.needs}]" for one in self.left_out if one.needs))
            yield f"{len(self.left_out)} left out{extras and f' (they need {extras})'}"
        if self.inapplicable:
            yield f"{len(self.inapplicable)} not applicable"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "passed": self.passed,
            "checks": len(self.tried),
            "left_out": len(self.left_out),
            "not_applicable": len(self.inapplicable),
            "classes": self.count("classes"),
            "mechanisms": self.count("mechanisms"),
            "failed": len(self.failures),
            "thorough": self.thorough,
            "seconds": round(self.seconds, 3),
            "processor_seconds": round(sum(one.seconds for one in self.findings), 3),
            "machine": self.machine,
            "libraries": self.libraries,
            "summaries": [dataclasses.asdict(one) for one in self.summaries],
            "findings": [dataclasses.asdict(one) | {"seconds": round(one.seconds, 3)} for one in self.findings],
        }


def audit(
    name: str = "",
    *,
    thorough: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    without: str = "",
) -> Audit:
    """Checks what the package promises, on this machine.

    While it runs, samplers and coins are replaced in this process: use nothing else of the package meanwhile.

    Args:
        name: A room ("density"), a part of the hall ("privacy"), a mechanism or a class ("ssp-gauss", "OutlierCount"), which
            asks for the noise that it draws, too, or a claim, or words of one; everything when left out.
        thorough: More trials, and checks that take long.
        workers: How many processes; with more than one, guard your script by ``if __name__ == "__main__"``.
        progress: Called with the share done and what is being done.
        without: Leaves out checks whose mechanism or claim has this word; they stay in the table as left out. "proof" is for
            whoever changed the code on purpose and asks what notices it beside the digests.

    Raises:
        ParameterError: There is nothing of that name.
    """
    began = time.perf_counter()
    asked = _asked(name)
    wanted = [place for place, one in enumerate(catalogue()) if (thorough or not one.check.thorough) and asked(one)]
    missing = [gap for gap in gaps() if not name or name.lower() in (gap.room.lower(), gap.mechanism.lower())]
    if not wanted and not missing:
        raise ParameterError(f"there is nothing to audit called {name!r}. Choose one of: {', '.join(known())}.")
    passed_over = {place for place in wanted if without and _claims(catalogue()[place], without)}
    tried = [place for place in wanted if place not in passed_over]
    found = {
        place: catalogue()[place].check.left_out(catalogue()[place].room, f"asked for by {without!r}") for place in passed_over
    }
    found |= dict(_each(tried, thorough=thorough, workers=workers, progress=progress or (lambda _share, _doing: None)))
    return Audit(
        findings=(*missing, *(found[place] for place in wanted)),
        machine=machine(),
        libraries=_libraries(),
        seconds=time.perf_counter() - began,
        thorough=thorough,
    )


def _asked(name: str) -> Callable[[Listed], bool]:
    if not name:
        return lambda _one: True
    return about(name) if name.lower() in map(str.lower, known()) else lambda one: _claims(one, name)


def _claims(one: Listed, words: str) -> bool:
    return any(words.lower() in text.lower() for text in (one.check.claim, *one.check.mechanisms))


def _each(wanted: Sequence[int], *, thorough: bool, workers: int, progress: Progress) -> Iterator[tuple[int, Finding]]:
    if min(workers, len(wanted)) <= 1:  # for one check alone, a process would spend most of its time on loading
        for done, place in enumerate(wanted):
            one = catalogue()[place]
            progress(done / len(wanted), f"{one.room}: {one.check.claim}")
            yield place, _one(place, thorough)
        return
    # A fresh start for each worker: a fork would carry along threads of the matrix library.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = {pool.submit(_one, place, thorough): place for place in wanted}
        for done, task in enumerate(as_completed(tasks)):
            place = tasks[task]
            progress(done / len(wanted), f"{catalogue()[place].room}: {catalogue()[place].check.claim}")
            yield place, task.result()


def _one(place: int, thorough: bool) -> Finding:
    one = catalogue()[place]
    return (
        one.check.run(one.room, thorough=thorough)
        if installed(one.check.needs)
        else one.check.left_out(one.room, _NEEDS.format(one.check.needs), needs=one.check.needs)
    )


def _libraries() -> dict[str, str]:
    there = {str(one.metadata["Name"]).lower(): one.version for one in metadata.distributions() if one.metadata["Name"]}
    return {name: there[name] for name in LIBRARIES if name in there}
