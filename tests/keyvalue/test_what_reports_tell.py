"""Attempts to break the promise, written without looking at how it is kept."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sabun.keyvalue import Study
from sabun.keyvalue.client import PROTOCOLS, Client, Diary, Terms
from sabun.keyvalue.client.probabilities import Table, table_for

EXTREMES: list[dict[Any, Any]] = [
    {},
    {"a": 1.0},
    {"a": -1.0},
    {"a": math.nextafter(1, 0)},
    {"a": 5e-324, "b": -0.0},
    {"a": math.nan},
    {"a": math.inf, "b": -math.inf},
    {"a": 1.0, "b": 1.0, "c": 1.0},
    {"z": 1.0},
    {"a": None, "b": "x", 3: 4},
    {f"k{number}": 0.5 for number in range(1000)},
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_size_and_header_tell_nothing(protocol: str) -> None:
    study = Study(keys=["a", "b", "c"], epsilon=1.0, protocol=protocol)
    credential = b"0123456789abcdef"
    reports = [study.client(credential=credential, diary=Diary.in_memory()).report(held) for held in EXTREMES]
    assert len({len(report) for report in reports}) == 1
    assert len({report[:37] for report in reports}) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_person_can_send_every_report(protocol: str) -> None:
    """A symbol that only some people can send would prove something about them."""
    facts = {"rounds": 3} if protocol == "privkvm" else {}
    table = table_for(protocol=protocol, epsilon=Fraction(40), keys=4, padding=2, bits=64, **facts)
    signs = (table.keep, table.opposite)[: table.signs]
    assert min(*signs, table.each, table.none_present, table.none_absent) >= 1


def test_what_the_device_remembers_has_one_shape_whatever_the_person_holds(tmp_path: Path) -> None:
    """Sizes and numbers of rows tell nothing; the contents do, to whoever can read the file."""
    shapes = []
    for number, held in enumerate(EXTREMES):
        diary = Diary(tmp_path / str(number))
        Client(Terms(keys=("a", "b", "c"), epsilon=1, protocol="pckv-ue"), diary=diary).report(held)
        assert diary._base is not None
        tables = [diary._base.execute(f"SELECT * FROM {name}").fetchall() for name in ("spent", "memory", "sent", "enrolment")]
        shapes.append([[[len(cell) if isinstance(cell, bytes) else cell for cell in row] for row in table] for table in tables])
    assert all(shape == shapes[0] for shape in shapes)


def test_a_modulo_instead_of_rejection_would_be_caught() -> None:
    """Padding amplifies only if a pair is picked with at most 1/ell: a byte taken modulo 3 breaks the promise, and shows."""
    table = table_for(protocol="pckv-grr+", epsilon=Fraction(1), keys=3, padding=3)
    honest = ratio_with_pick(table, Fraction(1, 3))
    broken = ratio_with_pick(table, Fraction(86, 256))
    assert honest <= Fraction(math.e) * (1 + Fraction(1, 10**12))
    assert broken > Fraction(math.e)


def ratio_with_pick(table: Table, pick: Fraction) -> Fraction:
    return (pick * table.keep + (1 - pick) * table.each) / table.each


def test_a_table_rounded_to_the_nearest_would_break_the_promise() -> None:
    """Rounding to nearest instead of towards noise exceeds exp(epsilon) on coarse tables; ours never does."""
    broken = 0
    for tenth in range(1, 80):
        epsilon, size = Fraction(tenth, 10), 1 << 16
        growth = math.exp(epsilon)
        nearest = round(size / (growth + 2))
        broken += (size - 2 * nearest) / nearest > growth * (1 + 1e-12)
        ours = table_for(protocol="kv3", epsilon=epsilon, keys=1, bits=16)
        assert ours.keep / ours.each <= growth
    assert broken > 20


@pytest.mark.parametrize("answers", ["memoised", "fresh"])
def test_two_devices_never_share_their_coins(answers: str) -> None:
    terms = Terms(keys=("a",), epsilon=Fraction(1, 2), protocol="kv3", answers=answers, rounds=1)
    found = Counter(Client(terms).report({"a": 0.0})[-1] for _ in range(300))
    assert len(found) == 3


def test_the_black_box_does_not_refute_the_epsilon() -> None:
    """Clopper-Pearson at 99.9 %: the measured ratio of two people's reports never contradicts exp(epsilon)."""
    from scipy.special import betaincinv

    epsilon, n = 1.0, 6000
    terms = Terms(keys=("a",), epsilon=1, protocol="kv3", rounds=n, answers="fresh")
    people = [Client(terms), Client(terms), Client(terms)]
    held: list[dict[str | int, float]] = [{"a": 1.0}, {"a": -1.0}, {}]
    counts = [Counter(c.report(h, round=r)[-1] for r in range(n)) for c, h in zip(people, held, strict=True)]
    largest = 0.0
    for x in counts:
        for y in counts:
            for z in range(3):
                low = betaincinv(x[z], n - x[z] + 1, 0.0005)
                high = betaincinv(y[z] + 1, n - y[z], 0.9995)
                largest = max(largest, math.log(low / high))
    assert 0.6 < largest <= epsilon


def test_a_report_cannot_be_counted_under_another_epsilon() -> None:
    weak, strong = (Study(keys=["a", "b"], epsilon=epsilon) for epsilon in (1.0, 2.0))
    outcome = strong.tally().add_reports([weak.client().report({})])
    assert outcome.accepted == 0


def test_errors_of_the_device_never_name_what_is_held() -> None:
    client = Client(Terms(keys=("a",), epsilon=1, protocol="kv3", rounds=2), max_epsilon=1, diary=Diary.in_memory())
    client.report({"secret-key": 0.123456})
    with pytest.raises(ValueError, match="this device has epsilon 0 of 1 left") as caught:
        client.report({"secret-key": 0.123456}, round=1)
    assert "secret" not in str(caught.value)
    assert "0.123456" not in str(caught.value)
