"""Audits from outside on published faults of another library: which tool finds them, from the same results, how fast.

The results come from diffprivlib, in an environment of its own (named by SABUN_PEERS_PYTHON, or .venv-peers). The other tools
are read from a folder of sources named by SABUN_AUDIT_PEERS: `jax_privacy` (unpacked from PyPI; its auditing module needs no
JAX) and `dp_auditorium` (from the repository google/differential-privacy). One that is not there is left out and named.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, main, peer_python
from sabun.audit import mechanism
from sabun.telling.harness import timed

MEASURES = ("src/sabun/audit/black_box.py", "benchmarks/audit_faults.py")
ROOT = Path(__file__).resolve().parents[1]
CLAIM, CONFIDENCE = 1.0, 0.998
_Sides = tuple[Any, Any]


def results(runs: int) -> tuple[str, dict[str, _Sides]]:
    """What diffprivlib gave on both tables of each fault."""
    python = peer_python()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.npz"
        subprocess.run([str(python), "-m", "benchmarks.audit_faults", str(runs), str(file)], cwd=ROOT, check=True)
        held = np.load(file)
        return f"diffprivlib {held['version']}", {
            name: (held[f"{name}.0"], held[f"{name}.1"]) for name in ("laplace", "regression")
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


def run(quick: bool) -> list[Figure]:
    runs = 20_000 if quick else 60_000
    source, faults = results(runs)
    place, figures = Path(os.environ.get("SABUN_AUDIT_PEERS", "/nowhere")), []
    tools: dict[str, Callable[[_Sides], float]] = {}
    for name, make in (("jax_privacy", jax_privacy), ("dp_auditorium", dp_auditorium)):
        try:
            tools[name] = make(place)
        except (ImportError, FileNotFoundError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    for fault, sides in faults.items():
        found, seconds = timed(lambda sides=sides: ours(sides))
        figures.append(
            Figure(
                room="audit", name=f"{source}: {fault}, claim 1, {len(sides[0])} runs a side", ours=found, unit="epsilon found"
            )
        )
        figures.append(Figure(room="audit", name=f"{fault}: time", ours=seconds))
        for name, tool in tools.items():
            theirs, their_seconds = timed(lambda tool=tool, sides=sides: tool(sides))
            ratio = found / theirs if theirs else None
            note = "" if theirs > CLAIM else f"{name} does not find the fault"
            figures.append(
                Figure(
                    room="audit",
                    name=f"{fault}: found",
                    ours=found,
                    peer=theirs,
                    peer_name=name,
                    unit="epsilon",
                    ratio=ratio,
                    note=note,
                )
            )
            figures.append(
                Figure(
                    room="audit",
                    name=f"{fault}: seconds",
                    ours=seconds,
                    peer=their_seconds,
                    peer_name=name,
                    ratio=their_seconds / seconds,
                )
            )
    return figures


if __name__ == "__main__":
    main(run)
