"""Ids as whole numbers: equal exactly where the ids are, whatever the column is made of."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sabun.errors import DataError
from sabun.records import ids
from sabun.records.cells import text_of
from sabun.records.ids import SPELLINGS, IdKeys, id_texts, numbered, spelt

TEXTS = [
    "",
    " ",
    "7",
    "007",
    "+7",
    "-7",
    "-0",
    "7.0",
    "a",
    "a ",
    "\u3000a",
    "Ａ",
    "A",
    "ä",
    "a\x1c",
    "x" * 16,
    "x" * 17,
    "\x7f",
    "y" * 63,
    "y" * 64,
    "y" * 65,
    "y" * 62 + "z",
]
SOME = st.lists(st.one_of(st.none(), st.sampled_from(TEXTS), st.text(max_size=20), st.from_regex(r"[+-]?0*[0-9]{1,18}")))


def groups(keys: Any) -> list[Any]:
    """For each row the first one that has its key; None without one."""
    rows = [row.tobytes() for row in keys]
    return [None if not row.strip(b"\0") else rows.index(row) for row in rows]


def by_hand(texts: list[Any], spelling: str) -> list[Any]:
    plain = [spelt(text_of(text), spelling) for text in texts]
    return [plain.index(text) if text else None for text in plain]


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(texts=SOME)
@example(texts=[*TEXTS, None])
@settings(max_examples=150, deadline=None)
def test_keys_are_equal_exactly_where_ids_are(spelling: str, texts: list[str | None]) -> None:
    truth = by_hand(texts, spelling)
    of_bytes = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    whole = pa.array(of_bytes, pa.large_binary()).view(pa.large_string())
    columns: list[Any] = [
        texts,
        whole,
        pa.chunked_array([whole[:1], whole[1:]]),
        pa.concat_arrays([whole.slice(0, 0), pa.array(["before", *[None]], pa.large_string()), whole])[2:],
    ]
    if all(text is None or text.isascii() for text in texts):
        columns += [pa.array(texts, pa.string()), pa.array(texts, pa.string_view()), whole.dictionary_encode()]
    for column in columns:
        assert groups(IdKeys(spelling).of(column, name="who")) == truth


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_numbers_are_the_ids_that_their_texts_are(spelling: str) -> None:
    keys = IdKeys(spelling)
    cells = [7, -7, 0, 10**15, 2**62, -(2**62), 7]
    texts = keys.of([str(cell) for cell in cells], name="who").tolist()
    for column in (np.array(cells), pa.array(cells), pa.array(cells, pa.int64()).dictionary_encode(), cells):
        assert keys.of(column, name="who").tolist() == texts
    small = [7.0, -0.0, 1.5, float("nan"), float("inf")]
    truth = by_hand(small, spelling)
    for floats in (np.array(small), pa.array(small), small, [Decimal("7.00"), *small[1:]]):
        assert groups(keys.of(floats, name="who")) == truth
    with pytest.raises(DataError, match="column 'who' must hold numbers or text; got durations"):
        keys.of(np.array([1], dtype="m8[D]"), name="who")
    with pytest.raises(DataError, match="column 'who' must hold numbers or text; got dates"):
        keys.of(pa.array([0], pa.time32("s")), name="who")


def test_a_short_plain_id_is_its_own_key_and_no_digest_looks_like_one() -> None:
    plain, digests = IdKeys("text").of(["ab", "x" * 16], name="who"), IdKeys("text").of(["x" * 17, "ä"], name="who")
    assert [row.tobytes() for row in plain] == [b"ab" + bytes(14), b"x" * 16]
    assert all(row.tobytes()[-1] >= 128 for row in digests)
    assert not np.array_equal(digests, IdKeys("text").of(["x" * 17, "ä"], name="who")), "a secret of its own"
    shared = [IdKeys("text", secret=b"one").of(["ä"], name="who").tolist() for _ in range(2)]
    assert shared[0] == shared[1]


def test_keys_that_are_mixed_into_one_are_told_apart_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([[1, 5], [2, 5], [1, 5], [1, 6], [2, 5]], dtype=np.uint64)
    for factor in (ids._ODD, np.uint64(0)):  # with 0 the second word plays no part
        monkeypatch.setattr(ids, "_ODD", factor)
        who, first = numbered(keys)
        assert who.tolist() == [0, 1, 0, 2, 1]
        assert first.tolist() == [0, 1, 3]
    who, first = numbered(keys[:0])
    assert len(who) == len(first) == 0


def test_ids_that_were_made_to_be_mixed_into_one_are_told_apart() -> None:
    """Whoever knows how two words become one can find a long id that meets a short one."""
    short, second = np.uint64(0x3131), np.uint64(0x5A5A)
    first = int(short) ^ int(second) * int(ids._ODD) % 2**64
    keys = np.array([[short, 0], [first, second], [short, 0]], dtype=np.uint64)
    assert len(set((keys[:, 0] ^ (keys[:, 1] * ids._ODD)).tolist())) == 1
    assert numbered(keys)[0].tolist() == [0, 1, 0]


DAYS = [datetime.date(2024, 1, 5), None, datetime.date(2024, 1, 6), datetime.date(2024, 1, 5), datetime.date(9999, 12, 31)]
MOMENTS = [None if day is None else datetime.datetime(day.year, day.month, day.day, 3) for day in DAYS]


@pytest.mark.parametrize(
    "cells",
    [
        DAYS,
        MOMENTS,
        np.array(DAYS, dtype=object),
        np.array(DAYS, dtype="M8[D]"),
        np.array(MOMENTS, dtype="M8[s]"),
        pa.array(DAYS),
        pa.chunked_array([pa.array(DAYS[:2]), pa.array(DAYS[2:])]),
        pa.array(DAYS).cast(pa.date64()),
        pa.array(MOMENTS, pa.timestamp("us", tz="Asia/Tokyo")),
    ],
    ids=lambda cells: str(getattr(cells, "type", getattr(cells, "dtype", "list"))),
)
def test_days_and_moments_tell_persons_apart(cells: Any) -> None:
    assert groups(IdKeys("text").of(cells, name="day")) == [0, None, 2, 0, 4]


def test_no_day_is_too_far_away_to_be_read_and_a_day_is_its_text() -> None:
    far = pa.array([-(2**31), 2**31 - 1, 0, None], pa.int32()).view(pa.date32())
    assert groups(IdKeys("text").of(far, name="day")) == [0, 1, 2, None]
    keys = IdKeys("text")
    assert (
        keys.of(DAYS, name="day").tolist()
        == keys.of(["2024-01-05", None, "2024-01-06", "2024-01-05", "9999-12-31"], name="day").tolist()
    )


def test_what_a_question_refuses_is_refused_where_owners_look_too() -> None:
    column = pa.chunked_array([pa.array([datetime.time(3)])])
    for look in (lambda: id_texts(column, name="hour"), lambda: IdKeys("text").of(column, name="hour")):
        with pytest.raises(DataError, match="column 'hour' must hold numbers or text; got dates or times"):
            look()
    assert id_texts(pa.chunked_array([pa.array(DAYS)]), name="day")[:2] == ["2024-01-05", None]
