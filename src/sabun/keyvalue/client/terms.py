"""The terms of a study: everything a device has to know, in one hashed document.

The canonical JSON (keys sorted, no blanks, ASCII) is what is hashed; SHA-256 of it is the `task_id`, so one changed letter is
another study.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, Self, TypeVar

from .bounds import decimal_text, exact
from .probabilities import (
    PADDED,
    PROTOCOLS,
    SAMPLED,
    SETS,
    VALUELESS,
    Table,
    certified_epsilon,
    later_round,
    subsets_of,
    table_for,
)
from .refusals import ClientError, require, shown
from .subsets import Subset

__all__ = ["ADVISED", "ANSWERS", "INDEX_MODES", "Terms"]

ANSWERS = ("memoised", "fresh")
INDEX_MODES = ("assigned", "chosen")
ADVISED = {"auto": "both", "auto-f": "f", "auto-m": "m"}
"""What was requested where the advisor chose, and what it was to aim at."""
_VERSION = 1
_FARTHEST = 10**100
"""Ends of a value range beyond this are refused: sums and differences of values must stay finite numbers."""
_MOST_KEYS = 1 << 24
_AMOUNTS = ("epsilon", "typical_frequency")
_DATES = ("not_before", "not_after")


_Kind = TypeVar("_Kind")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a study asks, of whom, at which epsilon; immutable, complete when constructed.

    Args:
        keys: The public list of keys, all texts or all whole numbers.
        epsilon: The nominal budget of one participation.
        protocol: One of `PROTOCOLS`.
        value_range: Smallest and largest value, within 1e100 of zero.
        padding_length: ell of the padded protocols; 1 for the others.
        rounds: How often a person is asked at most.
        answers: `memoised` (the same state gives the same answer) or `fresh`.
        index_mode: Who picks the key of a sampled protocol: the server (`assigned`) or the device (`chosen`).
        index_commitment: SHA-256 (hex) of the secret the server reveals after enrolment, or None.
        table_bits: Resolution of the integer table, 16 to 64.
        min_batch: Estimates are refused below this many reports.
        not_before: First day, or None.
        not_after: Last day, or None.
        requested: The protocol that was asked for; `auto`, `auto-f` or `auto-m` when the advisor chose.
        keys_per_user: Public bound on how many keys a person holds, or None.
        typical_frequency: Public guess of a key's frequency, or None.
        expected_reports: Public guess of the number of reports, or None.

    Raises:
        ClientError: A term breaks its rule.

    Example:
        >>> terms = Terms(keys=("YouTube", "LINE"), epsilon=Fraction(2), protocol="kv3")
        >>> Terms.from_json(terms.to_json()) == terms, len(terms.task_id)
        (True, 64)
    """

    keys: tuple[str | int, ...]
    epsilon: Fraction
    protocol: str
    value_range: tuple[Fraction, Fraction] = (Fraction(-1), Fraction(1))
    padding_length: int = 1
    rounds: int = 1
    answers: str = "memoised"
    index_mode: str = "assigned"
    index_commitment: str | None = None
    table_bits: int = 64
    min_batch: int = 1
    not_before: date | None = None
    not_after: date | None = None
    requested: str | None = None
    keys_per_user: int | None = None
    typical_frequency: Fraction | None = None
    expected_reports: int | None = None

    def __post_init__(self) -> None:
        self._set("keys", _keys(self.keys))
        self._set("epsilon", _number("epsilon", self.epsilon))
        require(self.epsilon > 0, "epsilon", "finite and > 0", self.epsilon)
        self._set("value_range", _range(self.value_range))
        _choice(PROTOCOLS, protocol=self.protocol)
        _choice(ANSWERS, answers=self.answers)
        _choice(INDEX_MODES, index_mode=self.index_mode)
        self._check_counts()
        self._check_facts()
        self._check_dates()
        assert self.certified <= self.epsilon  # computed now: a table that cannot keep its promise must not come into being

    def _check_counts(self) -> None:
        for name, low, high in (("padding_length", 1, len(self.keys)), ("rounds", 1, 2**32 - 1), ("table_bits", 16, 64)):
            _whole(name, getattr(self, name), low, high)
        _whole("min_batch", self.min_batch, 1, 2**62)
        alone = self.protocol in SAMPLED
        require(not alone or self.padding_length == 1, "padding_length", f"1 for {self.protocol!r}", self.padding_length)
        require(self.protocol != "privkvm" or self.rounds >= 2, "rounds", "at least 2 for 'privkvm'", self.rounds)
        if self.index_commitment is not None:
            given, assigned = self.index_commitment, alone and self.index_mode == "assigned"
            require(_is_hash(given), "index_commitment", "None or a SHA-256 in hex", given)
            require(assigned, "index_commitment", "left out unless the server assigns keys", given)

    def _check_facts(self) -> None:
        for name in ("keys_per_user", "expected_reports"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1, 2**62)
        if self.typical_frequency is not None:
            frequency = _number("typical_frequency", self.typical_frequency)
            require(0 < frequency <= 1, "typical_frequency", "above 0 and at most 1", self.typical_frequency)
            self._set("typical_frequency", frequency)
        self._set("requested", self.protocol if self.requested is None else self.requested)
        _choice((*ADVISED, self.protocol), requested=self.requested)

    def _check_dates(self) -> None:
        for name in _DATES:
            value = getattr(self, name)
            require(value is None or type(value) is date, name, "a date or None", value)
        if self.not_before is not None and self.not_after is not None:
            require(self.not_before <= self.not_after, "not_after", f"at least {self.not_before}", self.not_after)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def sampled(self) -> bool:
        """Whether each person is asked about one key."""
        return self.protocol in SAMPLED

    @property
    def padded(self) -> bool:
        """Whether what a person holds is padded."""
        return self.protocol in PADDED

    @property
    def valueless(self) -> bool:
        """Whether frequencies alone are asked for."""
        return self.protocol in VALUELESS

    @property
    def signs(self) -> int:
        """How many signs a report knows: plus and minus, or yes alone."""
        return 1 if self.valueless else 2

    @property
    def subsets(self) -> bool:
        """Whether a report is a subset of all symbols."""
        return self.protocol in SETS

    @cached_property
    def table(self) -> Table:
        """The integer table devices draw from (the first round's); for `set`, what its reports say of one key."""
        return table_for(**self._table_facts)

    @cached_property
    def subset(self) -> Subset:
        """How devices of a `set` protocol draw."""
        facts = self._table_facts
        del facts["rounds"]
        return subsets_of(**facts)

    @cached_property
    def later_table(self) -> tuple[int, int]:
        """PrivKVM after its first round: how often a sign is kept, how often it is turned."""
        return later_round(epsilon=self.epsilon, rounds=self.rounds, bits=self.table_bits)

    @cached_property
    def certified(self) -> Fraction:
        """The epsilon one participation really has, from the table's own entries, rounded up."""
        return certified_epsilon(**self._table_facts)

    @property
    def _table_facts(self) -> dict[str, Any]:
        facts = {"protocol": self.protocol, "epsilon": self.epsilon, "keys": len(self.keys)}
        return facts | {"padding": self.padding_length, "rounds": self.rounds, "bits": self.table_bits}

    @cached_property
    def task_id(self) -> str:
        """SHA-256 of the canonical JSON, in hex."""
        return hashlib.sha256(self.to_json().encode("ascii")).hexdigest()

    @cached_property
    def short_id(self) -> bytes:
        """The 16 bytes of the task id that travel with each report."""
        return bytes.fromhex(self.task_id)[:16]

    @cached_property
    def position(self) -> Mapping[str | int, int]:
        """Where each key stands in the list."""
        return {key: place for place, key in enumerate(self.keys)}

    def to_json(self) -> str:
        """Canonical JSON: equal terms give equal letters."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        record["version"] = _VERSION
        record["keys"] = list(self.keys)
        record["value_range"] = [decimal_text(end) for end in self.value_range]
        for name in _AMOUNTS:
            record[name] = None if record[name] is None else decimal_text(record[name])
        for name in _DATES:
            record[name] = None if record[name] is None else record[name].isoformat()
        return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote, letter for letter.

        Raises:
            ClientError: It is no study, or not in its canonical form.
        """
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            raise ClientError("a study must be valid JSON; it could not be parsed.") from None
        names = {field.name for field in dataclasses.fields(cls)} | {"version"}
        if not isinstance(record, dict) or set(record) != names:
            raise ClientError("a study must have exactly the fields of version 1; it has others.")
        if record.pop("version") != _VERSION:
            raise ClientError("version must be 1; got another. A newer Sabun may be able to read this study.")
        terms = _constructed(cls, _decoded(record))
        if terms.to_json() != text.strip():
            raise ClientError(
                "a study must be in its canonical form; this one was edited or reformatted. Use it as it was saved."
            )
        return terms


def _constructed(kind: type[_Kind], record: dict[str, Any]) -> _Kind:
    """The terms of a foreign file; whatever is wrong with it is said in one way."""
    try:
        return kind(**record)
    except ClientError:
        raise
    except Exception:
        raise ClientError("a study must hold terms as version 1 writes them; it does not.") from None


def _decoded(record: dict[str, Any]) -> dict[str, Any]:
    try:
        record["keys"] = tuple(record["keys"])
        record["value_range"] = tuple(exact(str(end)) for end in record["value_range"])
        for name in _AMOUNTS:
            record[name] = None if record[name] is None else exact(str(record[name]))
        for name in _DATES:
            record[name] = None if record[name] is None else date.fromisoformat(record[name])
    except (TypeError, ValueError):
        raise ClientError("a study must hold keys, numbers and dates as version 1 writes them; it does not.") from None
    return record


def _keys(keys: object) -> tuple[str | int, ...]:
    listed = isinstance(keys, tuple | list)
    require(listed, "keys", "a list of names", type(keys).__name__)
    assert isinstance(keys, tuple | list)
    require(1 <= len(keys) <= _MOST_KEYS, "keys", f"a list of 1 to {_MOST_KEYS} names", f"{len(keys)} names")
    words = all(isinstance(key, str) and key for key in keys)
    numbers = all(isinstance(key, Integral) and not isinstance(key, bool) for key in keys)
    require(words or numbers, "keys", "all texts or all whole numbers, none of them empty", keys)
    require(not words or all(map(_is_writable, keys)), "keys", "texts without surrogates", "a lone half of a character")
    found = tuple(keys) if words else tuple(int(key) for key in keys)
    twice = [key for key, times in Counter(found).items() if times > 1]
    if twice:
        raise ClientError(f"keys must be distinct; got {shown(twice[0])} twice. Name each once.")
    return found


def _number(name: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except ValueError:
        raise ClientError(f"{name} must be a finite number; got {shown(value)}.") from None


def _range(ends: Any) -> tuple[Fraction, Fraction]:
    require(isinstance(ends, tuple | list) and len(ends) == 2, "value_range", "a pair (lower, upper)", ends)
    low, high = (_number("value_range", end) for end in ends)
    near = -_FARTHEST <= low < high <= _FARTHEST
    # A device works with the ends as floats: they have to be finite and distinct, or an error could tell who holds the key.
    require(near and float(low) < float(high), "value_range", "a pair with lower < upper, both within 1e100 of 0", ends)
    return low, high


def _is_writable(key: str) -> bool:
    """Two halves of a character are written like the whole one in JSON, and would share its task id."""
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _whole(name: str, value: object, low: int, high: int) -> None:
    good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    require(good, name, f"a whole number from {low} to {high}", value)


def _choice(options: tuple[str, ...], **named: object) -> None:
    [(name, value)] = named.items()
    require(value in options, name, f"one of {', '.join(map(repr, options))}", value)


def _is_hash(text: object) -> bool:
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")
