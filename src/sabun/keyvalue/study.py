"""A study: what is asked, of whom, at which epsilon; fixed before anybody answers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

from numpy.typing import ArrayLike

from sabun import checks
from sabun.asking.names import renamed
from sabun.errors import DataError, ParameterError
from sabun.keyvalue.advisor import Advice, advise
from sabun.keyvalue.attacks import Attack
from sabun.keyvalue.channel import Channel
from sabun.keyvalue.client import PROTOCOLS, Client, ClientError, Diary, Terms, report_size
from sabun.keyvalue.client.assignment import check_seed
from sabun.keyvalue.client.probabilities import PADDED
from sabun.keyvalue.client.terms import ADVISED
from sabun.keyvalue.padding import cut_note
from sabun.keyvalue.plan import Plan, plan_of
from sabun.keyvalue.population import People
from sabun.keyvalue.simulation import simulate_marginals, simulate_people
from sabun.keyvalue.tally import Tally
from sabun.keyvalue.yesno import channel_seen
from sabun.privacy import AmountLike, Guarantee, exact_positive, plain

__all__ = ["Study"]

_ROUNDS_OF_PRIVKVM = 3
_FACTS = ("protocol", "padding_length", "rounds", "answers", "index_mode", "table_bits", "min_batch")


@final
@dataclass(frozen=True, kw_only=True)
class Study:
    """The public terms of a collection of (key, value) pairs from people's devices.

    Guarantee: every report is epsilon-LDP for everything its sender holds (`study.guarantee` has the epsilon of the integer
    table that is really drawn from; for `privkv` it is smaller than the nominal one).

    Args:
        keys: The public list of keys.
        epsilon: The budget of one participation.
        protocol: `auto` (the advisor chooses from the public facts below), `auto-m` (it looks above all at means), `auto-f`
            (at frequencies alone: values are not asked for and there are no means), or `kv3`, `privkv`, `privkv-tight`,
            `privkvm`, `pckv-ue`, `pckv-grr`, `pckv-grr+`, `set`; or, for frequencies alone, `rr-f`, `set-f`.
        value_range: Smallest and largest value, for all keys.
        padding_length: ell of the padded (`pckv-…`, `set`) protocols; None takes the advisor's, or `keys_per_user`, or else the
            number of keys, which is never biased.
        rounds: How often a person is asked at most; None is 1 (3 for `privkvm`).
        answers: `memoised` or `fresh` noise in later rounds.
        index_mode: `assigned` by the server (fakers cannot aim) or `chosen` by the device.
        index_commitment: Commitment to the server's seed, see `sabun.keyvalue.client.new_seed`.
        table_bits: Resolution of the integer table.
        min_batch: Estimates of a round are refused below this many reports.
        not_before: First day, a date or ISO text.
        not_after: Last day.
        keys_per_user: Public bound on how many keys a person holds.
        typical_frequency: Public guess of a key's frequency.
        expected_reports: Public guess of the number of reports.

    Raises:
        ParameterError: A term breaks its rule.

    Example:
        >>> study = Study(keys=["YouTube", "LINE"], epsilon=2.0)
        >>> study.protocol, len(study.task_id)
        ('kv3', 64)
        >>> result = study.simulate([0.5, 0.2], [0.1, -0.3], n=100_000, random_state=0).estimate()
        >>> result.frequency.round(1)
        array([0.5, 0.2])
    """

    keys: Sequence[str | int]
    epsilon: AmountLike
    protocol: str = "auto"
    value_range: tuple[AmountLike, AmountLike] = (-1, 1)
    padding_length: int | None = None
    rounds: int | None = None
    answers: str = "memoised"
    index_mode: str = "assigned"
    index_commitment: str | None = None
    table_bits: int = 64
    min_batch: int = 1
    not_before: date | str | None = None
    not_after: date | str | None = None
    keys_per_user: int | None = None
    typical_frequency: AmountLike | None = None
    expected_reports: int | None = None
    terms: Terms = field(init=False, repr=False)
    """What devices and tallies work with; its JSON is what is hashed."""

    def __post_init__(self) -> None:
        checks.one_of((*ADVISED, *PROTOCOLS), protocol=self.protocol)
        # A text is a sequence too, and never a list of keys.
        listed = isinstance(self.keys, Sequence) and not isinstance(self.keys, str | bytes)
        keys = tuple(self.keys) if listed or hasattr(self.keys, "tolist") else self.keys
        with _as_parameters():
            terms = self._terms(keys, exact_positive(self.epsilon, name="epsilon"))
        for name in ("keys", "epsilon", "value_range", "rounds", "padding_length", "protocol", "not_before", "not_after"):
            object.__setattr__(self, name, getattr(terms, name))
        object.__setattr__(self, "typical_frequency", terms.typical_frequency)
        object.__setattr__(self, "terms", terms)

    def _terms(self, keys: Any, epsilon: Fraction) -> Terms:
        given: dict[str, Any] = {
            "keys": keys,
            "epsilon": epsilon,
            "value_range": self.value_range,
            "rounds": (_ROUNDS_OF_PRIVKVM if self.protocol == "privkvm" else 1) if self.rounds is None else self.rounds,
            "not_before": _day("not_before", self.not_before),
            "not_after": _day("not_after", self.not_after),
            "typical_frequency": self.typical_frequency,
        }
        for name in ("answers", "index_mode", "table_bits", "min_batch", "keys_per_user", "expected_reports"):
            given[name] = getattr(self, name)
        # Checked once as the simplest study: the advisor and the defaults below may then rely on the public facts.
        checked = Terms(**given, protocol="kv3")
        protocol, length = self._protocol(checked)
        given |= {"protocol": protocol, "requested": self.protocol, "padding_length": length}
        return Terms(**given, index_commitment=self.index_commitment)

    def _protocol(self, checked: Terms) -> tuple[str, Any]:
        """The protocol with its padding length, settled."""
        if self.protocol in ADVISED:
            best = _advice(checked, ADVISED[self.protocol]).best
            wanted = best.padding_length if self.padding_length is None else self.padding_length
            return best.protocol, wanted if best.protocol in PADDED else 1
        if self.padding_length is not None:
            return self.protocol, self.padding_length
        most = len(checked.keys) if checked.keys_per_user is None else checked.keys_per_user
        return self.protocol, min(most, len(checked.keys)) if self.protocol in PADDED else 1

    @property
    def aim(self) -> str:
        """What the study wants to know: `both`, `m` (above all means) or `f` (frequencies alone)."""
        return "f" if self.terms.valueless else ADVISED.get(self.terms.requested or "", "both")

    @property
    def task_id(self) -> str:
        """SHA-256 of the canonical JSON: the study's name on every report."""
        return self.terms.task_id

    @property
    def guarantee(self) -> Guarantee:
        """What one participation costs its person, from the table that is drawn from."""
        words = ["the device runs the published code on an honest source of random bits"]
        if self.terms.rounds > 1 and self.protocol != "privkvm":
            kept = "what a person holds does not change between rounds"
            words.append(kept if self.answers == "memoised" else "one round is meant; each costs as much")
        return Guarantee(
            epsilon=self.terms.certified,
            relation="local",
            model="local",
            unit="person",
            mechanism=f"{self.protocol} over {len(self.terms.keys)} keys",
            assumptions=tuple(words),
        )

    @cached_property
    def channel(self) -> Channel:
        """The channel the estimators invert, with padding mixed in."""
        return channel_seen(self.protocol, self.terms.table, self.terms.padding_length)

    @property
    def facts(self) -> dict[str, Any]:
        """The public facts that travel with an estimate."""
        record: dict[str, Any] = {name: getattr(self.terms, name) for name in _FACTS}
        return record | {"task_id": self.task_id, "epsilon": str(self.terms.epsilon), "keys": len(self.terms.keys)}

    @property
    def report_bytes(self) -> int:
        """Size of every report."""
        return report_size(self.terms)

    def client(
        self,
        *,
        credential: bytes | None = None,
        seed: bytes = b"",
        diary: Diary | str | os.PathLike[str] | None = None,
        max_epsilon: AmountLike | None = None,
        static: bool = False,
        clip: bool = False,
    ) -> Client:
        """One person's device; see `sabun.keyvalue.client.Client`.

        Raises:
            ParameterError: The device refuses the study, or an argument breaks its rule.
        """
        limit = None if max_epsilon is None else exact_positive(max_epsilon, name="max_epsilon")
        with _as_parameters():
            return Client(
                self.terms, credential=credential, seed=seed, diary=diary, max_epsilon=limit, static=static, clip=clip
            )

    def tally(self, *, round: int = 0, seed: bytes = b"", enrolled: Collection[bytes] | None = None) -> Tally:
        """Empty counters for the reports of one round of this study.

        Args:
            round: Which round; a person counts once in it. PrivKVM counts all of its rounds and takes 0 only.
            seed: The server's seed, for a study with a commitment.
            enrolled: The report ids of issued credentials; others are refused. None counts every id.
        """
        return Tally(self, round=round, seed=seed, enrolled=enrolled)

    def checked_seed(self, seed: bytes) -> bytes:
        """The server's seed, if it is the one the study committed to.

        Raises:
            ParameterError: It is not.
        """
        with _as_parameters():
            check_seed(self.terms, seed)
        return seed

    def simulate(
        self,
        frequencies: ArrayLike,
        means: ArrayLike | None = None,
        *,
        n: int,
        random_state: int | None = None,
        attack: Attack | None = None,
    ) -> Tally:
        """The tally of n made-up people, drawn from the exact law of the counts. NOT PRIVATE.

        Args:
            frequencies: Share of people who hold each key.
            means: Mean value of those who do, in the study's units; not used where no values are asked.
            n: Number of people.
            random_state: A seed, or None for another run each time.
            attack: Fake people to add.

        Raises:
            ParameterError: An argument breaks its rule.
        """
        return simulate_marginals(self, frequencies, means, n=n, random_state=random_state, attack=attack)

    def simulate_people(self, people: People, *, random_state: int | None = None) -> Tally:
        """The tally of given made-up people, one by one. NOT PRIVATE."""
        return simulate_people(self, people, random_state=random_state)

    @renamed(n="n_records", level="confidence")
    def plan(
        self, *, n_records: int, frequency: float | None = None, mean: float | None = None, confidence: float = 0.95
    ) -> Plan:
        """Cost and expected error, without touching data.

        Args:
            n_records: About how many people will report.
            frequency: The share of people who hold a key, typically; None takes the study's `typical_frequency`, or foretells
                the best and the worst.
            mean: Their mean value; None for the middle of the range.
            confidence: Of the intervals.

        Raises:
            ParameterError: An argument breaks its rule.
        """
        return plan_of(self, n_records=n_records, frequency=frequency, mean=mean, confidence=confidence)

    @property
    def advice(self) -> Advice:
        """How the protocols compare on this study's public facts."""
        return _advice(self.terms, self.aim)

    def explain(self) -> str:
        """The choice of protocol and its cost, in plain words."""
        terms = self.terms
        chosen = "chosen by the advisor" if terms.requested in ADVISED else "asked for"
        padding = f" with padding length {terms.padding_length}" if terms.padded else ""
        nominal = f"(nominal {plain(terms.epsilon)}), certified from its integer table"
        spent = f"epsilon {plain(terms.certified)} per participation {nominal}"
        lines = [f"Protocol {self.protocol}{padding}, {chosen}: {spent}.", f"Report: {self.report_bytes} bytes for everybody."]
        if terms.sampled:
            who = "the server assigns" if terms.index_mode == "assigned" else "the device chooses"
            lines.append(f"Each person answers about one of {len(terms.keys)} keys, which {who}.")
        if terms.valueless:
            lines.append("Frequencies alone: values are not asked for, and there are no means.")
        note = cut_note(terms)
        lines += [f"Note: {note}"] if note else []
        return "\n".join([*lines, "", str(self.advice)])

    def to_json(self) -> str:
        """Canonical JSON."""
        return self.terms.to_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            DataError: It is no study.
        """
        try:
            terms = Terms.from_json(text)
        except ClientError as error:
            raise DataError(str(error)) from None
        names = [name for name in cls.__dataclass_fields__ if name not in ("terms", "protocol")]
        study = cls(**{name: getattr(terms, name) for name in names}, protocol=terms.protocol)
        # The advisor is not asked again: what was chosen when the study began stays.
        object.__setattr__(study, "terms", terms)
        return study

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the study as JSON."""
        Path(path).write_text(self.to_json() + "\n", encoding="ascii")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote.

        Raises:
            DataError: It is no study.
        """
        try:
            text = Path(path).read_text(encoding="ascii")
        except UnicodeDecodeError:
            raise DataError("a study must be ASCII text, as it was saved; it is not.") from None
        return cls.from_json(text)


def _advice(terms: Terms, aim: str) -> Advice:
    return advise(
        keys=len(terms.keys),
        epsilon=terms.epsilon,
        keys_per_user=terms.keys_per_user,
        typical_frequency=terms.typical_frequency,
        expected_reports=terms.expected_reports,
        bits=terms.table_bits,
        aim=aim,
    )


def _day(name: str, value: date | str | None) -> date | None:
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ParameterError(f"{name} must be a date such as 2026-01-31; got {value!r:.40}.") from None


@contextmanager
def _as_parameters() -> Iterator[None]:
    """The device's refusals in the house's own words; what a device says never depends on anybody's data."""
    try:
        yield
    except ClientError as error:
        raise ParameterError(str(error)) from None
