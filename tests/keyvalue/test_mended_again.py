"""What another hostile reading broke; each case stays here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, xlogy
from scipy.stats import binom

from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.batches import read_holdings
from sabun.keyvalue.channel import Channel, Counts
from sabun.keyvalue.client import BudgetRefused, Client, Diary, DiaryError, Harmony, Terms, report_size
from sabun.keyvalue.client.tables import later_round
from sabun.keyvalue.intervals import frequency_interval, mean_interval

ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


class Lazy(Mapping[Any, Any]):
    """Does something else while it is read."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __getitem__(self, key: object) -> float:
        try:
            self.look()
        except Exception:
            return 0.5
        return 1.0


class Raising(float):
    def __new__(cls, error: BaseException) -> Raising:
        made = super().__new__(cls, 1.0)
        made.error = error
        return made

    error: BaseException

    def __float__(self) -> float:
        raise self.error


def test_pairs_that_look_at_the_diary_do_not_undo_the_charge(tmp_path: Path) -> None:
    """A page was opened within a page: the charge was rolled back and 50 reports were handed over, none of them booked."""
    diary = Diary(tmp_path / "diary")
    terms = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3", rounds=3, answers="fresh")
    client = Client(terms, diary=diary, max_epsilon=1)
    client.report(Lazy(lambda: diary.spent))
    assert diary.spent == 1
    for number in (1, 2, 1, 2):
        with pytest.raises(BudgetRefused):
            client.report(Lazy(lambda: diary.spent), round=number)
    assert diary.spent == 1


def test_pairs_that_report_themselves_cost_one_charge() -> None:
    diary = Diary.in_memory()
    client = Client(ONE, diary=diary)
    inner: list[bytes] = []
    outer = client.report(Lazy(lambda: inner.append(client.report({"a": 1.0}))))
    assert inner == [outer]
    assert diary.spent == 1


def test_a_page_within_a_page_is_refused_and_leaves_the_first_alone() -> None:
    diary = Diary.in_memory()
    with diary.page() as page:
        page.charge("t", 0, Fraction(2), limit=None)
        with pytest.raises(
            DiaryError, match=r"the diary must have one page open at a time; another is open\. Nothing was sent\."
        ):
            assert diary.spent
    assert diary.spent == 2


def test_published_means_that_look_at_the_diary_leave_the_charge_alone() -> None:
    diary = Diary.in_memory()
    client = Client(Terms(keys=("a",), epsilon=Fraction(1), protocol="privkvm", rounds=2), diary=diary)
    assert client.report({"a": 1}, round=1, means=Lazy(lambda: diary.spent))
    assert diary.spent == client.terms.certified


@pytest.mark.parametrize("error", [asyncio.CancelledError(), GeneratorExit(), BaseException()])
def test_a_value_that_is_cancelled_is_absent(error: BaseException) -> None:
    """It stopped the report of those who held the key, and of nobody else."""
    assert len(Client(ONE).report({"a": Raising(error)})) == report_size(ONE)
    assert Harmony(epsilon=Fraction(1)).answer(Raising(error)) in (1, 2)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_order_to_stop_stops_with_nothing_booked(error: type[BaseException]) -> None:
    diary = Diary.in_memory()
    with pytest.raises(error):
        Client(ONE, diary=diary).report({"a": Raising(error())})
    assert diary.spent == 0


def channels() -> Iterator[Channel]:
    for epsilon in (1, 4, 8):
        yield Study(keys=["a"], epsilon=epsilon, protocol="kv3").channel


@pytest.mark.parametrize("keys", [2, 50, 1000, 20_000])
def test_frequencies_hold_together_computed_exactly(keys: int) -> None:
    """With Wilson's intervals all of 1000 held at once in 72 % of all cases, where 95 % was said."""
    for channel in channels():
        for n in (100, 1000):
            seen = np.arange(n + 1)
            ends = frequency_interval(channel, Counts(plus=seen, minus=0 * seen, total=0 * seen + n), comparisons=keys)
            for f in (0, 0.001, 0.05, 0.5, 0.95, 1):
                missed = ~((ends[:, 0] <= f + 1e-12) & (f <= ends[:, 1] + 1e-12))
                assert keys * binom.pmf(seen, n, f * channel.a + (1 - f) * channel.b)[missed].sum() <= 0.05


@pytest.mark.parametrize("keys", [2, 1000, 20_000])
def test_means_hold_together_computed_exactly(keys: int) -> None:
    """With Fieller's, 0.78 of 20,000 were expected to fail, where 0.05 was said."""
    n = 220
    plus, minus = (axis[np.add(*np.indices((n + 1, n + 1))) <= n] for axis in np.indices((n + 1, n + 1)))
    ways = gammaln(n + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(n - plus - minus + 1)
    for channel in channels():
        ends = mean_interval(channel, Counts(plus=plus, minus=minus, total=0 * plus + n), comparisons=keys)
        assert (ends[:, 1] - ends[:, 0]).min() < 1.9, "some counts say something"
        for f in (0.1, 0.5, 1):
            for m in (-0.5, 0, 0.6, 0.9, 1):
                law = np.array([f * (1 + m) / 2, f * (1 - m) / 2, 1 - f]) @ channel.rows
                chance = np.exp(ways + xlogy(plus, law[0]) + xlogy(minus, law[1]) + xlogy(n - plus - minus, law[2]))
                missed = ~((ends[:, 0] <= m + 1e-9) & (m <= ends[:, 1] + 1e-9))
                assert keys * chance[missed].sum() <= 0.05


def test_a_single_interval_covers_what_the_page_says_computed_exactly() -> None:
    """docs/jobs/keyvalue.md says 93.4 %."""
    channel = Study(keys=list(range(50)), epsilon=1, protocol="kv3").channel
    for n in (200, 500):
        seen = np.arange(n + 1)
        ends = frequency_interval(channel, Counts(plus=seen, minus=0 * seen, total=0 * seen + n))
        for f in np.linspace(0.01, 0.5, 50):
            held = (ends[:, 0] <= f + 1e-12) & (f <= ends[:, 1] + 1e-12)
            assert binom.pmf(seen, n, f * channel.a + (1 - f) * channel.b)[held].sum() >= 0.934


def test_the_bias_of_padding_is_bounded_however_the_noise_falls() -> None:
    """Taken at the noisy point the bound was too small in a quarter of all cases, and 0 in many."""
    study = Study(keys=list(range(8)), epsilon=2, protocol="pckv-grr+", padding_length=1, keys_per_user=4)
    table, people, held = study.terms.table, 2000, 0.3
    present, absent = np.full(17, table.each / table.size), np.full(17, table.each / table.size)
    present[0], absent[0] = table.none_present / table.size, table.none_absent / table.size
    mixed = present.copy()  # everybody who holds anything holds the first four keys, and picks one of them
    mixed[1:9:2] += (table.keep - table.each) / table.size / 4
    dice, covered = np.random.default_rng(0), 0
    for _ in range(300):
        holders = dice.binomial(people, held)
        drawn = dice.multinomial(holders, mixed / mixed.sum()) + dice.multinomial(people - holders, absent / absent.sum())
        tally = study.tally()
        tally.add_many(np.repeat(np.arange(17), drawn))
        found = tally.estimate()
        low, high = found.frequency_interval[0]
        covered += low <= holders / people <= high + found.bias_bound[0]
    assert covered >= 0.95 * 300


def test_the_bound_of_the_bias_is_in_every_table() -> None:
    found = Study(keys=["a", "b"], epsilon=1, protocol="pckv-ue", padding_length=1).simulate(
        [0.5] * 2, [0] * 2, n=900, random_state=0
    )
    estimates = found.estimate()
    assert estimates.to_frame()["bias_bound"].isna().all(), "not known without keys_per_user"
    assert estimates.to_dict()["rows"]["bias_bound"] == [None, None]
    assert list(estimates.release()["bias_bound"]) == [None, None]


def test_a_mean_of_a_later_round_has_no_interval_of_the_first() -> None:
    """In 32 of 200 runs the point stood outside."""
    study, dice = Study(keys=["a"], epsilon=8, protocol="privkvm", rounds=2), np.random.default_rng(1)
    tally, f, m = study.tally(), 0.5, 0.6
    law = np.array([f * (1 + m) / 2, f * (1 - m) / 2, 1 - f]) @ study.channel.rows
    tally.add_many(dice.choice([1, 2, 0], size=3000, p=law), np.zeros(3000, int))
    assert (np.diff(tally.estimate().mean_interval) < 0.5).all(), "the first round has one"
    keep, opposite = (count / 2**64 for count in later_round(epsilon=study.terms.epsilon, rounds=2))
    tally.add_many(dice.choice([1, 2, 0], size=3000, p=[keep, opposite, 1 - keep - opposite]), np.zeros(3000, int), round=1)
    found = tally.estimate()
    assert found.mean_interval.tolist() == [[-1, 1]]
    assert -1 <= found.mean[0] <= 1
    assert (np.diff(tally.estimate("mle").mean_interval) < 0.5).all(), "any other method uses the first round alone"


@pytest.mark.parametrize("cell", ['"1\n"', '"1\r0.5"', "1\r0.5", '"1', "0.5\r\r"])
def test_a_file_whose_lines_cannot_be_told_apart_is_refused_as_a_whole(tmp_path: Path, cell: str) -> None:
    """A line break within a cell made one report more."""
    (tmp_path / "t.csv").write_bytes(f"HIV\n0.5\n{cell}\n0.2\n".encode())
    with pytest.raises(DataError, match="must hold one person in each line; at least one cell runs over a line break, or a"):
        next(read_holdings(tmp_path / "t.csv", Study(keys=["HIV"], epsilon=1)))


def test_either_kind_of_line_end_is_one_person(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'HIV\r\n0.5\n"1"\r\n0.25')
    held = list(read_holdings(tmp_path / "t.csv", Study(keys=["HIV"], epsilon=1)))
    assert held == [{"HIV": 0.5}, {"HIV": 1.0}, {"HIV": 0.25}]
