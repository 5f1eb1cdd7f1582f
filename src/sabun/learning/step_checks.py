"""Laws of single steps of training: who takes part, what a sum is divided by, what a solver owes, what a run leaves behind."""

from __future__ import annotations

import math
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sabun.asking.evidence import ROWS, Bench, Checklist, installed
from sabun.errors import InternalError
from sabun.learning import PrivateClassifier, checkpoint, clipping, dpsgd, laplace_sgd, objective
from sabun.learning.poisson import PoissonPlan
from sabun.learning.stream import Stream
from sabun.privacy.noise import os_coin

__all__ = ["CHECKS"]

CHECKS = Checklist()

_FAR = 6.8
"""A standard normal number is farther from 0 once in 10^11."""


@CHECKS("dp-sgd", "laplace-sgd", rate=[0.1, 0.5])
def _batches_have_the_size_and_the_spread_of_independent_tosses(bench: Bench, rate: float) -> str:
    """A fixed size, a shuffled table cut in pieces, or one toss for two rows would each show in the variance."""
    rows, steps = 400, 1500
    plan, stream = PoissonPlan.of(sampling_rate=rate, epochs=math.ceil(steps * rate)), Stream.fresh(os_coin())
    taken = np.zeros((steps, rows), dtype=bool)
    for step in range(steps):
        taken[step, plan.batch(rows, stream, step)] = True
    sizes, spread = taken.sum(axis=1), rows * rate * (1 - rate)
    bench.must(abs(sizes.mean() - rows * rate) <= _FAR * math.sqrt(spread / steps), f"{sizes.mean():.2f} rows in a batch.")
    found = float(sizes.var(ddof=1)) / spread
    bench.must(abs(found - 1) <= _FAR * math.sqrt(2 / steps), f"batch sizes have {found:.3f} times the variance of tosses.")
    each = np.abs(taken.sum(axis=0) - steps * rate).max() / math.sqrt(steps * rate * (1 - rate))
    bench.must(each <= _FAR + 1, "some row takes part more often than others.")
    for shift in (1, 7):  # a row's tosses of one step and the next, and two rows of one step
        for first, second in ((taken[:-shift], taken[shift:]), (taken[:, :-shift], taken[:, shift:])):
            both = (first & second).mean()
            bench.must(abs(both - rate**2) <= _FAR * rate / math.sqrt(first.size) * 2, f"tosses {shift} apart go together.")
    return f"variance {found:.3f} times that of independent tosses, {steps} batches of {rows} rows"


@CHECKS("dp-sgd", "laplace-sgd")
def _every_step_of_a_run_draws_a_batch_of_its_own(bench: Bench) -> str:
    """Whatever way of training has secret batches; whoever is in a batch that is used again is in all of them."""
    from sabun.learning.evidence import VARIANTS

    told, true = list[str](), PoissonPlan.batch
    ways = {one.mechanisms: one for one in reversed(VARIANTS) if one.secret_batches and installed(one.needs)}
    for specimen in ways.values():
        asked: list[int] = []

        def noted(plan: PoissonPlan, rows: int, stream: Stream, step: int, asked: list[int] = asked) -> Any:
            asked.append(step)
            return true(plan, rows, stream, step)

        bench.replace(PoissonPlan, "batch", noted)
        specimen.fit(specimen.make(), ROWS)
        bench.must(asked == list(range(len(asked))) and len(asked) > 1, f"{specimen}: batches of the steps {asked[:5]}.")
        told.append(f"{', '.join(specimen.mechanisms)}: {len(asked)} steps")
    return "; ".join(told)


@CHECKS("dp-sgd", "laplace-sgd", method=["dp-sgd", "laplace-sgd"])
def _an_update_does_not_depend_on_the_size_of_its_batch(bench: Bench, method: str) -> None:
    """Sums are made to be nothing and noise to come out the same; nobody, half of the rows or everybody takes part."""
    outcome = np.linspace(-3, 4, 6)
    bench.replace(dpsgd, "rounded_gaussian", lambda centre, **_: outcome[: len(centre)].copy())
    bench.replace(laplace_sgd, "discrete_laplace", lambda *_, size, **__: np.full(size, 2**31, dtype=object))
    bench.replace(clipping.ClippedSum, "__call__", lambda *_: np.zeros(6))
    found = []
    for batch in (np.arange(0), np.arange(0, 60, 2), np.arange(60)):
        bench.replace(PoissonPlan, "batch", lambda *_, batch=batch: batch)
        how: dict[str, Any] = {"method": method, "sampling_rate": 0.5, "epochs": 1, "n_public": 60, "hidden": ()}
        how |= {"delta": 1e-3} if method == "dp-sgd" else {}
        model = PrivateClassifier(epsilon=1, classes=["no", "yes"], **how)
        found.append(np.asarray(model.fit(ROWS, np.where(ROWS[:, 0] > 0.5, "yes", "no")).release_["weights"]))
    bench.must(
        all(np.allclose(found[0], one, rtol=0, atol=1e-6) for one in found),
        "a small batch takes another step than a large one.",
    )


@CHECKS("objective-perturbation")
def _a_solver_that_has_not_arrived_raises(bench: Bench) -> None:
    """Noise that was calibrated to a minimum is no noise for any other point."""
    for most in (0, 1):
        bench.replace(objective, "_MOST_STEPS", most)
        try:
            objective._minimum(ROWS, np.where(ROWS[:, 0] > 0.5, 1.0, -1.0), 0.01, np.array([9.0, -7.0]), 1e-9)
        except InternalError:
            continue
        bench.fail(f"after {most} steps it handed over whatever it had.")


@CHECKS("dp-sgd")
def _a_finished_run_overwrites_its_key_before_anything_goes_away(bench: Bench) -> str:
    """The order of writing, syncing and removing in the folder of a run that can be resumed."""
    steps: list[str] = []
    true_sync, true_unlink = os.fsync, Path.unlink

    def synced(handle: int) -> None:
        with suppress(OSError):
            name = Path(os.readlink(f"/proc/self/fd/{handle}")).name
            steps.append(f"sync {name}" + (" of zeros" if name and not any(_content(handle)) else ""))
        true_sync(handle)

    def unlinked(path: Path, *given: Any, **how: Any) -> None:
        steps.append(f"remove {path.name}")
        true_unlink(path, *given, **how)

    bench.replace(os, "fsync", synced)
    bench.replace(Path, "unlink", unlinked)
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {
            "method": "dp-sgd",
            "sampling_rate": 0.5,
            "epochs": 1,
            "n_public": 60,
            "hidden": (),
            "delta": 1e-3,
        }
        model = PrivateClassifier(epsilon=1, classes=["no", "yes"], checkpoint=Path(folder) / "run", **how)
        model.fit(ROWS, np.where(ROWS[:, 0] > 0.5, "yes", "no"))
        left = [path.name for path in (Path(folder) / "run").iterdir() if path.stat().st_size and "lock" not in path.name]
    bench.must(not left, f"left behind: {left}.")
    key, state = checkpoint._SECRET, checkpoint._STATE
    last = {step: place for place, step in enumerate(steps)}
    if Path("/proc/self/fd").exists():
        bench.must(f"sync {key}" in last, "the key was not on disk before it was used.")
        gone = last.get(f"sync {key} of zeros", len(steps)) < last[f"remove {key}"]
        bench.must(gone, "the key went away before it was overwritten.")
    bench.must(last[f"remove {key}"] < last[f"remove {state}"], "the state went away before its key.")
    return f"{len(steps)} steps"


def _content(handle: int) -> bytes:
    return Path(f"/proc/self/fd/{handle}").read_bytes() if Path(f"/proc/self/fd/{handle}").is_file() else b"?"


class _Stopped(Exception):
    """A crash in the middle of a run."""


@CHECKS("dp-sgd", "dp-adam", way=["dp-sgd", "dp-adam"])
def _nothing_that_a_stopped_run_leaves_can_be_computed_from_its_rows(bench: Bench, way: str) -> str:
    """Two runs over the same rows, stopped before their first step: no word of their files but public ones is the same.

    A digest without a key would be the same twice, and whoever guesses at the table could try the guess out.
    """
    left: list[set[str]] = []

    def stopped(*_: Any, **__: Any) -> Any:
        raise _Stopped

    bench.replace(checkpoint, "_run", stopped)
    # Rows of another table, for what is public about a run stays the same with them.
    for rows in (ROWS, ROWS, 1 - ROWS):
        with tempfile.TemporaryDirectory() as folder:
            how: dict[str, Any] = {"method": way, "epochs": 1, "n_public": 60, "hidden": (), "delta": 1e-3}
            model = PrivateClassifier(epsilon=1, classes=["no", "yes"], checkpoint=Path(folder) / "run", **how)
            with suppress(_Stopped):
                model.fit(rows, np.where(rows[:, 0] > 0.5, "yes", "no"))
            files = [path for path in (Path(folder) / "run").iterdir() if path.is_file()]
            left.append({word for path in files for word in re.findall(r"[0-9a-f]{16,}", path.read_bytes().decode("latin-1"))})
    first, again, other = left
    bench.must(bool(first) and bool(again), "nothing was left to look at.")
    bench.must(first & again <= other, "a digest of the rows has no key.")
    return f"{len(first)} words, {len(first & again)} of them the same for any table"
