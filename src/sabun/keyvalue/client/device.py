"""The device: a person's pairs go in, bytes come out, nothing else leaves; proved in device.proof.md."""

from __future__ import annotations

import hmac
import math
import os
import secrets
import warnings
from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, final

from .assignment import assigned_index, check_seed, new_credential, report_id
from .bounds import decimal_text, exact
from .channel import SIGN_BITS, joint_symbol, later_symbol, sign_of, ternary_symbol, unary_symbols
from .diary import Diary
from .pages import Page
from .refusals import ClientError, StudyRefused, Undisturbed, require, shown
from .subsets import drawn_symbols, is_kept, symbols_of
from .terms import Terms
from .wire import header, payload

__all__ = ["Client"]

_LARGE_EPSILON = 20
_STATIC = b"static"
_WHOLE = 1 << SIGN_BITS
_NO = ("", "0", "0.0", "no", "false", "nan")
"""What a text says of a key that is not held."""
_COIN = secrets.SystemRandom()
"""Even choices from the operating system's bits."""


@final
class Client:
    """One person's device in one study.

    Guarantee: one report is `terms.certified`-LDP for everything the person holds. Asking again in the same round gives the
    identical bytes. Over T rounds:

        | answers             | what holds for the whole sequence                                                     |
        |---------------------|---------------------------------------------------------------------------------------|
        | `static=True`       | epsilon in total: the first answer is given for ever, whatever changes                |
        | memoised (default)  | epsilon while nothing changes; if something changes, that it changed may show         |
        | fresh               | T epsilon                                                                             |
        | privkvm             | epsilon in total: its rounds are parts of one participation                           |

    The diary books epsilon per round except where the table says "in total".

    Edge cases, none of which raises an error (a program that is told to stop, by KeyboardInterrupt or SystemExit, stops, with
    nothing booked). How long a report takes does depend on how many pairs there are: send at a time that was fixed before.

        | pairs                                        | treated as                                                   |
        |----------------------------------------------|--------------------------------------------------------------|
        | empty                                        | holds nothing: a report like any other                       |
        | NaN, infinite, no number, outside the range  | that key is absent (silence would be an output); `clip=True` |
        |                                              | moves numbers outside the range to its end                   |
        | a key the study does not know                | ignored                                                      |
        | a mapping that breaks while it is read       | holds what was read until then                               |

    A study without values (`terms.valueless`) asks whether a key is held: a value of 0, False, None, NaN or an empty text, and
    the texts 0, no and false, say no; whatever else is there says yes, within the range or not, and is looked at no further.

    Args:
        terms: The study's terms.
        credential: What the server issued at enrolment; None makes one (kept in the diary). Use one per study: whoever issued
            it can link the studies it is used in.
        seed: The server's revealed seed, for a study with a commitment.
        diary: The device's book or its path; None keeps one in memory for as long as the client lives. With `credential` or
            `max_epsilon` it must be given (`Diary.in_memory()` if that is meant): a second client without a book would answer
            again, under the same id, with a fresh budget.
        max_epsilon: What this device is willing to spend, over all studies in its diary; None for no limit.
        static: Declares that the first answer is to be given for ever.
        clip: Whether numbers outside the range are moved to its end.

    Raises:
        ClientError: An argument breaks its rule.
        StudyRefused: The study asks for more than `max_epsilon`, or the seed is not the committed one.
        DiaryError: The diary cannot be used.

    Example:
        >>> terms = Terms(keys=("YouTube", "LINE"), epsilon=Fraction(2), protocol="kv3")
        >>> len(Client(terms).report({"YouTube": 0.5}))
        38
    """

    def __init__(
        self,
        terms: Terms,
        *,
        credential: bytes | None = None,
        seed: bytes = b"",
        diary: Diary | str | os.PathLike[str] | None = None,
        max_epsilon: Fraction | float | str | None = None,
        static: bool = False,
        clip: bool = False,
    ) -> None:
        require(isinstance(terms, Terms), "terms", "the Terms of a study", type(terms).__name__)
        long_enough = credential is None or (isinstance(credential, bytes) and len(credential) >= 16)
        require(long_enough, "credential", "None or at least 16 bytes", type(credential).__name__)
        for name, flag in (("static", static), ("clip", clip)):
            require(isinstance(flag, bool), name, "True or False", flag)
        require(not static or terms.answers == "memoised", "static", "False where answers are fresh", static)
        check_seed(terms, seed)
        self.terms = terms
        # Public, and computed here: nothing that could fail is left for when a value is looked at.
        self._ends = float(terms.value_range[0]), float(terms.value_range[1])
        self._scale = _scale(*terms.value_range)
        self._limit = _limit(terms, max_epsilon)
        kept = diary is not None or (credential is None and max_epsilon is None)
        require(kept, "diary", "given with credential or max_epsilon", diary, "Pass its path, or a book in memory.")
        self._seed, self._static, self._clip = seed, static, clip
        self._diary = diary if isinstance(diary, Diary) else Diary(diary)
        own, self._place = self._enrol(credential)
        self._identity = report_id(terms, own)
        self._words: dict[bytes, _SignWords] = {}

    @property
    def spent(self) -> Fraction:
        """What this device has spent so far, over all studies in its diary."""
        return self._diary.spent

    @property
    def index(self) -> int | None:
        """The key this device is asked about; None where the protocol picks one of the person's own."""
        return self._place

    def report(
        self,
        pairs: Mapping[str | int, float],
        *,
        round: int = 0,
        means: Mapping[str | int, float] | None = None,
        today: date | None = None,
    ) -> bytes:
        """The bytes to send; booked and on disk before they are handed over.

        Args:
            pairs: What the person holds: value by key. Its contents never raise an error. They are read before the diary is
                opened, so they may look at it.
            round: Which round of the study.
            means: PrivKVM after its first round: the means published last, by key.
            today: The date, for tests; None asks the clock (UTC).

        Raises:
            ClientError: An argument breaks a rule that has nothing to do with what the person holds.
            StudyRefused: The study is not open today.
            BudgetRefused: The device's budget is spent.
        """
        require(isinstance(pairs, Mapping), "pairs", "a mapping from key to value", type(pairs).__name__)
        good = isinstance(round, int) and not isinstance(round, bool) and 0 <= round < self.terms.rounds
        require(good, "round", f"a whole number below {self.terms.rounds}", round)
        _must_be_open(self.terms, today)
        task, held = self.terms.task_id, self._thresholds(pairs)  # proof: read-first
        with self._diary.page() as page:
            stored = page.sent(task, round)
            if stored is not None:
                return stored  # proof: same-bytes
            self._book(page, round)  # proof: charge-first
            report = header(self.terms.short_id, round, self._identity) + self._answer(page, held, round, means)
            page.keep(task, round, report)  # proof: kept-before-sent
        return report

    def check(self, pairs: Mapping[Any, Any]) -> tuple[str, ...]:
        """What `report` would silently leave out, in words for the developer; never to be sent anywhere."""
        unknown = [f"key {key!r} is not in the study" for key in pairs if key not in self.terms.position]
        bad = [
            f"the value of {key!r} is not a number in the study's range"
            for key, value in pairs.items()
            if not self.terms.valueless and key in self.terms.position and self._threshold(value, self._clip) is None
        ]
        return (*unknown, *bad)

    def _enrol(self, credential: bytes | None) -> tuple[bytes, int | None]:
        with self._diary.page() as page:
            known = page.enrolment(self.terms.task_id)
            if known is not None:
                if credential is not None and credential != known[0]:
                    raise ClientError("credential must be the one this diary enrolled with; got another.")
                own, place = known
            else:
                own, place = credential or new_credential(), self._choose()
                page.enrol(self.terms.task_id, own, place)
        if self.terms.sampled and self.terms.index_mode == "assigned":
            place = assigned_index(self.terms, report_id(self.terms, own), self._seed)
        return own, place

    @property
    def _freezes(self) -> bool:
        """Whether the first answer is given for ever."""
        return self._static and self.terms.protocol != "privkvm"

    def _choose(self) -> int | None:
        chosen = self.terms.sampled and self.terms.index_mode == "chosen"
        return secrets.randbelow(len(self.terms.keys)) if chosen else None

    def _book(self, page: Page, round: int) -> None:
        task = self.terms.task_id
        if self.terms.protocol == "privkvm":
            paid = page.booked(task)
        else:
            # Free only where nothing new is drawn: a device that was not static before pays for its static answer.
            paid = self._freezes and page.remembered(task, _STATIC) is not None  # proof: paid
        cost = Fraction(0) if paid else self.terms.certified
        page.charge(task, round, cost, limit=self._limit)

    def _answer(self, page: Page, held: dict[int, int], round: int, means: Mapping[str | int, float] | None) -> bytes:
        """The payload: a remembered one, or a fresh one that is remembered."""
        secret = page.secret()  # read whether anything is held or not: a broken diary must not show who holds something
        if self.terms.protocol == "privkvm":
            return self._payload(self._privkvm(held, round, means))
        if self.terms.answers == "fresh":
            return self._payload(self._draw(_tossed(self._picked(held))))
        states = self._states(secret, held)
        name = _STATIC if self._freezes else _digest(secret, states)
        answer = page.remembered(self.terms.task_id, name)
        if answer is None:
            answer = self._payload(self._draw(self._picked(states)))
            page.remember(self.terms.task_id, name, answer)  # proof: memory
        return answer

    def _states(self, secret: bytes, held: dict[int, int]) -> dict[int, int]:
        """The state of each key that is present, the same for ever; of the asked key alone where only one is asked about."""
        words = self._words.get(secret) or self._words.setdefault(secret, _SignWords(secret, self.terms.task_id))
        asked = sorted(held.keys() & {self._place} if self.terms.sampled else held)
        return {place: sign_of(held[place], words[place]) for place in asked}

    def _thresholds(self, pairs: Mapping[str | int, float]) -> dict[int, int]:
        """Where each held value stands in its range; whatever an odd mapping, key or value raises, the device must not."""
        found: dict[int, int] = {}
        known, clip = self.terms.position, self._clip
        threshold_of = _yes if self.terms.valueless else self._threshold
        with Undisturbed():  # proof: whatever
            for key, value in pairs.items():
                try:
                    place, threshold = known.get(key), threshold_of(value, clip)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException:
                    continue  # this pair is absent, the others are read on
                if place is not None and threshold is not None:
                    found[place] = threshold
        return found

    def _threshold(self, value: Any, clip: bool) -> int | None:
        """Where a value stands in its range, out of 2**SIGN_BITS; None when it is no value of this study."""
        (least, most), (units, low, span) = self._ends, self._scale
        try:
            number = float(value)
            if not least <= number <= most:
                if not clip or math.isnan(number):
                    return None
                number = least if number < least else most
            over, under = number.as_integer_ratio()
        except Exception:  # whatever an odd object does, the device must not fall silent
            return None
        # floor((number - low) / (high - low) 2^53) with both ends of the range in whole units, so that no rational is reduced.
        place = ((over * units - low * under) << SIGN_BITS) // (under * span)  # proof: place
        return 0 if place < 0 else _WHOLE if place > _WHOLE else place

    def _picked(self, pairs: dict[int, int]) -> list[tuple[int, int]]:
        """The pairs an answer is about: that of the asked key, one of the person's own (none for a dummy), or of sets all."""
        if self.terms.sampled:
            assert self._place is not None
            return [(self._place, pairs[self._place])] if self._place in pairs else []
        pick = _cut if self.terms.subsets else _pick
        return pick(pairs, self.terms.padding_length)

    def _draw(self, about: list[tuple[int, int]]) -> int | tuple[int, ...]:
        """The symbol for picked keys and their states."""
        if self.terms.subsets:
            return self._drawn_set(about)
        table, keys, picked = self.terms.table, len(self.terms.keys), about[0] if about else None
        if self.terms.sampled:
            return ternary_symbol(table, 0 if picked is None else picked[1], secrets.randbits(table.bits))
        if self.terms.protocol == "pckv-ue":
            return unary_symbols(table, keys, picked, secrets.token_bytes(keys * -(-table.bits // 8)))
        return joint_symbol(table, keys, picked, secrets.randbits(table.bits))

    def _drawn_set(self, held: list[tuple[int, int]]) -> tuple[int, ...]:
        """What a subset says of each key; how often one is drawn again has the same law for everybody."""
        subset = self.terms.subset
        own = symbols_of(subset, held)
        while True:
            drawn = _COIN.sample(range(subset.symbols), subset.width)  # proof: even
            if is_kept(subset, own, drawn, secrets.randbits(subset.bits)):
                return drawn_symbols(subset, drawn)

    def _privkvm(self, held: dict[int, int], round: int, means: Mapping[str | int, float] | None) -> int:
        picked = _tossed(self._picked(held))
        if round == 0:
            drawn = self._draw(picked)
            assert isinstance(drawn, int)
            return drawn
        assert self._place is not None
        key = self.terms.keys[self._place]
        published = self._threshold(means.get(key), clip=False) if isinstance(means, Mapping) else None
        known = published is not None
        require(known, "means", "the published mean of every key, within the value range", type(means).__name__)
        assert published is not None
        state = sign_of(published, secrets.randbits(SIGN_BITS)) if not picked else picked[0][1]
        return later_symbol(*self.terms.later_table, state, secrets.randbits(self.terms.table_bits))

    def _payload(self, symbol: int | tuple[int, ...]) -> bytes:
        return payload(self.terms, self._place if self.terms.index_mode == "chosen" else None, symbol)


def _yes(value: Any, _: bool) -> int | None:
    """The threshold of a sure plus where a key is held, None where it is not; of an odd object too, whatever it raises."""
    try:
        held = bool(value) and value == value and not (isinstance(value, str) and value.strip().lower() in _NO)
    except Exception:
        held = False
    return _WHOLE if held else None  # proof: yes


class _SignWords(dict[int, int]):
    """The bits that turn a value into a sign, by place: the same for ever, so that a small change rarely shows."""

    def __init__(self, secret: bytes, task: str) -> None:
        self._secret, self._message = secret, b"sign\0" + task.encode()

    def __missing__(self, place: int) -> int:
        digest = hmac.digest(self._secret, self._message + place.to_bytes(4, "big"), "sha256")
        word = self[place] = int.from_bytes(digest[:8], "big") >> (64 - SIGN_BITS)
        return word


def _tossed(picked: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Picked keys with signs that are tossed for this answer alone; keys that are not picked need none."""
    return [(place, sign_of(threshold, secrets.randbits(SIGN_BITS))) for place, threshold in picked]  # proof: toss


def _scale(low: Fraction, high: Fraction) -> tuple[int, int, int]:
    """Units per 1, in which both ends of a range are whole; the lower end and the length in them."""
    units = math.lcm(low.denominator, high.denominator)
    return units, int(low * units), int((high - low) * units)


def _pick(pairs: dict[int, int], padding: int) -> list[tuple[int, int]]:
    """One of max(L, padding) places, exactly uniform: an own pair, or a dummy, which is none."""
    own = list(pairs.items())
    place = secrets.randbelow(max(len(own), padding))  # proof: pick
    return own[place : place + 1]


def _cut(pairs: dict[int, int], most: int) -> list[tuple[int, int]]:
    """All pairs, or `most` of them, every choice as likely."""
    own = list(pairs.items())
    return own if len(own) <= most else _COIN.sample(own, most)  # proof: cut


def _digest(secret: bytes, states: dict[int, int]) -> bytes:
    """The name of a state in the diary, of one length for all; the secret lies beside it, so it hides nothing from a reader."""
    message = b"".join([(place << 8 | state).to_bytes(5, "big") for place, state in states.items()])
    return hmac.digest(secret, b"state\0" + message, "sha256")


def _limit(terms: Terms, max_epsilon: Fraction | float | str | None) -> Fraction | None:
    if terms.epsilon > _LARGE_EPSILON:
        warnings.warn(f"epsilon above {_LARGE_EPSILON} protects nobody in practice; this study asks for more.", stacklevel=3)
    if max_epsilon is None:
        return None
    try:
        limit = exact(max_epsilon)
    except ValueError:
        raise ClientError(f"max_epsilon must be a finite number; got {shown(max_epsilon)}.") from None
    if terms.certified > limit:
        raise StudyRefused(
            f"the study asks for epsilon {decimal_text(terms.certified)}; this device accepts at most {decimal_text(limit)}. "
            "Nothing was drawn."
        )
    return limit


def _must_be_open(terms: Terms, today: date | None) -> None:
    if terms.not_before is None and terms.not_after is None:
        return
    today = datetime.now(UTC).date() if today is None else today
    if terms.not_before is not None and today < terms.not_before:
        raise StudyRefused(f"the study opens on {terms.not_before}; today is {today}.")
    if terms.not_after is not None and today > terms.not_after:
        raise StudyRefused(f"the study closed on {terms.not_after}; today is {today}.")
