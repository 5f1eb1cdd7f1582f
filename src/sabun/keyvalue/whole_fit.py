"""A whole report of every protocol of `sabun.keyvalue`: is its exact law as private as is promised?

The device runs with every word it could toss, for everything a person can hold.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sabun.asking.evidence import Bench, Checklist, Refuted, each
from sabun.keyvalue.client import (
    PROTOCOLS,
    BudgetRefused,
    Client,
    Diary,
    Harmony,
    RandomizedResponse,
    Terms,
    channel,
    device,
    subsets,
)
from sabun.keyvalue.client.wire import header

__all__ = ["CHECKS"]

CHECKS = Checklist()


HOLDINGS: tuple[Mapping[str | int, float], ...] = tuple(
    {key: value for key, value in zip("ab", values, strict=True) if value}
    for values in itertools.product((0, 1.0, -1.0), repeat=2)
)
"""Everything a person can hold of two keys; values stand at the ends of the range, so their signs are certain."""


@functools.cache
def _law(draw: Callable[..., int], *about: Any) -> Counter[int]:
    """How often each symbol comes up over all words of 16 bits."""
    return Counter(draw(*about, word) for word in range(1 << 16))


class _Dice:
    """Stands in for `secrets` on the device: picks what it is told, notes how many there were to pick from."""

    def __init__(self) -> None:
        self.pick, self.of = 0, 1

    def randbelow(self, bound: int) -> int:
        self.of = bound
        return min(self.pick, bound - 1)

    def randbits(self, bits: int) -> int:
        if bits not in (16, channel.SIGN_BITS):
            raise Refuted(f"the device tossed {bits} bits.")
        return 0

    def token_bytes(self, count: int) -> bytes:
        if count != 2 * 2 and count % 8:
            raise Refuted(f"the device tossed {count} bytes.")
        return bytes(count)


def _laws_of(bench: Bench) -> Callable[..., list[Counter[Any]]]:
    """The exact law of each round's symbol for one holding: the device's own draws, carried out for every word."""
    dice, asked = _Dice(), list[Counter[Any]]()

    def ternary(table: Any, state: int, word: int) -> int:
        asked.append(_law(channel.ternary_symbol, table, state))
        return channel.ternary_symbol(table, state, word)

    def joint(table: Any, keys: int, picked: Any, word: int) -> int:
        asked.append(_law(channel.joint_symbol, table, keys, picked))
        return channel.joint_symbol(table, keys, picked, word)

    def later(keep: int, opposite: int, state: int, word: int) -> int:
        asked.append(_law(channel.later_symbol, keep, opposite, state))
        return channel.later_symbol(keep, opposite, state, word)

    def unary(table: Any, keys: int, picked: Any, words: bytes) -> tuple[int, ...]:
        sides = [_law(channel.ternary_symbol, table, picked[1] if picked and picked[0] == key else 0) for key in range(keys)]
        both = itertools.product(*(side.items() for side in sides))
        asked.append(Counter({(x, y): Fraction(many * more, 1 << 16) for (x, many), (y, more) in both}))
        return channel.unary_symbols(table, keys, picked, words)

    bench.replace(device, "secrets", dice)
    for name, listener in (("ternary", ternary), ("joint", joint), ("later", later)):
        bench.replace(device, f"{name}_symbol", listener)
    bench.replace(device, "unary_symbols", unary)

    def laws(terms: Terms, held: Mapping[str | int, float]) -> list[Counter[Any]]:
        total: list[Any] = [Counter() for _ in range(terms.rounds)]
        dice.pick, dice.of = 0, 1
        while dice.pick < dice.of:
            asked.clear()
            client = Client(terms, diary=Diary.in_memory(), credential=b"0123456789abcdef")
            for turn in range(terms.rounds):
                client.report(held, round=turn, means={"a": 0.0, "b": 0.0} if turn else None)
            bench.must(client.spent == terms.certified, "a device did not book what is certified.")
            for sum_, one in zip(total, asked, strict=True):
                for symbol, many in one.items():
                    sum_[symbol] += Fraction(many, dice.of)
            dice.pick += 1
        bench.must(all(sum(law.values()) == 1 << 16 for law in total), "the chances of a report do not add up to one.")
        return total

    return laws


def _no_report_is_likelier_than_the_certified_epsilon_allows(bench: Bench, protocol: str, padding: int) -> str:
    laws_of = _laws_of(bench)
    padded, epsilon = protocol.startswith("pckv"), Fraction(2)
    facts: dict[str, Any] = {"padding_length": padding} if padded else {"rounds": 3} if protocol == "privkvm" else {}
    terms = Terms(keys=("a", "b"), epsilon=epsilon, protocol=protocol, table_bits=16, **facts)
    every = [laws_of(terms, held) for held in HOLDINGS]
    ratio = math.prod(
        (
            max(
                Fraction(one[turn][symbol]) / Fraction(other[turn][symbol])
                for one in every
                for other in every
                for symbol in one[turn]
            )
            for turn in range(terms.rounds)
        ),
        start=Fraction(1),
    )
    return _tight(bench, ratio, terms)


def _tight(bench: Bench, ratio: Fraction, terms: Terms) -> str:
    """The largest ratio of probabilities there is, beside the epsilon that was certified; no more than half is given away."""
    spent = math.log(ratio)
    bench.must(
        spent <= float(terms.certified) * (1 + 1e-12), f"epsilon is {spent:.6f}, certified was {float(terms.certified):.6f}."
    )
    bench.must(
        terms.certified <= terms.epsilon <= spent * 1.5,
        "more is certified than was asked for, or far less is spent than was asked for.",
    )
    return f"largest ratio {ratio}: epsilon {spent:.6f} of {terms.epsilon} claimed, {float(terms.certified):.6f} certified"


for _name in PROTOCOLS:
    if not _name.startswith("set"):
        _padding = (1, 2) if _name.startswith("pckv") else (1,)
        CHECKS(_name, shown="tight", protocol=[_name], padding=_padding)(
            _no_report_is_likelier_than_the_certified_epsilon_allows
        )


class _Coin:
    """Stands in for the device's even choices: a subset that it is told, and every way to cut in turn."""

    def __init__(self) -> None:
        self.subset: tuple[int, ...] = ()
        self.cut: tuple[int, ...] | None = None

    def sample(self, of: Any, size: int) -> list[Any]:
        if isinstance(of, range):
            if len(self.subset) != size:
                raise Refuted(f"the device drew {size} of {len(of)}.")
            return list(self.subset)
        if self.cut is None:
            raise Refuted("the device cut what it need not cut.")
        return [of[place] for place in self.cut]


def _no_set_is_likelier_than_the_certified_epsilon_allows(bench: Bench, width: int, ell: int, protocol: str) -> str:
    """The device's own steps, carried out for every subset, every word of 16 bits and every way to cut."""
    terms = Terms(keys=("a", "b"), epsilon=Fraction(2), protocol=protocol, padding_length=ell, table_bits=16)
    bench.replace(terms.__dict__, "subset", dataclasses.replace(terms.subset, width=width))
    coin, kept = _Coin(), list[int]()

    def listened(subset: Any, own: Any, drawn: Any, word: int) -> bool:
        kept.append(sum(subsets.is_kept(subset, own, drawn, one) for one in range(1 << 16)))
        return True

    bench.replace(device, "_COIN", coin)
    bench.replace(device, "is_kept", listened)

    def law(held: Mapping[str | int, float]) -> dict[bytes, Fraction]:
        found: Counter[bytes] = Counter()
        cuts = [*itertools.combinations(range(len(held)), ell)] if len(held) > ell else [None]
        for coin.cut in cuts:
            for coin.subset in itertools.combinations(range(terms.subset.symbols), width):
                kept.clear()
                report = Client(terms, diary=Diary.in_memory(), credential=b"0123456789abcdef").report(held)
                found[report] += kept[0]
        return {report: Fraction(many, found.total()) for report, many in found.items()}

    every = [law(held) for held in HOLDINGS]
    return _tight(bench, max(one[report] / other[report] for one in every for other in every for report in one), terms)


for _name in ("set", "set-f"):
    _cases = each("width ell", [(1, 1), (2, 1), (2, 2), (1, 2)])
    CHECKS(_name, shown="tight", cases=_cases, protocol=[_name])(_no_set_is_likelier_than_the_certified_epsilon_allows)


@CHECKS("randomized response", "harmony", shown="tight", epsilon=["0.5", "2"])
def _the_classics_keep_the_truth_as_often_as_their_epsilon_allows(bench: Bench, epsilon: str) -> None:
    def first_lie(answer: Callable[[int], int]) -> int:
        """How many of the 2^64 words give the truth: it comes first."""
        low, high = 0, 1 << 64
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if answer(middle) == answer(0) else (low, middle)
        return high

    words = RandomizedResponse(categories=("a", "b", "c"), epsilon=Fraction(epsilon))
    kept = first_lie(lambda word: words.answer_of(0, word))
    bench.enough(float(epsilon), math.log(kept / ((1 << 64) - kept) * 2), slack=1e-12, waste=1 + 1e-12)
    sign = Harmony(epsilon=Fraction(epsilon))
    kept = first_lie(lambda word: sign.answer_of(1, word))
    bench.enough(float(epsilon), math.log(kept / ((1 << 64) - kept)), slack=1e-12, waste=1 + 1e-12)


@CHECKS("randomized response", "harmony")
def _the_classics_toss_words_of_their_whole_length(bench: Bench) -> None:
    asked: list[int] = []

    def noted(bits: int) -> int:
        asked.append(bits)
        return 0

    bench.replace(secrets, "randbits", noted)
    RandomizedResponse(categories=("a", "b"), epsilon=Fraction(1)).answer("a")
    Harmony(epsilon=Fraction(1)).answer(0.5)
    bench.must(asked == [64, channel.SIGN_BITS, 64], "they tossed words of other lengths.")


@CHECKS(*(name for name in PROTOCOLS if name != "privkvm"), protocol=[name for name in PROTOCOLS if name != "privkvm"])
def _a_value_that_stays_is_answered_the_same_for_ever(bench: Bench, protocol: str) -> str:
    """A value in the middle of its range, over many rounds: fresh tosses would add up to the truth."""
    facts: dict[str, Any] = {"padding_length": 1} if protocol.startswith(("pckv", "set")) else {}
    terms = Terms(keys=("a", "b"), epsilon=Fraction(1), protocol=protocol, rounds=30, answers="memoised", **facts)
    holdings: tuple[Mapping[str | int, float], ...] = ({"a": 0.3}, {"a": -0.1, "b": 0.6}, {})
    for held in holdings:
        client = Client(terms, diary=Diary.in_memory(), credential=b"0123456789abcdef")
        reports = [client.report(held, round=turn) for turn in range(terms.rounds)]
        start = len(header(terms.short_id, 0, bytes(len(client._identity))))
        payloads = {report[start:] for report in reports}
        bench.must(len(payloads) == 1, f"{len(payloads)} answers in {terms.rounds} rounds.")
        bench.must([client.report(held, round=turn) for turn in range(terms.rounds)] == reports, "a report came out otherwise.")
        bench.must(client.spent == terms.rounds * terms.certified, "rounds were not booked.")
    return f"{terms.rounds} rounds, one answer"


@CHECKS(*PROTOCOLS, protocol=list(PROTOCOLS))
def _a_refused_report_leaves_the_diary_as_it_was(bench: Bench, protocol: str) -> None:
    facts: dict[str, Any] = (
        {"padding_length": 1} if protocol.startswith(("pckv", "set")) else {"rounds": 2} if protocol == "privkvm" else {}
    )
    terms = Terms(keys=("a", "b"), epsilon=Fraction(1), protocol=protocol, **facts)
    diary = Diary.in_memory()
    client = Client(terms, diary=diary, credential=b"0123456789abcdef", max_epsilon=terms.certified)
    client.report({"a": 0.3})
    again = Terms(keys=("a", "c"), epsilon=Fraction(1), protocol=protocol, **facts)
    other = Client(again, diary=diary, credential=b"0123456789abcdef", max_epsilon=terms.certified)
    spent, book = diary.spent, repr(sorted(diary._book.items(), key=repr))
    try:
        other.report({"a": 0.3})
    except BudgetRefused:
        bench.must(diary.spent == spent == terms.certified, "a refused report was booked.")
        bench.must(repr(sorted(diary._book.items(), key=repr)) == book, "a refused report was written down.")
        return
    bench.fail("a device spent more than its limit.")
