"""Reports of files of any size, each seen once: they meet by their id in buckets, and only the first of an id counts.

    files ─► checked, by bucket of the id (a `Grouped`) ─► first of each id ─► counters, and what became of the others

What becomes of a report is what a `Collector` with a `Register` says of the same reports one after the other: a report under a
new id counts, the same one again is a repetition, another one under that id is refused. Whole reports are looked at in arrays;
whatever looks odd is judged by the collector itself, one by one.
"""

from __future__ import annotations

import heapq
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine import engine_named
from sabun.engine.pieces import whole_files
from sabun.engine.shuffle import shuffled
from sabun.engine.statistic import Met
from sabun.errors import DataError
from sabun.keyvalue.batches import report_blocks
from sabun.keyvalue.client.terms import Terms
from sabun.keyvalue.collector import CONFLICT, ID, Collector
from sabun.keyvalue.statistic import Answers, Counters, SymbolCounts
from sabun.keyvalue.whole_reports import Bytes, answers_of, looks_right, payload_of
from sabun.records import FilePart
from sabun.records.places import place_of

__all__ = ["Collected", "ReportsOnce", "SeenOnce", "counted_files"]

_NAMED = 1000
"""How many refused reports are named; the others are only counted."""

_UNNAMED = "refused."
"""In the place of a reason that nobody will read: a thousand reports of the same file were refused before."""

_LONGEST = 500
"""Letters of a reason: whoever made the report may have had a say in them."""

_PLACE = 40
"""A report's place is the number of its file, then in so many bits its position there."""

_AT_ONCE = 1 << 18
"""Reports sorted at a time, or as many as are held already: then each is sorted only a few times."""

_ODD = np.dtype([("place", "<u8"), ("key", "S20"), ("why", "<u4")])

Rows = NDArray[Any]
"""Whole reports: where each stood, round and id, and what it says."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Collected:
    """What became of reports, with the counters of those that count.

    Args:
        counters: The counters.
        sizes: Reports looked at, file by file.
        accepted: Those that count.
        repeated: Those that came again, letter for letter.
        refused: Place and reason of the first of the others.
    """

    counters: Counters
    sizes: tuple[int, ...] = ()
    accepted: int = 0
    repeated: int = 0
    refused: tuple[tuple[int, str], ...] = ()

    def positions(self) -> list[tuple[int, str]]:
        """Position among the reports of all files, and reason, of the first that were refused."""
        before = np.cumsum([0, *self.sizes])
        return [(int(before[place >> _PLACE]) + place % (1 << _PLACE), why) for place, why in self.refused]


@final
@dataclass(frozen=True, kw_only=True)
class SeenOnce:
    """Counters with what became of the reports; a `Statistic`.

    Args:
        counts: The recipe of the counters.
    """

    counts: SymbolCounts

    @property
    def name(self) -> str:
        """What is counted."""
        return "reports seen once"

    def blocks(self, source: Any) -> Iterable[Answers]:
        """As the counters' own."""
        return self.counts.blocks(source)

    def zero(self) -> Collected:
        """No reports."""
        return Collected(counters=self.counts.zero())

    def add(self, state: Collected, block: Answers) -> Collected:
        """With one more block of reports that all count."""
        size = len(np.asarray(block.symbols))
        return replace(state, counters=self.counts.add(state.counters, block), accepted=state.accepted + size)

    def merge(self, left: Collected, right: Collected) -> Collected:
        """Both together."""
        return Collected(
            counters=self.counts.merge(left.counters, right.counters),
            sizes=tuple(one + other for one, other in zip_longest(left.sizes, right.sizes, fillvalue=0)),
            accepted=left.accepted + right.accepted,
            repeated=left.repeated + right.repeated,
            refused=tuple(heapq.nsmallest(_NAMED, (*left.refused, *right.refused))),
        )

    def pack(self, state: Collected) -> bytes:
        """As bytes: a line of JSON, then the counters."""
        told = [state.accepted, state.repeated, state.sizes, state.refused]
        return json.dumps(told).encode() + b"\n" + self.counts.pack(state.counters)

    def unpack(self, content: bytes) -> Collected:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        line, _, rest = content.partition(b"\n")
        try:
            accepted, repeated, sizes, refused = json.loads(line)
            told: dict[str, Any] = {"accepted": int(accepted), "repeated": int(repeated), "sizes": tuple(map(int, sizes))}
            told["refused"] = tuple((int(place), str(why)) for place, why in refused)
        except (ValueError, TypeError):
            raise DataError("counts must be bytes that the same statistic packed; they are not.") from None
        return Collected(counters=self.counts.unpack(rest), **told)

    def sample(self) -> Answers:
        """As the counters' own."""
        return self.counts.sample()


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ReportsOnce:
    """How reports meet by their id; a `Grouped`.

    Args:
        collector: Which reports count.
        factors: Random numbers that decide about buckets: whoever makes up ids cannot put them all into one.
    """

    collector: Collector
    factors: tuple[int, ...] = field(default_factory=lambda: tuple(secrets.randbits(64) for _ in range(6)), repr=False)

    buckets = None
    everyone = False
    in_order = True

    @property
    def terms(self) -> Terms:
        """The study's."""
        return self.collector.terms

    @property
    def statistic(self) -> SeenOnce:
        """The counters."""
        return SeenOnce(counts=SymbolCounts.of(self.terms))

    def parted(self, number: int, source: FilePart, buckets: int) -> Iterator[Sequence[bytes]]:
        """The reports of a file that could count, and why others cannot."""
        position, held = number << _PLACE, _Judged(_NAMED)
        for block in report_blocks(source.path, self.terms):
            self._judge(block, position, held)
            position += len(block)
            if held.count >= _AT_ONCE:
                yield self._by_bucket(held, buckets)
                held = _Judged(held.unnamed)
        yield self._by_bucket(held, buckets)

    def _by_bucket(self, held: _Judged, buckets: int) -> list[bytes]:
        whole, odd = np.concatenate([np.empty(0, dtype=self._kind), *held.whole]), np.array(held.odd, dtype=_ODD)
        whole = whole[np.argsort(whole["place"], kind="stable")]  # those the collector was asked about were set before others
        good, bad = (_split(rows, self._buckets(rows["key"], buckets), buckets) for rows in (whole, odd))
        reasons = list(held.reasons)
        return [_packed(*found, reasons) for found in zip(good, bad, strict=True)]

    def _judge(self, block: Bytes | list[bytes], position: int, held: _Judged) -> None:
        """Notes those that could count, and why the others cannot."""
        right = np.zeros(len(block), dtype=bool)
        if not isinstance(block, list):
            right = looks_right(self.collector, block)
        held.count += len(block)
        for place in np.flatnonzero(~right).tolist():
            report = bytes(block[place])
            try:
                self.collector.answer(report)
            except DataError as error:
                held.odd.append((position + place, report[ID].ljust(20, b"\xff"), held.why(str(error))))
            else:  # the collector's word counts, whatever it looked like
                held.whole.append(self._rows(np.frombuffer(report, dtype=np.uint8)[None], np.array([position + place])))
        if right.any():
            held.whole.append(self._rows(np.asarray(block)[right], position + np.flatnonzero(right)))

    @property
    def _kind(self) -> np.dtype[Any]:
        return np.dtype([("place", "<u8"), ("key", "S20"), ("said", f"S{payload_of(self.terms)}")])

    def _rows(self, reports: Bytes, places: NDArray[np.int64]) -> Rows:
        rows = np.empty(len(reports), dtype=self._kind)
        rows["place"] = places
        rows["key"] = np.ascontiguousarray(reports[:, ID]).view("S20").ravel()
        rows["said"] = np.ascontiguousarray(reports[:, ID.stop :]).view(rows.dtype["said"]).ravel()
        return rows

    def _buckets(self, keys: NDArray[Any], buckets: int) -> NDArray[np.int64]:
        """Multiply and shift: any two ids are in one bucket with the chance that random ones have."""
        words = np.frombuffer(keys.tobytes(), dtype="<u4").reshape(-1, 5).astype(np.uint64)
        mixed = np.full(len(words), self.factors[5], dtype=np.uint64)
        for column, factor in enumerate(self.factors[:5]):
            mixed += words[:, column] * np.uint64(factor)  # modulo 2**64
        return ((mixed >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)

    def state(self, met: Met) -> Collected:
        """The first of each id counts; of the others, what became of them."""
        seen = _Seen(np.empty(0, dtype=self._kind))
        for content in met.rows:
            seen.take(content)
        seen.settle()
        state = Collected(
            counters=self.statistic.counts.zero(),
            sizes=tuple(seen.sizes.tolist()),
            repeated=seen.repeated,
            refused=tuple(heapq.nsmallest(_NAMED, seen.refused)),
        )
        for block in answers_of(self.collector, seen.held["key"], seen.held["said"]):
            state = self.statistic.add(state, block)
        return state


def counted_files(
    collector: Collector,
    files: Iterable[str | os.PathLike[str]],
    *,
    engine: Any,
    progress: Callable[[int, int], None] | None,
) -> Collected:
    """The reports of files and folders, each id once; see `Tally.add_files`."""
    pieces = whole_files([file for source in files for file in _files(place_of(source))])
    return shuffled(engine_named(engine), ReportsOnce(collector=collector), pieces, step=progress)


def _files(place: Path) -> list[Path]:
    """A file itself, or the files of a folder by name; those that are being written or hidden are not meant."""
    if not place.is_dir():
        return [place]
    found = sorted(file for file in place.rglob("*") if file.is_file() and file.suffix != ".part" and file.name[:1] != ".")
    if not found:
        raise DataError(f"folder {place.name} must hold files of reports; got none.")
    return found


class _Judged:
    """Reports on their way into buckets; so many of the refused ones are still to be named."""

    def __init__(self, unnamed: int) -> None:
        self.unnamed = unnamed
        self.whole: list[Rows] = []
        self.odd: list[tuple[int, bytes, int]] = []
        self.reasons: dict[str, int] = {}
        self.count = 0

    def why(self, reason: str) -> int:
        """The number of a reason."""
        self.unnamed, named = max(self.unnamed - 1, 0), self.unnamed > 0
        return self.reasons.setdefault(reason[:_LONGEST] if named else _UNNAMED, len(self.reasons))


class _Seen:
    """The reports of one bucket as they are gone through: of each id the first, and what became of the others."""

    def __init__(self, none: Rows) -> None:
        self.held, self.repeated, self.refused = none, 0, list[tuple[int, str]]()
        self.sizes = np.zeros(0, dtype=np.int64)
        self._more: list[Rows] = []
        self._odd: list[tuple[Rows, list[str]]] = []
        self._waiting = 0

    def take(self, content: bytes) -> None:
        """Some more, that come after those before."""
        rows, odd, reasons = _unpacked(content, self.held.dtype)
        self._more.append(rows)
        self._odd.append((odd, reasons))
        self._waiting += len(rows) + len(odd)
        files = np.concatenate([rows["place"], odd["place"]]) >> np.uint64(_PLACE)
        counts = np.bincount(files.astype(np.int64))
        longer = np.zeros(max(len(counts), len(self.sizes)), dtype=np.int64)
        longer[: len(counts)] += counts
        longer[: len(self.sizes)] += self.sizes
        self.sizes = longer
        if self._waiting >= max(_AT_ONCE, len(self.held)):
            self.settle()

    def settle(self) -> None:
        """Sorts what waits into what is held."""
        both = np.concatenate([self.held, *self._more])
        both = both[_by_key(both)]
        first = np.append(True, both["key"][1:] != both["key"][:-1]) if len(both) else np.empty(0, dtype=bool)
        self.held = both[first]
        later = both[~first]
        same = later["said"] == self.held["said"][np.cumsum(first)[~first] - 1]
        self.repeated += int(same.sum())
        self._refuse((int(place), CONFLICT) for place in later["place"][~same].tolist())
        for odd, reasons in self._odd:
            self._refuse_odd(odd, reasons)
        self._more, self._odd, self._waiting = [], [], 0

    def _refuse_odd(self, odd: Rows, reasons: list[str]) -> None:
        """A report that cannot count is refused for its own reason, or because its id was taken before."""
        if not len(odd):
            return
        at = np.minimum(np.searchsorted(self.held["key"], odd["key"]), max(len(self.held) - 1, 0))
        taken = np.zeros(len(odd), dtype=bool)
        if len(self.held):
            taken = (self.held["key"][at] == odd["key"]) & (self.held["place"][at] < odd["place"])
        whys = [CONFLICT if known else reasons[why] for known, why in zip(taken.tolist(), odd["why"].tolist(), strict=True)]
        self._refuse(zip(odd["place"].tolist(), whys, strict=True))

    def _refuse(self, more: Iterable[tuple[int, str]]) -> None:
        self.refused = heapq.nsmallest(_NAMED, [*self.refused, *more])


def _by_key(rows: Rows) -> NDArray[np.int64]:
    """The order by key, and as they come where that is the same; by whole words, which is faster than by bytes."""
    words = np.frombuffer(rows["key"].tobytes(), dtype=[("round", ">u4"), ("high", ">u8"), ("low", ">u8")])
    of_one_round = len(words) == 0 or bool((words["round"] == words["round"][0]).all())
    return np.lexsort([words[name].astype(np.uint64) for name in ("low", "high", "round")[: 2 if of_one_round else 3]])


def _split(rows: Rows, where: NDArray[np.int64], buckets: int) -> list[Rows]:
    """The rows of each bucket, in their order."""
    order = np.argsort(where, kind="stable")
    return np.split(rows[order], np.searchsorted(where[order], np.arange(1, buckets)))


def _packed(whole: Rows, odd: Rows, reasons: list[str]) -> bytes:
    """The rows of a bucket with those reasons that they have, and no others: strangers choose how many there are."""
    if not len(whole) and not len(odd):
        return b""
    used, odd["why"] = np.unique(odd["why"], return_inverse=True)
    told = json.dumps([reasons[why] for why in used.tolist()]).encode()
    return b"".join((len(whole).to_bytes(8, "little"), len(odd).to_bytes(8, "little"), whole.tobytes(), odd.tobytes(), told))


def _unpacked(content: bytes, kind: np.dtype[Any]) -> tuple[Rows, Rows, list[str]]:
    count, odd = (int.from_bytes(content[at : at + 8], "little") for at in (0, 8))
    middle, end = 16 + count * kind.itemsize, 16 + count * kind.itemsize + odd * _ODD.itemsize
    reasons: list[str] = json.loads(content[end:])
    return np.frombuffer(content[16:middle], dtype=kind), np.frombuffer(content[middle:end], dtype=_ODD), reasons
