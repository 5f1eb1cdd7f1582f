"""What somebody else wrote: their JSON read strictly, their words shown on one line.

A file from elsewhere must not take longer than its length, mean two things at once, or end in a traceback.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any, NoReturn

from sabun.errors import SabunError

__all__ = ["fitted", "one_line", "padded", "parse_json", "shown_width"]

_DEEPEST = 64
"""Twice what any of our formats needs; code that walks a tree by recursion is safe far beyond it."""

_FLAT = f"nest at most {_DEEPEST} deep; got a deeper one."
_LONGEST_INTEGER = 1000
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(content: bytes | str, *, what: str, error: type[SabunError]) -> Any:
    """Reads JSON strictly: UTF-8, no key twice, no NaN, no number beyond a float, no half character, no deep nesting.

    Args:
        content: The text, or its bytes.
        what: What it must be, for the message: "a release".
        error: The kind of error to raise.

    Raises:
        SabunError: Of that kind: the content breaks one of these rules.

    Example:
        >>> from sabun.errors import DataError
        >>> parse_json('{"a": [1, 2.5]}', what="a list", error=DataError)
        {'a': [1, 2.5]}
    """
    rules = _Rules(what, error)
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        text.encode("utf-8")
        tree = json.loads(
            text,
            object_pairs_hook=rules.unique,
            parse_int=rules.whole,
            parse_float=rules.real,
            parse_constant=rules.constant,
        )
        if _SURROGATE.search(text):
            json.dumps(tree, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as problem:
        rules.refuse(f"be valid JSON; line {problem.lineno}, column {problem.colno}: {problem.msg}.")
    except UnicodeDecodeError as problem:
        rules.refuse(f"be UTF-8 text; byte {problem.start} is not.")
    except UnicodeEncodeError:
        rules.refuse("be valid Unicode text; got half a character (a lone surrogate).")
    except RecursionError:
        rules.refuse(_FLAT)
    if _is_deep(tree):
        rules.refuse(_FLAT)
    return tree


def one_line(words: str) -> str:
    """Foreign words as they are, or escaped when they would break the line, drive a terminal or turn text around.

    Example:
        >>> print(one_line("age"), one_line("age" + chr(10) + "Signed by the trusted key"))
        age 'age\\nSigned by the trusted key'
    """
    return words if words.isprintable() else repr(words)


def shown_width(words: str) -> int:
    """How many places words take in a terminal: two for each wide letter.

    Example:
        >>> shown_width("age"), shown_width("年齢")
        (3, 4)
    """
    return sum(_places(letter) for letter in words)


def padded(words: str, places: int) -> str:
    """The words with blanks behind them up to a width; wider ones stay as they are.

    Example:
        >>> padded("年齢", 6) + "|"
        '年齢  |'
    """
    return words + " " * (places - shown_width(words))


def fitted(words: str, places: int) -> str:
    """The words, cut with a sign where they are wider.

    Example:
        >>> fitted("education", 6), fitted("年齢と性別", 6), fitted("sex", 6)
        ('educa…', '年齢…', 'sex')
    """
    if shown_width(words) <= places:
        return words
    taken = ""
    for letter in words:
        if shown_width(taken + letter) > places - 1:
            break
        taken += letter
    return f"{taken}…"


def _places(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):  # marks on the letter before, and signs without a shape
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


@dataclass(frozen=True)
class _Rules:
    """How the parts of a document are read; what breaks a rule is refused in the words of that document."""

    what: str
    error: type[SabunError]

    def refuse(self, rule: str) -> NoReturn:
        raise self.error(f"{self.what} must {rule}") from None

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) != len(pairs):
            [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
            self.refuse(f"not have a key twice; got {twice!r:.60} again.")
        return record

    def whole(self, text: str) -> int:
        if len(text) > _LONGEST_INTEGER:  # reading it would take long, or be refused by Python
            self.refuse(f"have integers of at most {_LONGEST_INTEGER} digits; got a longer one.")
        return int(text)

    def real(self, text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            self.refuse("have numbers that fit in 64-bit floating point; got a larger one.")
        return number

    def constant(self, word: str) -> NoReturn:
        self.refuse(f"have finite numbers; got {word}.")


def _is_deep(tree: Any) -> bool:
    level = [tree]
    for _ in range(_DEEPEST):
        branches = [branch for branch in level if isinstance(branch, dict | list)]
        level = [inner for branch in branches for inner in (branch.values() if isinstance(branch, dict) else branch)]
    return any(isinstance(branch, dict | list) for branch in level)
