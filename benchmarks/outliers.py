"""Speed and noise of the private outlier count, beside scipy, scikit-learn and BLAS in the same run.

Ours is the whole private pipeline (degrees, ladder, noise, error bar) unless a figure says "degrees". The peers of the private
count only find the exact number of outliers, each by the fastest way it offers: whether a record has k neighbours, not how
many it has. Those that answer a record at a time are timed on a sample of the records and scaled to all of them. One
thread and CPU seconds throughout.

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
LOOP = "a user's own loop: BLAS float64 in blocks until k"


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


def scipy_outliers(points: Floats, radius: float, queries: int) -> float:
    """Seconds to tell which records have fewer than K others within the radius: the K + 1 nearest, the record itself first."""
    build = cpu_seconds(lambda: cKDTree(points), repeat=1)
    built, beyond = cKDTree(points), float(np.nextafter(radius, np.inf))

    def ask() -> int:
        reach, _ = built.query(_sample(points, queries), k=K + 1, distance_upper_bound=beyond, workers=1)
        return int(np.isinf(reach[:, -1]).sum())

    return build + cpu_seconds(ask, repeat=2) * len(points) / queries


def sklearn_outliers(points: Floats, radius: float, queries: int) -> float:
    build = cpu_seconds(lambda: KDTree(points), repeat=1)
    built = KDTree(points)

    def ask() -> int:
        return int((built.query(_sample(points, queries), k=K + 1)[0][:, -1] > radius).sum())

    return build + cpu_seconds(ask, repeat=2) * len(points) / queries


def blas_outliers(points: Floats, radius: float, block: int) -> float:
    """Matrix products against one block of records after the other, for those that still lack neighbours: a user's own loop."""
    norms, squared = (points**2).sum(1), radius * radius

    def count() -> int:
        found = np.full(len(points), -1)  # nobody is their own neighbour
        for first in range(0, len(points), block):
            others = slice(first, first + block)
            waiting = np.flatnonzero(found < K)
            for few in np.array_split(waiting, max(1, len(waiting) // 1024)):
                distances = norms[few, None] + norms[others] - 2 * (points[few] @ points[others].T)
                found[few] += (distances <= squared).sum(1)
        return int((found < K).sum())

    return cpu_seconds(count, repeat=2)


def _sample(points: Floats, queries: int) -> Floats:
    return points[:: max(1, len(points) // queries)][:queries]


def pipeline(points: Floats, radius: float) -> float:
    estimator = OutlierCount(k=K, radius=radius, epsilon=1)
    return cpu_seconds(lambda: estimator.fit(points), repeat=2)


def dense(n: int, d: int, *, library: float, loop: float | None) -> list[Figure]:
    """The count beside the faster library call, then beside a loop of products, which a tree beats in few dimensions."""
    points = people_with_outliers(n, d)
    radius = dense_radius(points)
    ours = pipeline(points, radius)
    calls = {
        f"{SCIPY}, k + 1 nearest": scipy_outliers(points, radius, 2000),
        f"scikit-learn {sklearn.__version__} KDTree, k + 1 nearest": sklearn_outliers(points, radius, 2000),
    }
    best = min(calls, key=lambda peer: calls[peer])
    peers = [(f"faster of two library calls: {best}", calls[best], library)]
    if loop is not None:
        peers.append((LOOP, min(blas_outliers(points, radius, block) for block in (1024, 4096)), loop))
    median = float(np.median((_squared(points[:100], points) <= radius * radius).mean(axis=1)))
    name = f"private count, dense, N = {n:,}, d = {d}"
    note = (
        "the whole private pipeline against the exact number alone; about 1 % outliers, "
        f"the median record has {median:.0%} of all as neighbours"
    )
    return [
        faster("outliers", name, ours=ours, peer=seconds, peer_name=peer, target=target, note=note)
        for peer, seconds, target in peers
    ]


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
    found = dense(n, 8, library=5, loop=1) + dense(n, 32, library=20, loop=0.5) + dense(10 * n, 3, library=1, loop=None)
    shrink = 5 if quick else 1
    cases = [(50_000, 2, 10), (50_000, 8, 10), (50_000, 8, 200), (30_000, 32, 10), (30_000, 32, 200)]
    found += [sparse(size // shrink, d, degree) for size, d, degree in cases]
    return [*found, covers(), *noise()]


if __name__ == "__main__":
    main(run)
