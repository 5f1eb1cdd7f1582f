"""Linear layers with ReLUs between them, forward and back without a graph, in memory that is used again.

The gradient at a linear layer's input is d W, at a ReLU's it is d where the input is positive: no automatic differentiation is
needed, but for the loss. Behind the first layer examples are columns: what is done to each number runs along whole lines of
memory, and the layers lie beneath each other, to be worked on at once. Behind a row given, and beneath the inputs of each
further layer, stands a one: it meets the bias as the last column of the weights, so one product serves both.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import numpy as np
import torch
from torch import Tensor, nn

from sabun.learning.network import Floats
from sabun.learning.torch_modules.layers import LARGEST

__all__ = ["Laid", "Perceptron", "doubles_stand_alone", "size_for", "sizes_below"]

_SIZES = (64, 128, 256, 512, 1024, 2048)
"""How many rows there may be at a time: few numbers, so that each can be tried before a run."""
_EACH = 128
"""What the calls for one piece cost, in rows."""

_Product: TypeAlias = Callable[[Tensor, Tensor, Tensor], None]
_Back: TypeAlias = Callable[[Tensor], None]
"""Puts in the place of the last output, a column for each example, the gradient there."""

_LINE = 64
"""Bytes of a line of the processor's cache."""


@functools.cache
def doubles_stand_alone() -> bool:
    """Whether this machine's products of doubles give a column the same bits wherever it stands; some libraries' do not."""
    for size, width, count in ((8, 17, 64), (32, 112, 512)):
        made = torch.arange(size * width + width * count, dtype=torch.float64) * 0.6180339887498949 % 2 - 1
        weights, columns = made[: size * width].view(size, width), made[size * width :].view(width, count)
        whole = torch.mm(weights, columns)
        if any(not torch.equal(torch.mm(weights, columns.roll(by, 1)).roll(-by, 1), whole) for by in (1, 5, 17)):
            return False
    return True


def sizes_below(most: int) -> list[int]:
    """How many rows there may be at a time, at most so many where that can be."""
    return [size for size in _SIZES if size <= max(most, _SIZES[0])]


def size_for(likely: float, most: int) -> int:
    """How many rows to take at a time when a batch is likely to have so many; a public number, like its arguments."""
    return min(sizes_below(most), key=lambda size: (math.ceil(likely / size) * (size + _EACH), size))  # proof: few-sizes


@final
@dataclass(frozen=True)
class Laid:
    """Rows as the passes want them.

    Args:
        rows: With a one behind (a zero where there is no bias), filled up with zeros to whole lines.
        lengths: Their squared lengths, in doubles.
    """

    rows: Tensor
    lengths: Tensor

    def map(self, what: Callable[[Tensor], Tensor]) -> Laid:
        """The same of both."""
        return Laid(what(self.rows), what(self.lengths))


class _Measured(NamedTuple):
    """What a layer's sum is made of: copies to be made first, where the sum or the norm wants another type of number."""

    copies: list[tuple[Tensor, Tensor]]
    columns: Floats
    squares: Floats

    @classmethod
    def of(cls, passed: Tensor, summed: Tensor, squares: Tensor) -> _Measured:
        """From the numbers of the passes, those that are summed, and where their squares are to be."""
        doubles = summed.double()
        copies = [(to, of) for of, to in ((passed, summed), (summed, doubles)) if to.data_ptr() != of.data_ptr()]
        return cls(copies, doubles.numpy(), squares.numpy())


@final
class Perceptron:
    """The passes over a fixed number of rows, and the sums that are made of them.

    Args:
        layers: Names and layers, as `fits` wants them.
        rows: How many rows there always are.
        kind: The type of the sums.
    """

    def __init__(self, layers: Mapping[str, nn.Module], rows: int, kind: torch.dtype) -> None:
        self._linear = {name: layer for name, layer in layers.items() if isinstance(layer, nn.Linear)}
        self._cut = [type(one) is nn.ReLU for one, two in itertools.pairwise(layers.values()) if isinstance(two, nn.Linear)]
        self._trained = [at for at, layer in enumerate(self._linear.values()) if layer.weight.requires_grad]
        self._kind, self.rows = kind, rows
        first, *others = linear = list(self._linear.values())
        self._passes = first.weight.dtype  # proof: kind-of-passes
        # On one thread loops of our own take half of a library's time in 32 bits; on several the library shares its work out.
        alone = self._passes == torch.float32 and torch.get_num_threads() == 1
        self._product = _own_product() if alone else _product  # proof: which-product
        line: int = _LINE // self._passes.itemsize
        widths = [-(-(first.in_features + 1) // line) * line, *(layer.in_features + 1 for layer in others)]
        heights = [layer.out_features for layer in linear]
        self._weights = [self._room(size, width) for size, width in zip(heights, widths, strict=True)]
        numbers = [matrix.numel() for matrix in self._weights]
        self._total, self._latest = (torch.zeros(sum(numbers), dtype=kind) for _ in range(2))
        self._fresh = True
        self._totals, self._parts = (
            [part.view_as(matrix) for part, matrix in zip(whole.split(numbers), self._weights, strict=True)]
            for whole in (self._total, self._latest)
        )
        flow, back = self._room(sum(widths[1:]), rows), self._room(sum(heights), rows)
        self._flows, self._slopes = flow.split(widths[1:]), back.split(heights)
        self._within = [place[:-1] for place in self._flows]
        self._backwards = [self._room(layer.in_features, layer.out_features) for layer in others]
        for layer, place in zip(others, self._flows, strict=True):
            place[-1] = float(layer.bias is not None)  # proof: ones
        # What is summed is the same memory, or a copy in the type of the sums; norms are those of the same numbers in doubles.
        summed, self._scaled = (part if self._passes == kind else part.to(kind) for part in (flow, back))
        self._inputs, self._backs = summed.split(widths[1:]), self._scaled.split(heights)
        self._squares = torch.zeros(2, len(linear), rows, dtype=torch.float64)
        inputs = [_Measured.of(self._flows[at - 1], self._inputs[at - 1], self._squares[0, at]) for at in self._trained if at]
        slopes = [_Measured.of(self._slopes[at], self._backs[at], self._squares[1, at]) for at in self._trained]
        self._measured = inputs + slopes

    @staticmethod
    def fits(layers: Sequence[nn.Module]) -> bool:
        """Whether a chain is linear layers of one type of number, each trained whole or not at all, with ReLUs between.

        In doubles only where `doubles_stand_alone`: elsewhere torch's own passes, with examples as rows, are the sound way.
        """
        kinds = [type(layer) for layer in layers]
        if not {nn.Linear, nn.ReLU}.issuperset(kinds):  # proof: plain-layers
            return False
        if not kinds or kinds[0] is not nn.Linear or kinds[-1] is not nn.Linear:
            return False
        parameters = [list(layer.parameters()) for layer in layers]
        whole = all(len({parameter.requires_grad for parameter in some}) <= 1 for some in parameters)
        kinds_of_numbers = {(parameter.dtype, parameter.device) for some in parameters for parameter in some}
        if not whole or len(kinds_of_numbers) != 1:
            return False
        return kinds_of_numbers.pop()[0] != torch.float64 or doubles_stand_alone()  # proof: doubles-tried

    def laid(self, x: Tensor) -> Laid:
        """Rows, however many, as `run` wants them."""
        first = next(iter(self._linear.values()))
        rows = self._room(len(x), self._weights[0].shape[1])
        rows[:, : first.in_features] = x  # proof: one-alignment
        rows[:, first.in_features] = float(first.bias is not None)
        lengths = torch.zeros(len(x), dtype=torch.float64)
        for at in range(0, len(x), self.rows):  # proof: one-shape
            some, filled = rows[at : at + self.rows], self._room(self.rows, rows.shape[1])
            filled[: len(some)] = some
            found = torch.linalg.vector_norm(filled.to(self._kind), dim=1, dtype=torch.float64).square_()  # proof: very-rows
            lengths[at : at + self.rows] = found[: len(some)]
        return Laid(rows, lengths)

    def begin(self) -> None:
        """Reads the weights as they are now; sums begin at nothing."""
        for layer, matrix in zip(self._linear.values(), self._weights, strict=True):
            matrix[:, : layer.in_features] = layer.weight
            if layer.bias is not None:
                matrix[:, layer.in_features] = layer.bias
        for matrix, back in zip(self._weights[1:], self._backwards, strict=True):
            back.copy_(matrix[:, :-1].T)
        self._fresh = True

    def run(self, x: Laid, back: _Back) -> Tensor:
        """Forward and back; each example's squared norm. In the same memory as the last time."""
        product: _Product = _product
        flow = x.rows.T
        for weights, place, within, cut in zip(self._weights, self._flows, self._within, self._cut, strict=False):
            product(weights, flow, within)
            if cut:
                within.clamp_min_(0.0)
            product, flow = self._product, place
        product(self._weights[-1], flow, self._slopes[-1])
        back(self._slopes[-1])
        for at in reversed(range(self._trained[0], len(self._cut))):
            slope = self._slopes[at]
            self._product(self._backwards[at], self._slopes[at + 1], slope)  # proof: by-hand
            if self._cut[at]:  # zero where what flowed in was not above zero, as torch's own backward pass has it
                torch.ops.aten.threshold_backward.grad_input(slope, self._within[at], 0, grad_input=slope)
        return self._norms(x)

    def _norms(self, x: Laid) -> Tensor:
        """Outer products, as `layers` has them: ||g||^2 is the sum over layers of ||d||^2 ||(x, 1)||^2."""
        factors = self._squares
        if self._trained[0] == 0:
            factors[0, 0] = x.lengths
        for one in self._measured:
            for copy, values in one.copies:
                copy.copy_(values)
            np.einsum("ij,ij->j", one.columns, one.columns, out=one.squares)
        norms = factors.prod(0).sum(0)  # proof: outer-by-hand
        if float(factors.max()) < LARGEST[self._kind]:
            return norms
        return torch.where(factors.amax((0, 1)) < LARGEST[self._kind], norms, math.inf)

    def leave_out(self, x: Laid, sound: Tensor) -> Laid:
        """Zeros in the place of examples that do not count, which may hold infinities; the shape stays."""
        for part in (self._scaled, *(inputs[:-1] for inputs in self._inputs)):
            part.masked_fill_(~sound, 0.0)
        return Laid(x.rows.masked_fill(~sound.unsqueeze(1), 0.0), x.lengths)

    def add(self, x: Laid, share: Tensor) -> None:
        """Adds share times gradient of the first so many examples to the sums."""
        count, rows = len(share), x.rows.to(self._kind)
        self._scaled[:, :count].mul_(share)
        for at in self._trained:
            inputs = rows if at == 0 else self._inputs[at - 1].T
            torch.mm(self._backs[at][:, :count], inputs[:count], out=(self._totals if self._fresh else self._parts)[at])
        if not self._fresh:
            self._total += self._latest  # proof: added-apart
        self._fresh = False

    def sums(self) -> dict[str, Tensor]:
        """What was added since the beginning, in doubles; to be used up before the next beginning."""
        found = {}
        for at, (name, layer) in enumerate(self._linear.items()):
            if at in self._trained:
                total = self._totals[at].double()
                found[f"{name}.weight".lstrip(".")] = total[:, : layer.in_features]
                if layer.bias is not None:
                    found[f"{name}.bias".lstrip(".")] = total[:, layer.in_features]
        return found

    def _room(self, rows: int, size: int) -> Tensor:
        return torch.zeros(rows, size, dtype=self._passes)


def _product(left: Tensor, columns: Tensor, out: Tensor) -> None:
    torch.mm(left, columns, out=out)


def _own_product() -> _Product:
    """The same by the loops of `sabun.learning.columnwise`, which read rows that lie one behind the other."""
    from sabun.learning.columnwise import product

    return lambda left, columns, out: product(left.numpy(), columns.numpy(), out.numpy())
