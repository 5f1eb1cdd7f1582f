"""What somebody else wrote: their JSON read strictly, their words shown on one line.

A file from elsewhere must not take longer than its length, mean two things at once, or end in a traceback.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from sabun.errors import SabunError

__all__ = ["one_line", "parse_json"]

_DEEPEST = 64
"""Twice what any of our formats needs; code that walks a tree by recursion is safe far beyond it."""

_FLAT = f"nest at most {_DEEPEST} deep; got a deeper one."
_LONGEST_INTEGER = 1000
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_Refuse: TypeAlias = Callable[[str], NoReturn]


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

    def refuse(rule: str) -> NoReturn:
        raise error(f"{what} must {rule}") from None

    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        text.encode("utf-8")
        tree = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, refuse), **_numbers(refuse))
        if _SURROGATE.search(text):
            json.dumps(tree, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as problem:
        refuse(f"be valid JSON; line {problem.lineno}, column {problem.colno}: {problem.msg}.")
    except UnicodeDecodeError as problem:
        refuse(f"be UTF-8 text; byte {problem.start} is not.")
    except UnicodeEncodeError:
        refuse("be valid Unicode text; got half a character (a lone surrogate).")
    except RecursionError:
        refuse(_FLAT)
    if _is_deep(tree):
        refuse(_FLAT)
    return tree


def one_line(words: str) -> str:
    """Foreign words as they are, or escaped when they would break the line, drive a terminal or turn text around.

    Example:
        >>> print(one_line("age"), one_line("age" + chr(10) + "Signed by the trusted key"))
        age 'age\\nSigned by the trusted key'
    """
    return words if words.isprintable() else repr(words)


def _unique(pairs: list[tuple[str, Any]], refuse: _Refuse) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        known: set[str] = set()
        twice = next(name for name, _ in pairs if name in known or known.add(name))
        refuse(f"not have a key twice; got {twice!r:.60} again.")
    return record


def _numbers(refuse: _Refuse) -> dict[str, Callable[[str], Any]]:
    """How numbers are read: none is changed by reading it, none takes long."""

    def whole(text: str) -> int:
        return int(text) if len(text) <= _LONGEST_INTEGER else refuse(f"have integers of at most {_LONGEST_INTEGER} digits.")

    def real(text: str) -> float:
        number = float(text)
        return number if math.isfinite(number) else refuse("have numbers that fit in 64-bit floating point; got a larger one.")

    def constant(word: str) -> NoReturn:
        refuse(f"have finite numbers; got {word}.")

    return {"parse_int": whole, "parse_float": real, "parse_constant": constant}


def _is_deep(tree: Any) -> bool:
    level = [tree]
    for _ in range(_DEEPEST):
        branches = [branch for branch in level if isinstance(branch, dict | list)]
        level = [inner for branch in branches for inner in (branch.values() if isinstance(branch, dict) else branch)]
    return any(isinstance(branch, dict | list) for branch in level)
