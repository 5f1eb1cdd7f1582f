"""Audits from outside on published faults of another library: which tool finds them, from the same results, how fast.

The results come from diffprivlib, in an environment of its own (named by SABUN_PEERS_PYTHON, or .venv-peers). The other tools
are read from a folder of sources named by SABUN_AUDIT_PEERS: `jax_privacy` (unpacked from PyPI; its auditing module needs no
JAX) and `dp_auditorium` (from the repository google/differential-privacy; it is not on PyPI). Of the latter the tester by
histograms alone is run: the others train a network with TensorFlow. One that is not there is left out and named.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, main, peer_python
from sabun.audit import mechanism

MEASURES = ("src/sabun/audit/black_box.py", "src/sabun/audit/outcomes.py", "benchmarks/audit_faults.py")
ROOT = Path(__file__).resolve().parents[1]
CLAIM, CONFIDENCE = 1.0, 0.998
_Sides = tuple[Any, Any]


FAULTS = ("digits of Laplace noise", "regression without noise", "half the noise", "parity", "a rare result")
SOUND = ("sound Laplace noise", "sound randomised response")


def published(runs: int) -> tuple[str, dict[str, _Sides]]:
    """What diffprivlib gave on both tables of each of its faults."""
    python = peer_python()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.npz"
        subprocess.run([str(python), "-m", "benchmarks.audit_faults", str(runs), str(file)], cwd=ROOT, check=True)
        held = np.load(file)
        named = zip(FAULTS, ("laplace", "regression"), strict=False)
        return f"diffprivlib {held['version']}", {words: (held[f"{name}.0"], held[f"{name}.1"]) for words, name in named}


def made(runs: int) -> dict[str, _Sides]:
    """Faults of a few lines, and two mechanisms that keep what they claim: results on either table."""
    generator = np.random.default_rng(1)

    def laplace(epsilon: float) -> Any:
        return np.rint(generator.laplace(0, 1000 / epsilon, runs))

    rare = np.where(generator.random(runs) < 0.01, 17.0, 2 * laplace(0.01))
    truth = generator.random((2, runs)) < np.e / (1 + np.e)
    return {
        "half the noise": (laplace(2), 1000 + laplace(2)),
        "parity": (2 * laplace(0.01), 2 * laplace(0.01) + 1),
        "a rare result": (2 * laplace(0.01), rare),
        "sound Laplace noise": (laplace(1), 1000 + laplace(1)),
        "sound randomised response": (1.0 - truth[0], truth[1].astype(float)),
    }


def ours(sides: _Sides) -> float:
    given: list[Iterator[float]] = [iter(side) for side in sides]
    return mechanism(lambda place: next(given[place]), [(0, 1)], CLAIM, runs=len(sides[0]), confidence=CONFIDENCE).epsilon


def jax_privacy(place: Path) -> Callable[[_Sides], float]:
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", place / "jax_privacy" / "auditing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)

    def audited(sides: _Sides) -> float:
        """Scores in both directions, as its documentation asks; half of the significance for each."""
        ends = [module.CanaryScoreAuditor(*pair) for pair in (sides, sides[::-1])]
        half = (1 - CONFIDENCE) / 2
        return max(float(end.epsilon_clopper_pearson(half, one_sided=False)) for end in ends)

    return audited


def dp_auditorium(place: Path) -> Callable[[_Sides], float]:
    """Its histogram tester rejects a claim or not: the largest of a ladder of claims that it rejects is its bound."""
    for name in ("dp_auditorium", "dp_auditorium.configs", "dp_auditorium.testers"):  # without what only other testers need
        package = types.ModuleType(name)
        package.__path__ = [str(place / name.replace(".", "/"))]
        sys.modules[name] = package
    sys.modules.setdefault("etils", types.ModuleType("etils"))
    sys.modules.setdefault("etils.array_types", types.SimpleNamespace(IntArray=np.ndarray))  # type: ignore[arg-type]
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import histogram_tester

    def rejects(sides: _Sides, epsilon: float) -> bool:
        low, high = (float(end) for end in np.quantile(np.concatenate(sides), (0.001, 0.999)))
        config = property_tester_config.HistogramPropertyTesterConfig(
            min_value=low,
            max_value=high,
            histogram_size=50,
            test_discrete_mechanism=False,
            approximate_dp=privacy_property.ApproximateDp(epsilon=epsilon, delta=0.0),
        )
        tester = histogram_tester.HistogramTester(config)
        bounds = [tester.estimate_lower_bound(*pair, failure_probability=(1 - CONFIDENCE) / 2) for pair in (sides, sides[::-1])]
        return any(tester.reject_property(bound) for bound in bounds)

    return lambda sides: max((step / 10 for step in range(1, 81) if rejects(sides, step / 10)), default=0.0)


def tools() -> dict[str, Callable[[_Sides], float]]:
    """Ours, and those of the peers that are there."""
    place, found = Path(os.environ.get("SABUN_AUDIT_PEERS", "/nowhere")), {"": ours}
    version = next((path.name.split("-")[1].removesuffix(".dist") for path in place.glob("jax_privacy-*.dist-info")), "")
    for name, make in ((f"jax_privacy {version}".strip(), jax_privacy), ("dp_auditorium (histogram)", dp_auditorium)):
        try:
            found[name] = make(place)
        except (ImportError, FileNotFoundError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def run(quick: bool) -> list[Figure]:
    runs = 5_000 if quick else 40_000
    source, faults = published(runs)
    cases = faults | made(runs)
    found = {
        name: {case: _timed(lambda tool=tool, case=case: tool(cases[case])) for case in cases} for name, tool in tools().items()
    }
    figures = []
    for name in [name for name in found if name]:
        both = found[""], found[name]
        mine, theirs = (sum(each[case][0] > CLAIM for case in FAULTS) for each in both)
        note = f"claim 1; the first two are {source}'s, {len(faults[FAULTS[1]][0])} results a side for the regression"
        figures.append(_figure(f"faults found of {len(FAULTS)}, {runs} results a side", mine, theirs, name, "faults", note))
        wrong = [sum(each[case][0] > CLAIM for case in SOUND) for each in both]
        figures.append(_figure(f"sound mechanisms refuted, of {len(SOUND)}", *wrong, name, "refuted", ""))
        for case in cases:
            mine, theirs = (each[case][0] for each in both)
            missed = "" if case in SOUND or theirs > CLAIM else f"{name} does not find the fault"
            figures.append(_figure(f"{case}: found", mine, theirs, name, "epsilon", missed))
        seconds = [sum(each[case][1] for case in cases) for each in both]
        figures.append(
            Figure(
                room="audit",
                name="processor time for all",
                ours=seconds[0],
                peer=seconds[1],
                peer_name=name,
                ratio=seconds[1] / seconds[0],
            )
        )
    if len(found) == 1:
        figures += [Figure(room="audit", name=f"{case}: found", ours=found[""][case][0], unit="epsilon") for case in cases]
    return figures


def _timed(job: Callable[[], float]) -> tuple[float, float]:
    """The result, and the processor time it took."""
    began = time.process_time()
    return job(), time.process_time() - began


def _figure(name: str, mine: float, theirs: float, peer: str, unit: str, note: str) -> Figure:
    return Figure(room="audit", name=name, ours=float(mine), peer=float(theirs), peer_name=peer, unit=unit, note=note)


if __name__ == "__main__":
    main(run)
