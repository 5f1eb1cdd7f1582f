"""What a promise rests on: the proofs of the modules that take part when it runs, with their digests, and what it assumes.

Of a class it is seen in a fit, of a mechanism without a class in what its room runs once (`RUNS` of its evidence). A part of
the hall rests on the proofs that lie in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sabun.asking.evidence import ROWS, Bench, Check, Checklist, Specimen
from sabun.audit import proofs

__all__ = ["RESTING", "of_fits", "of_part", "of_runs"]

RESTING = "the proofs it rests on are about the installed code"
"""What is claimed of every promise."""
_TOLD = "what each of these proofs names under Preconditions"

Run = Callable[[], Sequence[str]]
"""Runs a mechanism once and gives the assumptions of its promise."""


def of_fits(variants: Iterable[Specimen]) -> Iterator[Check]:
    """A check for each mechanism of each class."""
    checklist, seen = Checklist(), set[tuple[str, ...]]()
    for one in variants:
        names = (one.question, *one.mechanisms)
        if names not in seen:
            checklist(*names, claim=RESTING, needs=one.needs, specimen=(one,))(_of_fit)
        seen.add(names)
    yield from checklist


def of_runs(runs: Mapping[str, Run]) -> Iterator[Check]:
    """A check for each mechanism that its room runs by itself."""
    checklist = Checklist()
    for mechanism, run in runs.items():
        checklist(mechanism, claim=RESTING, run=(run,))(_of_run)
    yield from checklist


def of_part(part: str, names: Sequence[str], home: Callable[[str], str]) -> Iterator[Check]:
    """Checks of what a part of the hall promises; names whose modules have a proof of their own rest on that one."""
    checklist, folder = Checklist(), proofs.package() / part
    every = [proof.relative_to(folder.parent).as_posix() for proof in proofs.proof_files(folder)]
    resting: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(names):
        own = [file for file in every if file == home(name)]
        resting.setdefault(tuple(own or every), []).append(name)
    for files, about in resting.items():
        checklist(*about, claim=RESTING, files=(files,))(_of_part)
    yield from checklist


def _of_fit(bench: Bench, specimen: Specimen) -> None:
    model = specimen.make(random_state=1)
    used = proofs.resting(lambda: specimen.fit(model, ROWS))
    _rest(bench, used, [words for words in model.guarantee_.assumptions if "simulated" not in words])


def _of_run(bench: Bench, run: Run) -> None:
    assumed: list[str] = []
    used = proofs.resting(lambda: assumed.extend(run()))
    _rest(bench, used, assumed)


def _of_part(bench: Bench, files: Sequence[str]) -> None:
    _rest(bench, [proofs.package() / file for file in files], [_TOLD])


def _rest(bench: Bench, used: Sequence[Path], assumed: Sequence[str]) -> None:
    bench.must(used, "it rests on no proof.")
    for proof in used:
        bench.must(proofs.now(proof) == proofs.listed(proof), f"{proof.name}: the code is not what was proved.")
    bench.rest([proof.relative_to(proofs.package()).as_posix() for proof in used], assumed)
