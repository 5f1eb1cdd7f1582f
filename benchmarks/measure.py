"""How a figure is measured and written down: ours and the peer's in one run, on one machine, as a ratio.

A benchmark module has `run(quick: bool) -> list[Figure]` and ends with `main(run)`:

    python -m benchmarks.outliers [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.freshness import ROOT, modules
from sabun.telling.harness import least_seconds, machine, write_record

PEERS = ROOT / ".venv-peers"
PEER_PACKAGES = (
    "numpy<2.4",
    "scipy",
    "scikit-learn<1.9",
    "diffprivlib==0.6.6",
    "densratio==0.4.0",
    "pure-ldp==1.2.0",
    "multi-freq-ldpy==0.2.5",
    "xxhash",
    "statsmodels",
    "pipeline-dp==0.3.1",
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure.

    Args:
        room: Where it belongs.
        name: What was measured, with its sizes.
        ours: Our value.
        peer: The peer's value in the same unit and the same run; None where there is no peer.
        peer_name: Who the peer is, with its version.
        unit: Unit of both values, e.g. "s", "samples/s", "MSE".
        ratio: How many times better ours is (above 1 = better); None without a peer.
        target: The ratio we state and hold ourselves to; None where it is only reported.
        note: What one must know to read the figure.
    """

    room: str
    name: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    unit: str = "s"
    ratio: float | None = None
    target: float | None = None
    note: str = ""

    def __str__(self) -> str:
        line = f"{self.room:<11} {self.name:<58} ours {self.ours:>10.4g} {self.unit}"
        if self.peer is not None:
            line += f"   {self.peer_name} {self.peer:.4g}"
        if self.ratio is not None:
            line += f"   ratio {self.ratio:.3g}"
        if self.target is not None:
            line += f" (stated {self.target:g}: {'holds' if self.holds else 'MISSED'})"
        return line

    @property
    def holds(self) -> bool:
        """Whether the stated ratio was reached (true where none is stated)."""
        return self.target is None or (self.ratio is not None and self.ratio >= self.target)


def faster(
    room: str, name: str, *, ours: float, peer: float, peer_name: str, target: float | None = None, note: str = ""
) -> Figure:
    """A figure of seconds: the ratio says how many times less ours needs."""
    return Figure(room=room, name=name, ours=ours, peer=peer, peer_name=peer_name, ratio=peer / ours, target=target, note=note)


def cpu_seconds(job: Callable[[], object], *, repeat: int = 3) -> float:
    """The least process CPU time of a few runs."""
    return least_seconds(job, clock=time.process_time, repeat=repeat)


def wall_seconds(job: Callable[[], object], *, repeat: int = 3) -> float:
    """The least wall time of a few runs."""
    return least_seconds(job, clock=time.perf_counter, repeat=repeat)


def peer_python(
    home: Path = PEERS, installs: Sequence[Sequence[str]] = (PEER_PACKAGES,), *, named: str = "SABUN_PEERS_PYTHON"
) -> str:
    """The interpreter of the peers' own environment; made on first use, or named by an environment variable.

    Args:
        home: Where the environment is.
        installs: What pip is asked for, one call after the other.
        named: The variable.
    """
    if found := os.environ.get(named):
        return found
    python = home / "bin" / "python"
    if not (home / ".installed").exists():
        print(f"Installing the peers into {home.name} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        for packages in installs:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        (home / ".installed").touch()
    return str(python)


def run_peer(script: str, *arguments: str) -> dict[str, float]:
    """Runs a peer's script (source text that prints one JSON object as its last line) in the peers' environment."""
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [peer_python(), "-c", script, *arguments], capture_output=True, text=True, check=True, env=os.environ | single
    )
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def keep(file: Path, figures: list[Figure], *, room: str, quick: bool, place: dict[str, str] | None = None) -> None:
    """Writes a run down, with digests of the modules it measured.

    Args:
        file: Where to.
        figures: What was measured.
        room: Name of the benchmark module.
        quick: Whether sizes were smaller than usual.
        place: Where and when; by default this machine, now.
    """
    record = {
        "machine": place or machine(),
        "quick": quick,
        "modules": modules(room),
        "figures": [asdict(figure) for figure in figures],
    }
    write_record(file, record)


def main(run: Callable[[bool], list[Figure]]) -> None:
    """Command line of one benchmark module."""
    parser = argparse.ArgumentParser(description="Prints each figure as a ratio to a peer measured in the same run.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures = run(options.quick)
    for figure in figures:
        print(figure)
    if options.json:
        keep(options.json, figures, room=Path(inspect.getfile(run)).stem, quick=options.quick)
