from __future__ import annotations

import itertools
import math
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.keyvalue.client import (
    PROTOCOLS,
    BudgetRefused,
    Client,
    ClientError,
    Diary,
    DiaryError,
    StudyRefused,
    Terms,
    assigned_index,
    new_credential,
    new_seed,
    report_id,
    report_size,
    unpack,
)
from sabun.keyvalue.client.device import _SignWords

KEYS = ("YouTube", "LINE", "Maps")


def terms(protocol: str = "kv3", **more: object) -> Terms:
    rounds = {"rounds": 3} if protocol == "privkvm" else {}
    return Terms(**({"keys": KEYS, "epsilon": Fraction(2), "protocol": protocol} | rounds | more))  # type: ignore[arg-type]


class Odd:
    def __float__(self) -> float:
        raise RuntimeError("no")


values = st.one_of(
    st.floats(), st.integers(), st.none(), st.text(), st.booleans(), st.just(Odd()), st.decimals(), st.lists(st.floats())
)
pairs = st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(), st.integers(), st.none()), values)


@given(pairs, st.sampled_from(PROTOCOLS), st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_a_person_holds_the_device_answers_with_as_many_bytes(
    held: dict[object, object], protocol: str, clip: bool
) -> None:
    study = terms(protocol)
    report = Client(study, clip=clip).report(held)  # type: ignore[arg-type]
    assert len(report) == report_size(study)
    assert unpack(study, report)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1.0000001, "x", None, 10**400, Odd(), Decimal("NaN")])
def test_a_bad_value_counts_as_absent(bad: object) -> None:
    client = Client(terms())
    assert client._thresholds(dict.fromkeys(KEYS, bad)) == {}  # type: ignore[arg-type]


def test_clipping_moves_numbers_to_the_end_of_the_range() -> None:
    client = Client(terms(), clip=True)
    assert {client._threshold(value, clip=True) for value in (5.0, math.inf, 1.0)} == {1 << 53}
    assert client._threshold(-5.0, clip=True) == 0
    assert client._threshold(math.nan, clip=True) is None


def test_a_value_at_the_end_of_a_decimal_range_is_inside() -> None:
    client = Client(terms(value_range=(Fraction(0), Fraction(1, 10))))
    assert client._threshold(0.1, clip=False) == 1 << 53
    assert client._threshold(0.05, clip=False) == pytest.approx(2**52)


@given(
    st.floats(),
    st.sampled_from([(-1, 1), (0, "0.1"), ("1/3", "22/7"), (-(10**100), 10**100), ("1e-300", "3e-300"), (-7, "-6.9")]),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_a_place_is_what_rational_arithmetic_says(value: float, ends: tuple[Any, Any], clip: bool) -> None:
    client = Client(terms(value_range=ends))
    (low, high), (least, most) = client.terms.value_range, client._ends
    for number in (value, least, most, math.nextafter(least, math.inf), (least + most) / 2, least + (most - least) * 1e-9):
        expected = None
        if least <= number <= most or (clip and not math.isnan(number)):
            moved = min(max(number, least), most)
            expected = math.floor((min(max(Fraction(moved), low), high) - low) / (high - low) * 2**53)
        assert client._threshold(number, clip) == expected


def test_the_developer_can_ask_what_would_be_left_out() -> None:
    found = Client(terms()).check({"YouTube": 0.5, "LINE": math.nan, "Snake": 1.0})
    assert found == ("key 'Snake' is not in the study", "the value of 'LINE' is not a number in the study's range")


def test_asking_again_gives_the_identical_bytes() -> None:
    client = Client(terms())
    first = client.report({"YouTube": 0.5})
    assert all(client.report({"YouTube": 0.5}) == first for _ in range(50))
    assert client.report({}) == first, "the round was answered; a change of mind does not show"
    assert client.spent == 2


def test_a_restarted_device_sends_the_identical_bytes(tmp_path: Path) -> None:
    first = Client(terms(), diary=tmp_path / "diary").report({"YouTube": 0.5})
    again = Client(terms(), diary=tmp_path / "diary")
    assert again.report({"YouTube": 0.5}) == first
    assert again.spent == 2
    assert stat.S_IMODE(os.stat(tmp_path / "diary").st_mode) == 0o600


def test_averaging_learns_nothing_from_a_state_that_stays() -> None:
    study = terms(epsilon=Fraction(1), rounds=90)
    right = 0
    for _ in range(60):
        client = Client(study)
        key = study.keys[client.index or 0]
        symbols = {client.report({key: 1.0}, round=day)[-1] for day in range(90)}
        assert len(symbols) == 1
        right += symbols == {1}
    # The best guess from one answer is right with E/(E+2) = 0.576; 90 fresh answers would make it 1.00.
    assert right / 60 < 0.9


def test_averaging_works_against_fresh_answers_which_is_why_they_cost_more() -> None:
    study = terms(epsilon=Fraction(1), rounds=250, answers="fresh")
    client = Client(study)
    key = study.keys[client.index or 0]
    symbols = [client.report({key: 1.0}, round=day)[-1] for day in range(250)]
    assert symbols.count(1) > max(symbols.count(0), symbols.count(2))
    assert client.spent == 250


def test_memoised_answers_are_one_per_state() -> None:
    study = terms(rounds=40)
    client = Client(study)
    key = study.keys[client.index or 0]
    held = [{key: 1.0}, {key: -1.0}, {}]
    seen = [{client.report(held[turn % 3], round=turn)[-1] for turn in range(state, 39, 3)} for state in range(3)]
    assert [len(answers) for answers in seen] == [1, 1, 1]
    assert client.spent == 39 * 2


def test_the_order_in_which_pairs_come_is_no_new_state() -> None:
    study = terms("set", rounds=9)
    client = Client(study)
    pairs = dict.fromkeys(study.keys, 1.0)
    for day, order in enumerate([pairs, dict(reversed(pairs.items()))] * 4):
        client.report(order, round=day)
    assert sum(table == "memory" for table, *_ in client._diary._book) == 1


def test_a_static_answer_never_changes_and_costs_once() -> None:
    study = terms(rounds=40)
    client = Client(study, static=True)
    key = study.keys[client.index or 0]
    answers = {client.report({key: (-1.0) ** day}, round=day)[-1] for day in range(40)}
    assert len(answers) == 1
    assert client.spent == 2


def test_a_device_that_becomes_static_later_pays_for_its_static_answer(tmp_path: Path) -> None:
    study = terms(rounds=5)
    Client(study, diary=tmp_path / "diary").report({}, round=0)
    later = Client(study, diary=tmp_path / "diary", static=True)
    later.report({}, round=1)
    later.report({}, round=2)
    assert later.spent == 4
    with pytest.raises(BudgetRefused):
        Client(study, diary=tmp_path / "diary", max_epsilon=5).report({}, round=3)


def test_the_rounds_of_privkvm_cost_once() -> None:
    study = terms("privkvm")
    client = Client(study)
    for number in range(3):
        client.report({"LINE": 0.5}, round=number, means=None if number == 0 else dict.fromkeys(KEYS, 0.1))
    assert client.spent == study.certified < 2


@pytest.mark.parametrize("means", [None, {"YouTube": 0.0}, dict.fromkeys(KEYS, math.nan), dict.fromkeys(KEYS, 2.0)])
def test_privkvm_needs_the_published_means(means: dict[str, float] | None) -> None:
    clients = [Client(terms("privkvm")) for _ in range(40)]
    client = next(one for one in clients if one.index != 0)
    with pytest.raises(ClientError, match=r"means must be the published mean of every key, within the value range; got"):
        client.report({"YouTube": 0.5}, round=1, means=means)


def test_a_device_has_one_budget_for_all_studies(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "diary")
    Client(terms(), diary=diary, max_epsilon=3).report({})
    other = Client(terms(keys=("YouTube",)), diary=diary, max_epsilon=3)
    with pytest.raises(BudgetRefused, match=r"this device has epsilon 1 of 3 left; this report needs 2\. Nothing was drawn"):
        other.report({})
    assert diary.spent == 2


def test_a_device_refuses_a_study_above_its_cap() -> None:
    with pytest.raises(
        StudyRefused, match=r"the study asks for epsilon 2; this device accepts at most 1\.5\. Nothing was drawn\."
    ):
        Client(terms(), max_epsilon=1.5)


def test_the_charge_is_on_disk_before_the_answer_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash in the middle leaves nothing: neither a charge nor an answer, so no answer was ever drawn for free."""
    client = Client(terms(), diary=tmp_path / "diary")

    def crash(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sabun.keyvalue.client.device.secrets.randbits", crash)
        with pytest.raises(KeyboardInterrupt):
            client.report({})
    base = sqlite3.connect(tmp_path / "diary")
    assert base.execute("SELECT count(*) FROM spent").fetchone() == base.execute("SELECT count(*) FROM sent").fetchone() == (0,)
    client.report({})
    assert base.execute("SELECT count(*) FROM spent").fetchone() == base.execute("SELECT count(*) FROM sent").fetchone() == (1,)
    base.close()


def test_a_killed_device_never_sent_what_it_does_not_remember(tmp_path: Path) -> None:
    """kill -9 right after the bytes were handed over: a new process sends the same ones."""
    script = (
        "import os, sys; from fractions import Fraction; from sabun.keyvalue.client import Client, Terms;"
        "t = Terms(keys=('a', 'b'), epsilon=Fraction(1), protocol='kv3');"
        "r = Client(t, diary=sys.argv[1]).report({'a': 1.0});"
        "os.write(1, r.hex().encode()); os.kill(os.getpid(), 9)"
    )
    sent = {
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "diary")], capture_output=True, check=False).stdout
        for _ in range(3)
    }
    assert len(sent) == 1
    assert len(sent.pop()) == 76


def test_two_processes_cannot_both_spend_the_last_epsilon(tmp_path: Path) -> None:
    script = (
        "import sys; from fractions import Fraction; from sabun.keyvalue.client import BudgetRefused, Client, Terms\n"
        "t = Terms(keys=('a', sys.argv[2]), epsilon=Fraction(1), protocol='kv3')\n"
        "c = Client(t, diary=sys.argv[1], max_epsilon=1)\n"
        "sys.stdin.readline()\n"
        "try:\n    c.report({}); print('sent')\nexcept BudgetRefused:\n    print('refused')\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "diary"), f"key-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    said = [racer.communicate("go\n")[0].strip() for racer in racers]
    assert sorted(said) == ["refused", "refused", "refused", "sent"]
    assert Diary(tmp_path / "diary").spent == 1


def test_studies_are_open_between_their_dates() -> None:
    client = Client(terms(not_before=date(2026, 1, 2), not_after=date(2026, 1, 3)))
    with pytest.raises(StudyRefused, match="the study opens on 2026-01-02; today is 2026-01-01"):
        client.report({}, today=date(2026, 1, 1))
    with pytest.raises(StudyRefused, match="the study closed on 2026-01-03; today is 2026-01-04"):
        client.report({}, today=date(2026, 1, 4))
    assert client.report({}, today=date(2026, 1, 3))


def test_a_seed_must_be_the_committed_one() -> None:
    seed, commitment = new_seed()
    study = terms(index_commitment=commitment)
    assert Client(study, seed=seed).report({})
    with pytest.raises(StudyRefused, match="seed must be the one this study committed to; it is not"):
        Client(study, seed=b"another")
    with pytest.raises(StudyRefused, match="seed must be left out; this study has no index_commitment"):
        Client(terms(), seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"credential": b"short"}, "credential must be None or at least 16 bytes"),
        ({"static": 1}, "static must be True or False; got 1"),
        ({"clip": "yes"}, "clip must be True or False; got 'yes'"),
        ({"max_epsilon": "much"}, "max_epsilon must be a finite number; got 'much'"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ClientError, match=message):
        Client(terms(), **arguments)  # type: ignore[arg-type]


def test_fresh_answers_cannot_be_static() -> None:
    with pytest.raises(ClientError, match="static must be False where answers are fresh; got True"):
        Client(terms(answers="fresh"), static=True)


def test_a_bad_call_is_named() -> None:
    client = Client(terms())
    with pytest.raises(ClientError, match="pairs must be a mapping from key to value; got 'list'"):
        client.report([])  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="round must be a whole number below 1; got 1"):
        client.report({}, round=1)
    with pytest.raises(ClientError, match="terms must be the Terms of a study; got 'dict'"):
        Client({})  # type: ignore[arg-type]


def test_a_diary_keeps_its_credential(tmp_path: Path) -> None:
    Client(terms(), diary=tmp_path / "diary", credential=b"0123456789abcdef")
    with pytest.raises(ClientError, match="credential must be the one this diary enrolled with; got another"):
        Client(terms(), diary=tmp_path / "diary", credential=b"fedcba9876543210")


def test_a_very_large_epsilon_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="epsilon above 20 protects nobody in practice"):
        Client(terms(epsilon=Fraction(21)))


def test_the_chosen_index_is_kept(tmp_path: Path) -> None:
    study = terms(index_mode="chosen", keys=tuple(range(1000)))
    first = Client(study, diary=tmp_path / "diary")
    assert Client(study, diary=tmp_path / "diary").index == first.index
    assert unpack(study, first.report({})).index == first.index


def predictable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tosses for everybody who begins anew."""
    from sabun.keyvalue.client import device, pages

    class Counting:
        def __init__(self) -> None:
            self.turn = itertools.count(1)

        def _word(self) -> int:
            return next(self.turn) * 0x9E3779B97F4A7C15

        def randbits(self, bits: int) -> int:
            return (self._word() << 64 | self._word()) % (1 << bits)

        def randbelow(self, bound: int) -> int:
            return self._word() % bound

        def token_bytes(self, count: int) -> bytes:
            return bytes((self._word() >> 8) % 256 for _ in range(count))

    tosses = Counting()
    for module in (device, pages):
        monkeypatch.setattr(module, "secrets", tosses)
    monkeypatch.setattr(device, "_COIN", random.Random(0))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("more", [{}, {"answers": "fresh"}, {"static": True}, {"clip": True, "max_epsilon": 9}])
def test_a_book_in_memory_tells_the_same_story_as_a_file(
    protocol: str, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [{"YouTube": 0.5}, {"YouTube": 0.5, "Maps": -0.2}, {}, {"YouTube": 0.5}, {"LINE": 7.0}, {"YouTube": 0.5}]
    more = dict(more)
    study = terms(protocol, rounds=6, answers=more.pop("answers", "memoised"))
    stories = []
    for path in (None, tmp_path / "diary"):
        story: list[Any] = []
        with monkeypatch.context() as patch:
            predictable(patch)
            client = Client(study, diary=Diary(path), credential=b"0123456789abcdef", **more)
            for number, pairs in [*enumerate(held), (2, {"YouTube": 1.0})]:
                means = dict.fromkeys(KEYS, 0.1) if protocol == "privkvm" and number else None
                try:
                    story.append((client.report(pairs, round=number, means=means), client.spent))
                except BudgetRefused as error:
                    story.append((str(error), client.spent))
        stories.append(story)
    assert stories[0] == stories[1]
    assert len({told[0] for told in stories[0]}) > 1


def interrupted_at(step: int, job: Callable[[], object]) -> bool:
    """Whether an order to stop came at that line of the client's code, before the job was done."""
    left = itertools.count(step, -1)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if "/keyvalue/client/" not in frame.f_code.co_filename.replace(os.sep, "/"):
            return None
        if event == "line" and next(left) == 0:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_book_in_memory_holds_all_of_a_page_or_nothing_wherever_it_is_interrupted() -> None:
    study, seen, closed = terms("pckv-ue", rounds=3), set(), 0
    for step in itertools.count():
        diary = Diary.in_memory()
        client = Client(study, diary=diary, max_epsilon=4)
        client.report({"LINE": 0.1}, round=1)
        stopped = interrupted_at(step, lambda client=client: client.report({"YouTube": 0.5}))  # type: ignore[misc]
        kept = sum(name[0] == "sent" for name in diary._book)
        assert diary._book["device", "spent"] == (2 * kept,), f"stopped at line {step}: booked and kept must go together"
        seen.add(kept)
        try:
            first = client.report({"YouTube": 0.5})
            assert (client.report({}), diary.spent) == (first, 4)
        except DiaryError:
            closed += 1  # stopped while the page was given back: the book stays closed, which is the safe side
        if not stopped:
            break
    assert step > 60
    assert seen == {1, 2}, "stopped before the page was kept, and after it"
    assert closed <= 2


def test_threads_that_share_a_book_share_its_budget() -> None:
    diary, study = Diary.in_memory(), terms(epsilon=Fraction(1), rounds=400, answers="fresh")
    client = Client(study, diary=diary, max_epsilon=150)
    sent: list[bytes] = []

    def work(numbers: range) -> None:
        for number in numbers:
            try:
                sent.append(client.report({}, round=number))
            except (BudgetRefused, DiaryError):
                continue

    threads = [threading.Thread(target=work, args=(range(begin, 400, 4),)) for begin in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert diary.spent == len(sent) <= 150


ONE = Terms(keys=("a",), epsilon=Fraction(1), protocol="kv3")


@pytest.mark.parametrize("seed", ["", None, bytearray()])
def test_a_seed_is_bytes(seed: Any) -> None:
    with pytest.raises(ClientError, match="seed must be bytes; got"):
        Client(ONE, seed=seed)


def test_a_commitment_binds_fakers_but_not_the_server() -> None:
    """The server knows its seed while it issues credentials, so it can search for one that asks about a wanted key."""
    seed, commitment = new_seed()
    terms = Terms(keys=tuple("abcdefgh"), epsilon=Fraction(1), protocol="kv3", index_commitment=commitment)
    found = next(c for c in iter(new_credential, b"") if assigned_index(terms, report_id(terms, c), seed) == 3)
    assert Client(terms, credential=found, seed=seed, diary=Diary.in_memory()).index == 3


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "privkvm"])
def test_every_state_has_an_answer_of_its_own_and_is_known_again(protocol: str) -> None:
    """Which of the keys asked about are held, and with which sign: what a device remembers is neither less nor more."""
    study = terms(protocol, rounds=60)
    client = Client(study)
    place = study.keys[client.index or 0]
    others = [key for key in study.keys if key != place][:1]
    values = [1.0] if study.valueless else [1.0, -1.0]
    states = [dict(pairs) for held in ([], [place], others, [place, *others]) for pairs in _with_values(held, values)]
    asked = {place} if study.sampled else {place, *others}
    different = {tuple(sorted((key, state[key]) for key in asked & state.keys())) for state in states}
    for turn, state in enumerate([*states, *states]):
        client.report(state, round=turn)
    assert sum(table == "memory" for table, *_ in client._diary._book) == len(different)


def _with_values(held: list[str], values: list[float]) -> Iterator[list[tuple[str, float]]]:
    for chosen in itertools.product(values, repeat=len(held)):
        yield list(zip(held, chosen, strict=True))


def test_no_two_tosses_for_a_sign_are_the_same() -> None:
    """Neither two keys, nor two studies on one device, nor two devices."""
    words = [
        _SignWords(secret, task)[place]
        for secret in (bytes(32), bytes([1]) * 32)
        for task in ("one", "two")
        for place in range(20)
    ]
    assert len(set(words)) == len(words)
