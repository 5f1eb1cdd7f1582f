"""Sums of gradients that no single example can move by more than one unit; proved in clipping.proof.md.

Notation: C is the clip norm; each example's gradient is scaled by min(1, C / ||g||) / C, so that its norm is at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sabun.learning.network import Activity, Floats, Network
from sabun.learning.passes import Passes, singles, squared_lengths
from sabun.privacy.noise import seeded_coin

__all__ = [
    "PIECE",
    "SENSITIVITY",
    "ClippedSum",
    "Piece",
    "expected_piece",
    "likely_rows",
    "piece_size",
    "row_by_row",
    "two_sum",
]

_Array = TypeVar("_Array", bound=NDArray[Any])

SENSITIVITY = 1 + Fraction(1, 10**6)
"""What one example can change in a sum, in units of the clip norm: one, with a margin for floating-point sums."""

_LARGEST = 1e150
_TOGETHER = 32
"""Pieces added up plainly before what rounding took away is looked at."""
_UNIT, _MOST = 16, 640
PIECE = 512
"""Rows worked on at a time where nothing is known of the batches."""
_LEAST_TRIED, _MOST_TRIED, _TRIAL = 8, 32, 1 << 21
"""Made-up rows that a trial lays in every place: as many as cost about so many multiplications, within these bounds."""
_SHORTEST = 1e-30
"""The clip norm of a trial: gradients as long as they come are scaled, whatever their length."""


def likely_rows(expected: float, probability: float) -> float:
    """How many rows a batch hardly ever exceeds, when each row is in it with that probability."""
    return expected + 1.5 * math.sqrt(expected * (1 - probability))


def piece_size(likely: float, *, most: int = _MOST) -> int:
    """How many rows to work on at a time when a batch is likely to have so many; a public number, like its arguments."""
    pieces = math.ceil(likely / most)
    return max(1, math.ceil(likely / pieces / _UNIT)) * _UNIT


def expected_piece(probability: Fraction, n_public: int | None, *, shards: int = 1) -> int:
    """The piece for batches of a run, from what is public before anything is paid for."""
    if n_public is None:
        return PIECE
    return piece_size(likely_rows(float(probability) * n_public / shards, float(probability)))


class Piece(NamedTuple):
    """Rows that are worked on together, laid out for the passes."""

    columns: NDArray[np.float32]
    labels: NDArray[np.int64]
    lengths: Floats | None
    members: int


@final
class ClippedSum:
    """Sums of clipped gradients over some rows, divided by the clip norm; called once for each batch.

    Guarantee: adding or removing one row changes the sum by at most `SENSITIVITY` in the named norm, for the same weights.

    Args:
        network: The shape of the weights.
        clip_norm: C above.
        norm: "l2" or "l1".
        piece: Rows worked on at a time, always exactly so many: a row's arithmetic must not depend on how many rows are
            beside it. From public numbers only; see `piece_size`.
        kind: The type of number to sum in; the passes are made in 32 bits.

    Edge cases: no rows give zeros; an example whose norm is not a number below 1e150 counts as zero.
    """

    def __init__(
        self, network: Network, *, clip_norm: float, norm: str = "l2", piece: int = PIECE, kind: DTypeLike = np.float64
    ) -> None:
        self._network, self._clip_norm, self._norm, self._piece = network, clip_norm, norm, piece
        self._passes = Passes(network, piece, kind)

    def __call__(self, weights: Floats, rows: NDArray[Any], labels: NDArray[np.int64], lengths: Floats | None = None) -> Floats:
        """The sum at these weights, which are public; `lengths` as in `Passes.squared_norms`."""
        return self.over(weights, self.pieces(rows, labels, lengths))

    def pieces(self, rows: NDArray[Any], labels: NDArray[np.int64], lengths: Floats | None = None) -> Iterator[Piece]:
        """The rows as the passes want them; a run that looks at the same rows in every step lays them out once."""
        size = self._piece
        for at in range(0, len(rows), size):
            some = slice(at, at + size)
            yield Piece(
                columns=self._passes.laid(rows[some]),  # proof: same-shape
                labels=_filled(labels[some], size),
                lengths=None if lengths is None else _filled(lengths[some], size),
                members=min(size, len(rows) - at),
            )

    def over(self, weights: Floats, pieces: Iterable[Piece]) -> Floats:
        """The sum over the rows of these pieces."""
        total, lost, recent = np.zeros((3, self._network.n_weights))
        passes, waiting = self._passes.read(weights), 0
        with np.errstate(all="ignore"):  # an overflow warning would speak of a private row
            for piece in pieces:
                recent += self._part(passes.both(piece.columns, piece.labels), piece.lengths, piece.members)
                waiting += 1
                # Plain sums of many pieces would lose more to rounding than the margin in SENSITIVITY allows; what each
                # addition drops is kept beside the total, now and then rather than always, for it costs three additions.
                if waiting == _TOGETHER:
                    total, missed = two_sum(total, recent)
                    lost += missed  # proof: nothing-lost
                    recent[:], waiting = 0.0, 0
            total, missed = two_sum(total, recent)
        return np.asarray(total + (lost + missed))

    def _part(self, activity: Activity, lengths: Floats | None, count: int) -> Floats:
        """The sum over the first `count` examples of a piece."""
        if self._norm == "l1":
            norms = self._network.l1_norms(activity)
        else:
            norms = np.sqrt(self._passes.squared_norms(activity, lengths))
        sound = norms < _LARGEST  # proof: sound-rows
        clean = bool(sound.all())  # also of the rows that fill up: zero times infinity would spoil everybody's sum
        sound[count:] = False  # proof: filling-counts-nothing
        if not clean:
            activity = _without(activity, sound)
        shares = np.where(sound, 1.0 / np.maximum(norms, self._clip_norm), 0.0)  # proof: share
        return self._passes.summed(activity, shares)


def row_by_row(network: Network, *, piece: int, kind: DTypeLike = np.float64) -> bool:
    """Whether this machine computes a row the same wherever it stands, tried on made-up rows of the run's own shapes.

    All that training computes of a row before it sums is looked at: of different rows that are moved together, and of single
    rows that stand in every place at once, so that the last places are compared as often as any. Small networks, of which a
    row has few numbers to compare, are given more rows.
    """
    tried = min(_MOST_TRIED, max(_LEAST_TRIED, _TRIAL // (piece * network.n_weights)))
    count = max(tried, piece)
    words = seeded_coin(piece).words(network.n_weights + count * network.sizes[0]).astype(np.float64) * 2.0**-63 - 1.0
    weights, rows = words[: network.n_weights], singles(words[network.n_weights :].reshape(count, network.sizes[0]))
    for matrix, _ in network.layers(weights):
        matrix *= math.sqrt(6 / len(matrix))  # else wide layers are so sure of a class that errors are 0 or 1 however rounded
    passes = Passes(network, piece, kind).read(weights)
    labels = np.zeros(piece, dtype=np.int64)

    with np.errstate(all="ignore"):
        for row in rows[:tried]:
            if not all((part == part[..., :1]).all() for part in _of_each(passes, np.tile(row, (piece, 1)), labels)):
                return False
        whole = [part.copy() for part in _of_each(passes, rows[:piece], labels)]
        return all(
            np.array_equal(one, np.roll(two, -shift, axis=-1))
            for shift in (1, 5)
            for one, two in zip(whole, _of_each(passes, np.roll(rows[:piece], shift, axis=0), labels), strict=True)
        )


def _of_each(passes: Passes, rows: NDArray[np.float32], labels: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
    """All that is computed of each row, a column or a number for each; gone when the next is asked for."""
    found, lengths = passes.both(passes.laid(rows), labels), squared_lengths(rows)
    yield from (*found.inputs, *found.errors, lengths)
    squares = passes.squared_norms(found, lengths)
    shares = 1.0 / np.maximum(np.sqrt(squares), _SHORTEST)
    yield from (squares, passes.squared_norms(found, None), Network.l1_norms(found), shares)
    for factors in passes.factors(found, shares):
        yield from factors


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded sum, with what rounding took away (Knuth 1969): the two together are exact."""
    total = a + b
    second = total - a
    return total, (a - (total - second)) + (b - second)


def _filled(part: _Array, size: int) -> _Array:
    """The part with zeros up to that many rows: with another number a library may round the same row differently."""
    if len(part) == size:
        return part
    filled = np.zeros((size, *part.shape[1:]), dtype=part.dtype)
    filled[: len(part)] = part
    return filled  # type: ignore[return-value]


def _without(activity: Activity, sound: NDArray[np.bool_]) -> Activity:
    """Zeros in the place of examples that do not count, which may hold infinities; the shape stays."""

    def kept(parts: tuple[Floats, ...]) -> tuple[Floats, ...]:
        return tuple(np.where(sound, part, part.dtype.type(0)) for part in parts)

    return Activity(inputs=kept(activity.inputs), errors=kept(activity.errors))
