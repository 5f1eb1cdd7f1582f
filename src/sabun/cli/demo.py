"""`sabun demo`: Sabun's jobs, one after the other, on data that anybody may see.

A room joins the demo with one function in `JOBS`: it gets a `Bench` with a ledger and a folder, and returns a `Release`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sabun.cli._output import Json, print_json, print_line
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.ledger.wording import at_most
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import discrete_laplace, os_coin
from sabun.release import Release, generate_key, publish, save_key

__all__ = ["JOBS", "Bench", "Job", "command"]

_PATIENTS = 1000


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a job of the demo works with."""

    folder: Path
    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question of the demo; its release is saved as `<name>.json`."""

    name: str
    question: str
    run: Callable[[Bench], Release]


def count_old_patients(bench: Bench) -> Release:
    """A private count over a made-up table."""
    ages = 18 + np.arange(_PATIENTS) * 37 % 82
    coin, epsilon = os_coin(), Fraction(1, 2)
    promise = Guarantee(epsilon=epsilon, unit="patient", mechanism="discrete Laplace")

    def draw() -> dict[str, int]:
        # Replacing one patient changes the count by at most 1, so the scale is 1/epsilon.
        return {"count": int((ages >= 65).sum()) + int(discrete_laplace(1 / epsilon, coin=coin))}

    facts = {"column": "age", "at_least": 65}
    return publish(kind="private count", guarantee=promise, parameters=facts, draw=draw, ledger=bench.ledger, coin=coin)


JOBS = (Job(name="count", question="How many of the patients are 65 or older?", run=count_old_patients),)


def command(
    folder: Annotated[
        Path | None, typer.Option(help="A new or empty folder for the files; a temporary one by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Run Sabun's jobs on data that comes with it.

    Makes a ledger, charges it, releases a private result for each job, signs it, saves it.

    Example:

        sabun demo --folder demo
    """
    place = _new_folder(folder)
    bench = Bench(folder=place, ledger=Ledger.create(place / "clinic.ledger", name="demo clinic", unit="patient", epsilon=3))
    key = generate_key()
    save_key(key, place / "publisher.pem")
    save_key(key.public_key(), place / "publisher.pub.pem")
    done: list[dict[str, Any]] = []
    for job in JOBS:
        release = job.run(bench).sign(key)
        file = place / f"{job.name}.json"
        release.save(file)
        done.append({"name": job.name, "question": job.question, "file": str(file)})
        if not json:
            _tell(job, release, file)
    if json:
        print_json({"folder": str(place), "jobs": done, "remaining": bench.ledger.remaining.to_dict()})
    else:
        _close(bench)


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="sabun-demo-"))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ParameterError(f"folder must be new or empty; got {str(folder)!r}. Choose another with --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tell(job: Job, release: Release, file: Path) -> None:
    print_line(job.question, style="bold cyan")
    print_line(str(release))
    print_line(f"Saved as {str(file)!r}.\n", style="green")


def _close(bench: Bench) -> None:
    left, whole = bench.ledger.remaining.epsilon, bench.ledger.budget.epsilon
    print_line(f"The ledger {bench.ledger.name!r} has epsilon {at_most(left)} of {at_most(whole)} left.", style="bold")
    print_line(f"Everything is in {str(bench.folder)!r}. Next, try:")
    print_line(f"  sabun ledger show {bench.folder / 'clinic.ledger'}")
    print_line(f"  sabun release verify {bench.folder / 'count.json'} --key {bench.folder / 'publisher.pub.pem'}")
