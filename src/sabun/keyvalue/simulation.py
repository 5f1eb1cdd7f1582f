"""Made-up collections, drawn from the exact law of their counts. NOT PRIVATE: the pseudo-random numbers here protect nobody.

Sampled protocols: how many people each key is asked of is multinomial, how many of them hold it hypergeometric, what they
answer multinomial; the same law as asking n people one by one. Padded protocols: people hold keys independently of each other;
which pair is picked is multinomial with the exact picking probabilities, what is reported about each key binomial given that.
Sets: each key's counts have their exact law, but are drawn as if those of different keys were independent.
PrivKVM: every round has the law of asking n people, but who holds a key is drawn anew for each, so two rounds' counts vary
together less than they would among the same people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun import checks
from sabun.errors import ParameterError
from sabun.keyvalue.attacks import Attack, absent_row, fake_counts, joint_counts, present_row
from sabun.keyvalue.channel import Counts, Floats
from sabun.keyvalue.client.probabilities import JOINT, later_round
from sabun.keyvalue.inversion import ye
from sabun.keyvalue.kernels import pick_kernel, sampled_kernel
from sabun.keyvalue.population import People
from sabun.keyvalue.tally import Tally

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["generator_of", "pick_probabilities", "sampled_reports", "simulate_marginals", "simulate_people"]

_MOST_PEOPLE = 10**9


def generator_of(random_state: int | None) -> Any:
    """Pseudo-random numbers for simulations."""
    checks.require(
        random_state is None
        or (isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0),
        "None or a whole number >= 0",
        random_state=random_state,
    )
    return np.random.Generator(np.random.PCG64(None if random_state is None else int(random_state)))


def simulate_marginals(
    study: Study, frequencies: ArrayLike, means: ArrayLike | None, *, n: int, random_state: int | None, attack: Attack | None
) -> Tally:
    """The tally of n made-up people of whom that share holds each key, with that mean."""
    checks.whole(minimum=1, n=n)
    checks.require(n <= _MOST_PEOPLE, f"at most {_MOST_PEOPLE}", n=n)
    f, m = _marginals(study, frequencies, means)
    generator = generator_of(random_state)
    terms = study.terms
    tally = Tally(study, simulated=True, seed=None)
    if terms.sampled:
        counts = _sampled_counts(study, f, m, n, generator)
    else:
        counts = _padded_counts(study, _picked(study, f, m, n, generator), n, generator)[None]
    fakes = 0 if attack is None else attack.fakes(n)
    if attack is not None:
        counts = counts + fake_counts(terms, attack, fakes, generator)
    tally.absorb(counts, (n + fakes) * len(counts) if terms.sampled else n + fakes)
    return tally


def _picked(study: Study, f: Floats, m: Floats, n: int, generator: Any) -> NDArray[np.int64]:
    """How many people report about a pair they hold, by key and sign: about one each, or about up to ell with sets."""
    ell = study.terms.padding_length
    shares = f * pick_probabilities(f, ell)
    if study.terms.subsets:
        held = np.minimum(ell * shares, 1.0)
        rows = np.column_stack([held * (1 + m) / 2, held * (1 - m) / 2, 1 - held])
        return np.asarray(generator.multinomial(n, rows)[:, :2])
    signed = np.concatenate([shares * (1 + m) / 2, shares * (1 - m) / 2, [max(0.0, 1 - shares.sum())]])
    return np.asarray(generator.multinomial(n, signed / signed.sum())[:-1].reshape(2, -1).T)


def simulate_people(study: Study, people: People, *, random_state: int | None) -> Tally:
    """The tally of given made-up people, one by one."""
    terms = study.terms
    if terms.protocol == "privkvm":
        raise ParameterError("protocol must be one that asks once; got 'privkvm'. Use simulate with frequencies and means.")
    tally = Tally(study, simulated=True, seed=None)
    if terms.sampled:
        index, symbol = sampled_reports(study, people, random_state=random_state)
        tally.add_many(symbol, index)
        return tally
    _check_keys(study, people)
    generator = generator_of(random_state)
    if terms.subsets:
        picked = _kept_pairs(_told(study, people), len(terms.keys), terms.padding_length, generator)
    else:
        picked = np.zeros((len(terms.keys), 2), dtype=np.int64)
        seed = np.uint64(generator.bit_generator.random_raw())
        pick_kernel()(people.starts, people.keys, people.places, seed, terms.padding_length, picked)
    tally.absorb(_padded_counts(study, picked, len(people), generator)[None], len(people))
    return tally


def _kept_pairs(people: People, keys: int, ell: int, generator: Any) -> NDArray[np.int64]:
    """Pairs by key and sign, of each person up to ell that are chosen at random."""
    owner = np.repeat(np.arange(len(people)), np.diff(people.starts))
    order = np.lexsort((generator.random(len(owner)), owner))
    kept = order[np.arange(len(owner)) - people.starts[owner] < ell]
    minus = generator.random(len(kept)) >= (people.values[kept] + 1) / 2
    return np.asarray(np.bincount(2 * people.keys[kept] + minus, minlength=2 * keys).reshape(keys, 2))


def sampled_reports(study: Study, people: People, *, random_state: int | None) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The asked key and the symbol of each person, for protocols that ask about one key."""
    _check_keys(study, people)
    people = _told(study, people)
    table, n = study.terms.table, len(people)
    seed = np.uint64(generator_of(random_state).bit_generator.random_raw())
    scale = 1 << (64 - table.bits)
    cuts = (table.keep, table.keep + table.opposite, table.each, table.signs * table.each)
    index, symbol = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    ends = np.array([min(cut * scale, 2**64 - 1) for cut in cuts], dtype=np.uint64)
    sampled_kernel()(people.starts, people.keys, people.places, seed, np.uint64(len(study.terms.keys)), ends, index, symbol)
    return index, symbol


def pick_probabilities(f: Floats, padding: int) -> Floats:
    """E[1 / max(L, padding)] over a holder's number of keys L, for each key, when keys are held independently.

    The number of other keys has a Poisson-binomial law; its expectation comes from its characteristic function at an odd
    number of points, where no factor vanishes.
    """
    spread = f.sum() + 12 * np.sqrt(f.sum()) + 40
    points = int(min(len(f), spread)) | 1
    weights = 1 / np.maximum(np.arange(points) + 1.0, padding)
    turns = np.exp(2j * np.pi * np.arange(points) / points)
    factors = 1 + np.multiply.outer(f, turns - 1)
    log_product = np.log(factors).sum(axis=0)
    transform = np.fft.fft(weights) / points
    others = np.exp(log_product - np.log(factors))
    return np.asarray(np.clip(np.real(others @ transform), 0.0, 1.0))


def _sampled_counts(study: Study, f: Floats, m: Floats, n: int, generator: Any) -> NDArray[np.int64]:
    """Counts by round, key and symbol."""
    table, keys = study.terms.table, len(f)
    asked = generator.multinomial(n, np.full(keys, 1 / keys))
    rows = present_row(table), present_row(table)[[1, 0, 2]], absent_row(table)
    first = _answers(f, m, n, asked, rows, generator)
    if study.terms.protocol != "privkvm":
        return first[None]
    return np.stack([first, *_later_rounds(study, f, m, n, asked, first, generator)])


def _answers(
    f: Floats, m: Floats, n: int, asked: Any, rows: tuple[Floats, Floats, Floats], generator: Any
) -> NDArray[np.int64]:
    holders = np.rint(f * n).astype(np.int64)
    held = generator.hypergeometric(holders, n - holders, asked)
    plus = generator.binomial(held, (1 + m) / 2)
    groups = (plus, held - plus, asked - held)
    return np.asarray(sum(generator.multinomial(group, row) for group, row in zip(groups, rows, strict=True)))


def _later_rounds(
    study: Study, f: Floats, m: Floats, n: int, asked: Any, first: Any, generator: Any
) -> list[NDArray[np.int64]]:
    """PrivKVM: people without the key answer with the last published mean."""
    terms, counts, rounds = study.terms, first, []
    keep, opposite = later_round(epsilon=terms.epsilon, rounds=terms.rounds, bits=terms.table_bits)
    size = 1 << terms.table_bits
    plus = np.array([keep, opposite, size - keep - opposite]) / size
    for _ in range(terms.rounds - 1):
        published = np.clip(np.nan_to_num(_mean(study, counts)), -1, 1)
        fake = np.multiply.outer((1 + published) / 2, plus) + np.multiply.outer((1 - published) / 2, plus[[1, 0, 2]])
        counts = _answers(f, m, n, asked, (plus, plus[[1, 0, 2]], fake), generator)
        rounds.append(counts)
    return rounds


def _mean(study: Study, counts: NDArray[np.int64]) -> Floats:
    return ye(study.channel, Counts(plus=counts[:, 0], minus=counts[:, 1], total=counts.sum(axis=1)))[1]


def _padded_counts(study: Study, picked: NDArray[np.int64], n: int, generator: Any) -> NDArray[np.int64]:
    table = study.terms.table
    if study.terms.protocol in JOINT:
        return joint_counts(table, picked, n - int(picked.sum()), generator)
    plus, minus = (
        generator.multinomial(picked[:, sign], row)
        for sign, row in enumerate((present_row(table), present_row(table)[[1, 0, 2]]))
    )
    rest = generator.multinomial(n - picked.sum(axis=1), absent_row(table))
    return np.asarray((plus + minus + rest)[:, :2])


def _told(study: Study, people: People) -> People:
    """The people as the study sees them: where no values are asked, whoever holds a key says yes, which is counted as plus."""
    return People(starts=people.starts, keys=people.keys, values=np.ones(len(people.keys))) if study.terms.valueless else people


def _check_keys(study: Study, people: People) -> None:
    largest = int(people.keys.max()) if people.keys.size else 0
    checks.require(largest < len(study.terms.keys), "below the number of the study's keys", keys=largest)


def _marginals(study: Study, frequencies: ArrayLike, means: ArrayLike | None) -> tuple[Floats, Floats]:
    keys, low, high = len(study.terms.keys), *(float(end) for end in study.terms.value_range)
    if study.terms.valueless:
        means = np.full(keys, high)  # whoever holds a key says yes, which is counted as plus
    checks.require(means is not None, "given where values are asked", means=means)
    f, m = np.asarray(frequencies, dtype=float), np.asarray(means, dtype=float)
    for name, array in (("frequencies", f), ("means", m)):
        checks.require(array.shape == (keys,), f"one number per key ({keys})", **{name: array.shape})
    checks.require(bool(np.all((f >= 0) & (f <= 1))), "numbers from 0 to 1", frequencies="others")
    checks.require(bool(np.all((m >= low) & (m <= high))), f"numbers from {low} to {high}", means="others")
    return f, 2 * (m - low) / (high - low) - 1
