"""Key-value collection beside multi-freq-ldpy and pure-ldp (speed) and beside the paper's method (accuracy), in one run.

Neither peer has a key-value protocol. Sampling one key and answering with 3-ary randomized response is the same randomizer as
KV3; direct encoding over 2d + 1 symbols is the nearest thing in pure-ldp. Both are called as their users call them: once per
person. Our simulation makes up all people at once and is no device; the device, which tosses the operating system's bits, books
and remembers, has rows of its own.

PrivKV as published costs less than its nominal epsilon (1.38 at 2), so its accuracy is compared twice: at equal nominal
epsilon, as its users would set it, and at equal certified epsilon, where both promise the same.

    python -m benchmarks.keyvalue [--quick] [--json FILE]
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, cpu_seconds, faster, main, run_peer
from sabun.datasets import keyvalue_population
from sabun.keyvalue import People, Study
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.client import certified_epsilon
from sabun.keyvalue.closed_form import maximum_likelihood
from sabun.keyvalue.simulation import sampled_reports

MULTI, PURE = "multi-freq-ldpy 0.2.5", "pure-ldp 1.2.0"
_ALLOWED = 50e-6
_SIMULATION = "made-up people, all at once, by a simulator that protects nobody, beside one call per person; no device"
_DEVICE = "the peer's call draws a symbol from numpy; the device tosses the operating system's bits, books and remembers"

PEER_SPEED = """
import json, sys, time
import numpy as np
from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_GRR_Client, SMP_GRR_Aggregator_MI
n, d = int(sys.argv[1]), int(sys.argv[2])
def best(job, repeat=2):
    found = []
    for _ in range(repeat):
        start = time.process_time(); result = job(); found.append(time.process_time() - start)
    return min(found), result
tuples = [tuple(row) for row in np.random.default_rng(0).integers(0, 3, (1000, d)).tolist()]
sizes = [3] * d
multi = lambda: [SMP_GRR_Client(tuples[i % 1000], sizes, d, 2.0) for i in range(n)]
SMP_GRR_Client(tuples[0], sizes, d, 2.0)
multi_client, reports = best(multi, 1)
SMP_GRR_Aggregator_MI(reports[: 50 * d], sizes, d, 2.0)
multi_count, _ = best(lambda: SMP_GRR_Aggregator_MI(reports, sizes, d, 2.0))
del reports
import types
try:
    import statsmodels.api
except ImportError:  # pure-ldp imports it without declaring it; nothing that is measured here uses it
    sys.modules["statsmodels"] = types.ModuleType("statsmodels")
    sys.modules["statsmodels.api"] = sys.modules["statsmodels"].api = types.ModuleType("statsmodels.api")
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
client = DEClient(2.0, 2 * d + 1, index_mapper=lambda x: x)
data = np.random.default_rng(1).integers(0, 2 * d + 1, n).tolist()
pure_client, reports = best(lambda: [client.privatise(x) for x in data])
def aggregate():
    server = DEServer(2.0, 2 * d + 1, index_mapper=lambda x: x)
    for report in reports:
        server.aggregate(report)
pure_count, _ = best(aggregate)
result = {"multi_client": multi_client, "multi_count": multi_count, "pure_client": pure_client, "pure_count": pure_count}
print(json.dumps(result))
"""

PEER_IBU = """
import json, sys, time
import numpy as np
from multi_freq_ldpy.estimators.Histogram_estimator import IBU
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU
counts, keep, other, epsilon = np.array(json.loads(sys.argv[1])), float(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
A = np.full((3, 3), other); np.fill_diagonal(A, keep)
shares = counts / counts.sum(axis=1, keepdims=True)
reports = [np.repeat(np.arange(3), row).tolist() for row in counts]
def best(job):
    found = []
    for _ in range(3):
        start = time.process_time(); job(); found.append(time.process_time() - start)
    return min(found)
step = best(lambda: [IBU(3, A, row, 10000, 1e-12, "max_abs") for row in shares])
whole = best(lambda: [GRR_Aggregator_IBU(row, 3, epsilon) for row in reports])
theta = [list(map(float, IBU(3, A, row, 100000, 1e-15, "max_abs"))) for row in shares]
print(json.dumps({"step": step, "whole": whole, "theta": theta}))
"""


def run(quick: bool) -> list[Figure]:
    n = 1_000_000
    figures = [figure for d in ((50,) if quick else (50, 1000)) for figure in _speed(n, d)]
    return [*figures, *_estimation(n), *_accuracy(6 if quick else 60), *_sparse(2 if quick else 5), *_sets(), *_device(quick)]


def made_up(n: int, d: int, most: int, seed: int = 0) -> People:
    """People with 1 to `most` keys each, popular keys first (Zipf), values that fall with popularity."""
    dice = np.random.default_rng(seed)
    weights = 1 / np.arange(1, d + 1)
    drawn = dice.choice(d, size=(n, most), p=weights / weights.sum())
    held = np.arange(most) < dice.integers(1, most + 1, n)[:, None]
    owner, place = np.nonzero(held)
    pairs = np.unique(owner.astype(np.int64) * d + drawn[owner, place])
    keys = pairs % d
    starts = np.searchsorted(pairs, np.arange(n + 1, dtype=np.int64) * d)
    return People(starts=starts, keys=keys.astype(np.int32), values=np.linspace(0.8, -0.8, d)[keys])


def _speed(n: int, d: int) -> list[Figure]:
    study = Study(keys=list(range(d)), epsilon=2.0, protocol="kv3")
    people = made_up(n, d, 5)
    index, symbol = sampled_reports(study, people, random_state=0)
    client = cpu_seconds(lambda: sampled_reports(study, people, random_state=1), repeat=7)
    count = cpu_seconds(lambda: study.tally().add_many(symbol, index), repeat=7)
    peer = run_peer(PEER_SPEED, str(n), str(d))
    title = f"n = {n:,}, d = {d}"
    made = f"simulated reports (NOT PRIVATE), {title}"
    device = f"one report on a device, diary in memory, d = {d}"
    return [
        faster("keyvalue", made, ours=client, peer=peer["multi_client"], peer_name=MULTI, target=100, note=_SIMULATION),
        faster("keyvalue", made, ours=client, peer=peer["pure_client"], peer_name=PURE, target=25),
        faster("keyvalue", device, ours=_a_report(1, 2000, d), peer=peer["multi_client"] / n, peer_name=MULTI, note=_DEVICE),
        faster("keyvalue", f"counting, {title}", ours=count, peer=peer["multi_count"], peer_name=MULTI, target=100),
        faster("keyvalue", f"counting, {title}", ours=count, peer=peer["pure_count"], peer_name=PURE, target=100),
    ]


def _estimation(n: int) -> list[Figure]:
    epsilon = 1.0
    study = Study(keys=list(range(50)), epsilon=epsilon, protocol="kv3")
    tally = study.simulate(*keyvalue_population("gaussian"), n=n, random_state=0)
    seen = tally.counts()
    rows = np.column_stack([seen.plus, seen.minus, seen.total - seen.plus - seen.minus])
    index = np.repeat(np.arange(50, dtype=np.int32), rows.sum(axis=1))
    symbol = np.concatenate([np.repeat(np.array([1, 2, 0], dtype=np.uint8), row) for row in rows])

    def from_reports() -> np.ndarray:
        counted = study.tally()
        counted.add_many(symbol, index)
        return maximum_likelihood(study.channel, counted.counts())

    table = study.terms.table
    shares = (repr(table.keep / table.size), repr(table.each / table.size))
    peer = run_peer(PEER_IBU, json.dumps(rows.tolist()), *shares, repr(epsilon))
    difference = float(np.abs(maximum_likelihood(study.channel, seen) - np.array(peer["theta"])).max())
    step = cpu_seconds(lambda: [maximum_likelihood(study.channel, seen) for _ in range(20)], repeat=5) / 20
    whole = cpu_seconds(from_reports, repeat=9)
    name = f"{MULTI} IBU"
    return [
        faster("keyvalue", "exact MLE of 50 keys, from counts", ours=step, peer=peer["step"], peer_name=name, target=50),
        faster(
            "keyvalue", f"exact MLE of 50 keys, from {n:,} reports", ours=whole, peer=peer["whole"], peer_name=name, target=50
        ),
        Figure(
            room="keyvalue",
            name="exact MLE of 50 keys: largest difference to a converged IBU",
            ours=difference,
            peer=1e-9,
            peer_name="allowed",
            unit="share",
            ratio=1e-9 / max(difference, 1e-300),
            target=1,
        ),
        Figure(room="keyvalue", name="exact MLE of 100,000 keys, a third near the border", ours=_many_keys(study)),
    ]


def _many_keys(study: Study) -> float:
    dice = np.random.default_rng(0)
    rows = dice.multinomial(2000, [0.3, 0.2, 0.5], size=100_000)
    rows[::3] = dice.multinomial(2000, [0.21, 0.2, 0.59], size=len(rows[::3]))
    counts = Counts(plus=rows[:, 0], minus=rows[:, 1], total=rows.sum(axis=1))
    return cpu_seconds(lambda: maximum_likelihood(study.channel, counts))


def _comparisons() -> list[tuple[str, float]]:
    """How PrivKV is compared at epsilon 2, with the nominal epsilon that it gets."""
    fair = _nominal(certified=2.0)
    spent = float(certified_epsilon(protocol="privkv", epsilon=Fraction(2), keys=50))
    return [
        (f"equal nominal epsilon 2 (PrivKV's certified: {spent:.2f})", 2.0),
        (f"equal certified epsilon 2 (PrivKV's nominal: {fair})", fair),
    ]


def _nominal(*, certified: float) -> float:
    """The largest nominal epsilon, in thousandths, at which PrivKV is certified for no more than that."""
    low, high = int(1000 * certified), int(3000 * certified)
    while high - low > 1:
        middle = (low + high) // 2
        below = certified_epsilon(protocol="privkv", epsilon=Fraction(middle, 1000), keys=50) <= certified
        low, high = (middle, high) if below else (low, middle)
    return low / 1000


def _accuracy(trials: int) -> list[Figure]:
    targets = {"gaussian": ((2, 8), (1.05, 4)), "linear": ((2, 4), (1.05, 2)), "power": ((2, 8), (1.05, 5))}
    figures = []
    for shape, stated in targets.items():
        truth = keyvalue_population(shape)
        ours = _errors("kv3", 2.0, "shrunk", truth, trials)
        for (how, epsilon), wanted in zip(_comparisons(), stated, strict=True):
            peer = _errors("privkv", epsilon, "em", truth, trials)
            for place, what in enumerate(("frequencies", "means")):
                figures.append(
                    Figure(
                        room="keyvalue",
                        name=f"MSE of {what}, {shape}, n = 100,000, {how}",
                        ours=ours[place],
                        peer=peer[place],
                        peer_name="PrivKV + EM (the paper)",
                        unit="MSE",
                        ratio=peer[place] / ours[place],
                        target=wanted[place],
                        note=f"{trials} trials",
                    )
                )
    return figures


def _errors(
    protocol: str, epsilon: float, method: str, truth: tuple[np.ndarray, np.ndarray], trials: int
) -> tuple[float, float]:
    study = Study(keys=list(range(50)), epsilon=epsilon, protocol=protocol)
    found = [study.simulate(*truth, n=100_000, random_state=trial).estimate(method) for trial in range(trials)]
    f = np.mean([(one.frequency - truth[0]) ** 2 for one in found])
    return float(f), float(np.mean([(np.nan_to_num(one.mean) - truth[1]) ** 2 for one in found]))


def _sparse(trials: int) -> list[Figure]:
    people = made_up(200_000, 1000, 3)
    truth = people.moments(1000)[0]
    common = np.argsort(truth)[::-1][:50]
    keys = list(range(1000))
    advised = Study(keys=keys, epsilon=2.0, keys_per_user=3, expected_reports=200_000)

    def errors(study: Study, method: str) -> list[float]:
        runs = [study.simulate_people(people, random_state=trial).estimate(method).frequency for trial in range(trials)]
        return [float(np.mean([(run - truth)[part] ** 2 for run in runs])) for part in (common, slice(None))]

    ours, figures = errors(advised, "shrunk"), []
    for (how, epsilon), target in zip(_comparisons(), (20, 10), strict=True):
        theirs = errors(Study(keys=keys, epsilon=epsilon, protocol="privkv"), "em")
        figures += [
            Figure(
                room="keyvalue",
                name=f"MSE of frequencies, 1000 sparse keys, {which}, {how}",
                ours=ours[place],
                peer=theirs[place],
                peer_name="PrivKV + EM (the paper)",
                unit="MSE",
                ratio=theirs[place] / ours[place],
                target=target,
                note=f"protocol auto chose {advised.protocol}, padding {advised.padding_length}; {trials} trials",
            )
            for place, which in enumerate(("the 50 most common", "all"))
        ]
    return figures


def _sets() -> list[Figure]:
    """Exact variances per report of 100 keys, Zipf, of which people hold four."""
    weights = 1 / np.arange(1, 101)
    f = np.minimum(4 * weights / weights.sum(), 0.9)
    figures = []
    for epsilon in (0.5, 1.0, 2.0):
        ours, *others = (_variance(name, epsilon, f) for name in ("set", "pckv-ue", "pckv-grr+", "kv3"))
        figures += [
            Figure(
                room="keyvalue",
                name=f"variance of a frequency per report, set, d = 100, 4 keys each, epsilon {epsilon:g}",
                ours=ours,
                peer=other,
                peer_name=name,
                unit="share²",
                ratio=other / ours,
                target=1,
                note="exact; signs are told as well",
            )
            for name, other in zip(("pckv-ue", "pckv-grr+", "kv3"), others, strict=True)
        ]
    return figures


def _variance(protocol: str, epsilon: float, f: np.ndarray) -> float:
    padding = None if protocol == "kv3" else 4
    study = Study(keys=list(range(len(f))), epsilon=epsilon, protocol=protocol, padding_length=padding)
    return float(np.mean(study.channel.frequency_variance(f, 1 / len(f) if protocol == "kv3" else 1.0)))


def _device(quick: bool) -> list[Figure]:
    """One person's device: what a report costs while the client lives on, in a new client, and with its diary on disk."""
    rounds = 500 if quick else 5000
    figures = [
        Figure(
            room="keyvalue",
            name=f"one report on a device, diary in memory, {pairs} {'pair' if pairs == 1 else 'pairs'}",
            ours=(ours := _a_report(pairs, rounds)),
            peer=_ALLOWED,
            peer_name="allowed",
            ratio=_ALLOWED / ours,
            target=1,
            note="the client lives on",
        )
        for pairs in (1, 5, 25)
    ]
    figures += [
        Figure(
            room="keyvalue",
            name=f"one fresh pckv-ue report on a device, diary in memory, 50 keys, {pairs} {'pair' if pairs == 1 else 'pairs'}",
            ours=(ours := _a_report(pairs, rounds, protocol="pckv-ue", answers="fresh", padding_length=5)),
            peer=_ALLOWED,
            peer_name="allowed",
            ratio=_ALLOWED / ours,
            target=1,
            note="the client lives on; every answer is drawn anew",
        )
        for pairs in (1, 5, 25)
    ]
    subset = _a_report(5, rounds // 5, protocol="set", answers="fresh", padding_length=5)
    figures.append(Figure(room="keyvalue", name="one fresh set on a device, diary in memory, 50 keys, 5 pairs", ours=subset))
    study = Study(keys=list(range(50)), epsilon=2.0)
    new = cpu_seconds(lambda: [study.client().report({3: 0.5}) for _ in range(500)]) / 500
    figures.append(Figure(room="keyvalue", name="one report on a device, diary in memory, a new client", ours=new))
    return [*figures, _durable()]


def _a_report(pairs: int, rounds: int, d: int = 50, **more: Any) -> float:
    study = Study(keys=list(range(d)), epsilon=2.0, value_range=(0, 10), rounds=4 * rounds, **more)
    client = study.client()
    held: dict[str | int, float] = {key: 0.05 + key / 10 for key in range(pairs)}
    turns = iter(range(4 * rounds))
    return cpu_seconds(lambda: [client.report(held, round=next(turns)) for _ in range(rounds)]) / rounds


def _durable() -> Figure:
    """By the clock: what a report waits for is the disk."""
    with tempfile.TemporaryDirectory() as folder:
        client = Study(keys=list(range(50)), epsilon=2.0, rounds=100).client(diary=Path(folder, "diary"))
        turns = iter(range(100))
        ours = _median(lambda: client.report({3: 0.5}, round=next(turns)))
        handle = os.open(Path(folder, "raw"), os.O_CREAT | os.O_WRONLY)
        sync = _median(lambda: _appended(handle))
        os.close(handle)
    note = "median by the clock of 100; five syncs in turn: journal, folder, journal header, file, folder"
    return faster(
        "keyvalue", "one report on a device, diary on disk", ours=ours, peer=sync, peer_name="one fsync of that disk", note=note
    )


def _appended(handle: int) -> None:
    os.write(handle, bytes(100))
    os.fsync(handle)


def _median(job: Callable[[], object]) -> float:
    seconds = []
    for _ in range(100):
        start = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


if __name__ == "__main__":
    main(run)
