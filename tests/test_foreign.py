"""JSON that somebody else wrote, at every door where such a file comes in."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import exit_code
from sabun.errors import DataError, SabunError
from sabun.foreign import one_line, parse_json
from sabun.privacy import Guarantee
from sabun.records import Schema
from sabun.regression import Study
from sabun.release import Release

DOORS: dict[str, Callable[[str], Any]] = {
    "release": Release.from_json,
    "schema": Schema.from_json,
    "guarantee": Guarantee.from_json,
    "study": Study.from_json,
    "any": lambda text: parse_json(text, what="a file", error=DataError),
}
BROKEN = {
    "no JSON": ("{", "must be valid JSON; line 1, column 2"),
    "nothing": ("", "must be valid JSON; line 1, column 1"),
    "a key twice": ('{"a": 1, "b": {"c": 1, "c": 2}}', "must not have a key twice; got 'c' again"),
    "a little deep": ("[" * 65 + "]" * 65, "must nest at most 64 deep"),
    "deep": ('{"a":' * 900 + "1" + "}" * 900, "must nest at most 64 deep"),
    "deeper than the stack": ("[" * 100_000, "must nest at most 64 deep"),
    "a long number": ("9" * 5_000, "must have integers of at most 1000 digits"),
    "a large number": ("[1e999]", "must have numbers that fit in 64-bit floating point"),
    "no number": ("[NaN]", "must have finite numbers; got NaN"),
    "half a character": (r'["\ud800"]', "must be valid Unicode text"),
    "half a character as it is": ('["\ud800"]', "must be (valid Unicode|UTF-8) text"),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_wrong_with_a_foreign_file_is_said_in_one_sentence(door: str, broken: str) -> None:
    text, message = BROKEN[broken]
    with pytest.raises(SabunError, match=message) as caught:
        DOORS[door](text)
    assert len(str(caught.value)) < 200


def test_good_json_is_read_as_it_is() -> None:
    text = r'{"a": [1, 2.5, null, true, "\ud83d\ude00", "größer"], "b": {"a": {}}}'
    for content in (text, text.encode()):
        read = parse_json(content, what="a file", error=DataError)
        assert read == {"a": [1, 2.5, None, True, "\U0001f600", "größer"], "b": {"a": {}}}
    assert parse_json("[" * 64 + "]" * 64, what="a file", error=DataError)
    assert parse_json("null", what="a file", error=DataError) is None


@pytest.mark.parametrize("door", [*DOORS])
def test_a_key_that_stands_twice_is_found_as_fast_as_the_file_is_read(door: str) -> None:
    pairs = [f'"{number}":1' for number in range(30_000)]
    once, twice = ("{" + ",".join(keys) + "}" for keys in (pairs, [*pairs, pairs[-1]]))

    parse_json(once, what="a file", error=DataError)
    start = time.perf_counter()
    parse_json(once, what="a file", error=DataError)
    alone = time.perf_counter() - start
    start = time.perf_counter()
    with pytest.raises(SabunError, match="a key twice"):
        DOORS[door](twice)
    assert time.perf_counter() - start < 100 * alone  # comparing all pairs takes thousands of times as long


def test_a_deep_schema_file_is_refused_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for depth in (900, 100_000):
        (tmp_path / "deep.json").write_text('{"format":' + "[" * depth + "]" * depth + "}")
        assert exit_code("schema", "show", tmp_path / "deep.json") == 2
        assert capsys.readouterr().err.strip() == "error: a schema must nest at most 64 deep; got a deeper one."


@pytest.mark.parametrize("words", ["a\nb", "\x1b[2K", "a\r", "\u202eabc", "\u2028", "\x00", "\x85", "\ud800"])
def test_words_that_could_do_more_than_be_read_are_escaped(words: str) -> None:
    assert one_line(words) == repr(words)
    assert one_line(words).isprintable()
    assert one_line("größer, 日本") == "größer, 日本"


@pytest.mark.parametrize("half", [0xD800, 0xD9AB, 0xDBFF, 0xDC00, 0xDEAD, 0xDFFF])
@pytest.mark.parametrize("written", ["{:04x}", "{:04X}"])
def test_half_a_character_is_refused_wherever_it_stands(half: int, written: str) -> None:
    escape = "\\u" + written.format(half)
    for text in (f'"{escape}"', f'["a", "{escape}b"]', f'{{"{escape}": 1}}', f'{{"a": {{"b": "c{escape}"}}}}'):
        with pytest.raises(DataError, match="half a character"):
            parse_json(text, what="a file", error=DataError)
    assert parse_json('"\\ud83d\\ude00"', what="a file", error=DataError) == "\U0001f600"
