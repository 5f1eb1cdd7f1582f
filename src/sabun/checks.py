"""The rules a parameter can have, each written once.

A check takes its values by keyword, so that the message has the name and the value for free:

    >>> positive(epsilon=-1.0)
    Traceback (most recent call last):
    sabun.errors.ParameterError: epsilon must be finite and > 0; got -1.0.

Only parameters (public choices of the caller) are checked here; a private record never reaches this module.
"""

from __future__ import annotations

import math
import multiprocessing
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeGuard

from sabun.errors import ParameterError

__all__ = [
    "MAIN",
    "boolean",
    "column",
    "in_earnest",
    "meant",
    "non_negative",
    "offered",
    "one_of",
    "positive",
    "probability",
    "require",
    "text",
    "whole",
]

_LONGEST_SHOWN = 500
"""A file from elsewhere may hold megabytes where a word should stand."""

_LONGEST_NAME = 200
"""Names beyond it are compared with none: the time that takes grows with the square of their length."""

_MOST_OFFERED = 10

MAIN = 'In a script, put its work under `if __name__ == "__main__":`, for every process that it starts reads it again.'
"""What to do about a script that its own helpers would run."""


def require(condition: bool, rule: str, advice: str = "", /, **named: object) -> None:
    """Raises `<name> must be <rule>; got <value>. <advice>` unless the condition holds."""
    if condition:
        return
    [(name, value)] = named.items()
    raise ParameterError(f"{name} must be {rule}; got {_shown(value)}.{' ' + advice if advice else ''}")


def _shown(value: object) -> str:
    try:
        words = str(value) if isinstance(value, Fraction) else repr(value)
        return words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
    except ValueError:  # Python prints no integer of more than 4300 digits
        return "a number too long to print"


def positive(**named: Any) -> None:
    """Finite numbers above zero."""
    for name, value in named.items():
        require(is_number(value) and is_finite(value) and value > 0, "finite and > 0", **{name: value})


def non_negative(**named: Any) -> None:
    """Finite numbers of at least zero."""
    for name, value in named.items():
        require(is_number(value) and is_finite(value) and value >= 0, "finite and >= 0", **{name: value})


def probability(**named: Any) -> None:
    """Numbers in [0, 1)."""
    for name, value in named.items():
        require(is_number(value) and 0 <= value < 1, "at least 0 and below 1", **{name: value})


def whole(*, minimum: int, **named: Any) -> None:
    """Integers (never booleans) of at least `minimum`."""
    for name, value in named.items():
        good = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum
        require(good, f"a whole number >= {minimum}", **{name: value})


def boolean(**named: Any) -> None:
    """True or False."""
    for name, value in named.items():
        require(isinstance(value, bool), "True or False", **{name: value})


def text(**named: Any) -> None:
    """Strings with something in them."""
    for name, value in named.items():
        require(isinstance(value, str) and bool(value.strip()), "a non-empty string", **{name: value})


def one_of(options: Sequence[str], **named: Any) -> None:
    """One of a closed list of words."""
    for name, value in named.items():
        require(value in options, f"one of {', '.join(map(repr, options))}", **{name: value})


def column(known: Iterable[str], **named: Any) -> None:
    """A declared column; the nearest is suggested, or else all are."""
    names = tuple(known)
    for name, value in named.items():
        require(value in names, "a declared column", offered(value, names), **{name: value})


def meant(name: object, known: Iterable[str]) -> str:
    """A question about the nearest of some public names; empty where none is near.

    Never of the first line of a private table: where a file has no header, that is somebody's row.

    Example:
        >>> meant("Wieght", ["age", "weight"]), meant("cost", ["age", "cost (yen)"]), meant("sex", ["age", "weight"])
        ("Did you mean 'weight'?", "Did you mean 'cost (yen)'?", '')
        >>> meant("年令", ["年齢", "地区"]), meant("中部", ["東部", "西部"])
        ("Did you mean '年齢'?", '')
    """
    alike = {unicodedata.normalize("NFKC", one).casefold(): one for one in known}
    wanted = unicodedata.normalize("NFKC", name).casefold()[:_LONGEST_NAME] if isinstance(name, str) else ""
    short = [one for one in alike if len(one) <= _LONGEST_NAME]
    near = get_close_matches(wanted, short, n=1)
    # Words of two characters are half alike at best; then only one of its kind is near.
    near = near or ([] if wanted.isascii() else get_close_matches(wanted, short, n=2, cutoff=0.5))
    near = near or [one for one in alike if wanted and one.startswith(wanted)]
    return f"Did you mean {alike[near[0]]!r}?" if len(near) == 1 else ""


def offered(name: object, known: Iterable[str]) -> str:
    """What to write instead of a name that is none of some public ones: the nearest, or else those there are.

    Example:
        >>> offered("Wieght", ["age", "weight"]), offered("中部", ["東部", "西部"])
        ("Did you mean 'weight'?", "Choose one of '東部', '西部'.")
    """
    names = tuple(known)
    more = f" and {len(names) - _MOST_OFFERED} more" if len(names) > _MOST_OFFERED else ""
    listed = ", ".join(f"{one!r:.60}" for one in names[:_MOST_OFFERED])
    return meant(name, names) or (f"Choose one of {listed}{more}." if names else "")


def is_finite(value: float | Fraction) -> bool:
    """Whether a number fits in a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number or fraction beyond every float
        return False


def is_number(value: object) -> TypeGuard[float | Fraction]:
    """Whether a value is a real number that is not a boolean."""
    return isinstance(value, Real | Rational) and not isinstance(value, bool)


def in_earnest(what: str) -> None:
    """Refuses what a process does while it is being started: it only reads a script again, to find the functions in it."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ParameterError(f"{what} must wait until this process has been started; it only reads the script again. {MAIN}")
