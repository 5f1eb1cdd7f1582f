"""Samples per second of the exact samplers beside OpenDP's, in one run on one machine.

Each sampler is built once, warmed up once and timed equally often; the shortest run counts. OpenDP's time includes its own
passing of lists in and out, as a Python user meets it.

    python -m benchmarks.noise [--quick] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from benchmarks.measure import Figure, main, wall_seconds
from sabun.privacy.noise import discrete_gaussian, discrete_laplace, os_coin, spherical_laplace

MEASURES = ("src/sabun/privacy/noise",)
SCALES = {"1": 1, "10": 10, "1000": 1000, "2**20": 1 << 20}
TARGET = 15.0


def run(quick: bool) -> list[Figure]:
    size = 20_000 if quick else 100_000
    figures = [_compare(law, name, size) for law in ("laplace", "gaussian") for name in SCALES]
    return figures + [_spherical(dimension) for dimension in (1, 10, 100, 500)]


def _compare(law: str, name: str, size: int) -> Figure:
    coin, scale = os_coin(), SCALES[name]
    theirs, zeros = _opendp(law, scale), [0] * size
    if law == "laplace":
        ours = _best(lambda: discrete_laplace(scale, coin=coin, size=size))
    else:
        ours = _best(lambda: discrete_gaussian(scale * scale, coin=coin, size=size))
    peer = _best(lambda: theirs(zeros))
    return Figure(
        room="noise",
        name=f"discrete {law}, scale {name}, {size} values",
        ours=size / ours,
        peer=size / peer,
        peer_name=f"opendp {version('opendp')}",
        unit="samples/s",
        ratio=peer / ours,
        target=TARGET,
    )


def _spherical(dimension: int) -> Figure:
    seconds = _best(lambda: spherical_laplace(1000, dimension=dimension, coin=os_coin()))
    return Figure(room="noise", name=f"spherical noise, one vector of dimension {dimension}", ours=seconds)


def _opendp(law: str, scale: int) -> Callable[[list[int]], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(scale))


def _best(job: Callable[[], object]) -> float:
    """The shortest of three runs, after one that warms up."""
    job()
    return wall_seconds(job)


if __name__ == "__main__":
    main(run)
