"""Speed and noise of the private outlier count, beside scipy, scikit-learn and BLAS in the same run.

The peers only count neighbours; ours is the whole private pipeline (degrees, ladder, noise, error bar) unless a figure says
"degrees". Peers are timed on a sample of the queries and scaled to all of them: they treat each query alike. One thread
and CPU seconds throughout.

    python -m benchmarks.outliers [--quick] [--json FILE]
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.neighbors import KDTree
from threadpoolctl import threadpool_limits

from benchmarks.measure import Figure, cpu_seconds, faster, main
from sabun.outliers import OutlierCount, tree
from sabun.outliers.enclosing import enumerate_balls
from sabun.outliers.ladder import Cover
from sabun.outliers.laws import PowerTail
from sabun.outliers.paper import theorem_two
from sabun.outliers.reproduction import sample_of
from sabun.outliers.sensitivity import measure, smooth_bound

Floats = NDArray[np.float64]
K = 5
SCIPY = f"scipy {scipy.__version__} cKDTree"


def people_with_outliers(n: int, d: int) -> Floats:
    """Heavy-tailed records (Student's t, more degrees of freedom in more dimensions): one in a hundred lies far out."""
    rng, freedom = np.random.default_rng(d), 4 + d // 2
    scales: Floats = np.sqrt(freedom / rng.chisquare(freedom, size=(n, 1)))
    return rng.normal(size=(n, d)) * scales


def dense_radius(points: Floats) -> float:
    """The radius at which 1 % of a sample are outliers."""
    sample = [points[first : first + 50] for first in range(0, min(1000, 10**8 // len(points)), 50)]
    reach = np.sqrt(np.concatenate([np.partition(_squared(part, points), K, axis=1)[:, K] for part in sample]))
    return float(np.quantile(reach, 0.99))


def sparse_radius(points: Floats, degree: int) -> float:
    """The radius at which the median record has that many neighbours."""
    return float(np.median(np.sqrt(np.partition(_squared(points[:300], points), degree, axis=1)[:, degree])))


def _squared(left: Floats, right: Floats) -> Floats:
    result: Floats = np.maximum((left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T, 0)
    return result


def scipy_degrees(points: Floats, radius: float, queries: int) -> float:
    """Seconds for all degrees, from a sample of the queries."""
    build = cpu_seconds(lambda: cKDTree(points), repeat=1)
    built = cKDTree(points)
    asked = cpu_seconds(lambda: built.query_ball_point(points[:queries], radius, return_length=True, workers=1), repeat=1)
    return build + asked * len(points) / queries


def sklearn_degrees(points: Floats, radius: float, queries: int) -> float:
    build = cpu_seconds(lambda: KDTree(points), repeat=1)
    built = KDTree(points)
    asked = cpu_seconds(lambda: built.query_radius(points[:queries], radius, count_only=True), repeat=1)
    return build + asked * len(points) / queries


def blas_degrees(points: Floats, radius: float, queries: int) -> float:
    norms = (points**2).sum(1)
    squared = radius * radius

    def block() -> Floats:
        return ((norms[:queries, None] + norms - 2 * (points[:queries] @ points.T)) <= squared).sum(1)

    return cpu_seconds(block, repeat=2) * len(points) / queries


def pipeline(points: Floats, radius: float) -> float:
    estimator = OutlierCount(k=K, radius=radius, epsilon=1)
    return cpu_seconds(lambda: estimator.fit(points), repeat=2)


def dense(n: int, d: int, *, scipy_target: float, blas_target: float | None) -> list[Figure]:
    points = people_with_outliers(n, d)
    radius = dense_radius(points)
    ours, queries = pipeline(points, radius), 60 if d > 4 else 2000
    name = f"private count, dense, N = {n:,}, d = {d}"
    median = float(np.median((_squared(points[:100], points) <= radius * radius).mean(axis=1)))
    note = f"whole pipeline against degrees alone; about 1 % outliers, the median record has {median:.0%} of all as neighbours"
    found = [
        faster(
            "outliers",
            name,
            ours=ours,
            peer=scipy_degrees(points, radius, queries),
            peer_name=SCIPY,
            target=scipy_target,
            note=note,
        )
    ]
    if blas_target is not None:
        blas = blas_degrees(points, radius, 400)
        found.append(faster("outliers", name, ours=ours, peer=blas, peer_name="BLAS float64", target=blas_target, note=note))
    return found


def sparse(n: int, d: int, degree: int) -> Figure:
    points = np.random.default_rng(d).normal(size=(n, d))
    radius = sparse_radius(points, degree)
    ours = cpu_seconds(lambda: tree.neighbours_within(points, radius * radius, 41), repeat=2)
    queries = 1500 if d > 4 else 20_000
    peers = {
        SCIPY: scipy_degrees(points, radius, queries),
        f"scikit-learn {sklearn.__version__} KDTree": sklearn_degrees(points, radius, queries),
        "BLAS float64": blas_degrees(points, radius, 400),
    }
    best = min(peers, key=lambda peer: peers[peer])
    name = f"degrees, sparse, N = {n:,}, d = {d}, median degree {degree}"
    return faster("outliers", name, ours=ours, peer=peers[best], peer_name=f"best of three: {best}", target=0.8)


def covers() -> Figure:
    cloud = np.random.default_rng(0).normal(size=(14, 3))
    Cover("link-core", cloud, 1.0).on(14)
    ours = cpu_seconds(lambda: [Cover("link-core", cloud, 1.0).on(14) for _ in range(50)]) / 50
    peer = cpu_seconds(lambda: enumerate_balls(cloud, 1.0), repeat=1)
    return faster("outliers", "link-core, |V| = 14", ours=ours, peer=peer, peer_name="Algorithm 1, repaired", target=1000)


def noise() -> list[Figure]:
    found = []
    for name, radius in (("ionosphere", 5.49), ("wdbc", 9.0)):
        points = sample_of(name, seed=0).points
        for epsilon in (0.3, 0.5, 1.0):
            inverse, beta = theorem_two(epsilon=epsilon, delta=1e-6)
            peer = inverse * smooth_bound(points, k=K, radius=radius, beta=beta)
            exact = Fraction(str(epsilon))
            law = PowerTail(epsilon=exact, beta=exact / 5)
            _, bound = measure(points, k=K, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
            ours = law.deviation(float(bound))
            label = "Theorem 2 Gaussian, same sound ladder"
            found.append(
                Figure(
                    room="outliers",
                    name=f"noise on {name}, epsilon = {epsilon:g}",
                    ours=ours,
                    peer=peer,
                    peer_name=label,
                    unit="std",
                    ratio=peer / ours,
                    target=50,
                )
            )
    return found


def run(quick: bool) -> list[Figure]:
    with threadpool_limits(1):
        return _run(quick)


def _run(quick: bool) -> list[Figure]:
    OutlierCount(k=K, radius=1, epsilon=1).fit(np.zeros((100, 2)))  # compiles
    tree.neighbours_within(np.random.default_rng(0).normal(size=(3000, 20)), 1.0, 5)
    n = 20_000 if quick else 100_000
    found = dense(n, 8, scipy_target=50, blas_target=20) + dense(n, 32, scipy_target=50, blas_target=8)
    found += dense(10 * n, 3, scipy_target=20, blas_target=None)
    shrink = 5 if quick else 1
    cases = [(50_000, 2, 10), (50_000, 8, 10), (50_000, 8, 200), (30_000, 32, 10), (30_000, 32, 200)]
    found += [sparse(size // shrink, d, degree) for size, d, degree in cases]
    return [*found, covers(), *noise()]


if __name__ == "__main__":
    main(run)
