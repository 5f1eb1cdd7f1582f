"""Linear layers with ReLUs between them, forward and back without a graph, in memory that is used again.

The gradient at a linear layer's input is d W, at a ReLU's it is d where the input is positive: no automatic differentiation is
needed, but for the loss. Rows are filled up with zeros to whole lines of the processor's cache, and behind the zeros stands a
one (with more zeros): what fills up meets zero weights only, the one meets the bias, so one product serves both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

import torch
from torch import Tensor, nn

from sabun.learning.torch_modules.layers import LARGEST, Part

__all__ = ["Perceptron"]

_Back: TypeAlias = Callable[[Tensor], Tensor]
"""The last output to the gradient there."""

_LINE = 64
"""Bytes of a line of the processor's cache."""
_NARROW = 64
"""Up to so many units, turning numbers into doubles for the sums costs more than computing in doubles from the beginning."""


@final
class Perceptron:
    """The passes over a fixed number of rows.

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
        narrow = kind == torch.float64 and all(layer.out_features <= _NARROW for layer in self._linear.values())
        self._passes = kind if narrow else next(iter(self._linear.values())).weight.dtype  # proof: kind-of-passes
        self._unit: int = _LINE // self._passes.itemsize
        sizes = self._sizes = [(layer.in_features, layer.out_features) for layer in self._linear.values()]
        self._weights = [self._room(self._whole(outputs), inputs, more=True) for inputs, outputs in sizes]
        self._inputs = [self._room(rows, inputs, more=True) for inputs, _ in sizes]
        self._outputs = [self._room(rows, outputs) for _, outputs in sizes]
        self._norms = torch.empty(2, len(self._trained), rows, dtype=torch.float64)
        for layer, inputs in zip(self._linear.values(), self._inputs, strict=True):
            inputs[:, self._whole(layer.in_features)] = float(layer.bias is not None)  # proof: ones

    @staticmethod
    def fits(layers: Sequence[nn.Module], x: Tensor) -> bool:
        """Whether a chain is linear layers, each trained whole or not at all, with ReLUs between; on vectors, on a CPU."""
        kinds = [type(layer) for layer in layers]
        if x.dim() != 2 or x.device.type != "cpu" or not {nn.Linear, nn.ReLU}.issuperset(kinds):  # proof: plain-layers
            return False
        if not kinds or kinds[0] is not nn.Linear or kinds[-1] is not nn.Linear:
            return False
        parameters = [list(layer.parameters()) for layer in layers]
        whole = all(len({parameter.requires_grad for parameter in some}) <= 1 for some in parameters)
        return whole and {parameter.dtype for some in parameters for parameter in some} == {x.dtype}

    def __call__(self, x: Tensor, back: _Back) -> Callable[[Tensor | None], Part]:
        """Runs forward and back; what it gives makes the part of all trained layers, of the sound rows alone if told so.

        Everything is in the same memory as the last time: a part is to be used up before the next call.
        """
        self._read()
        output, classes = self._forward(x), self._sizes[-1][1]
        slope = torch.zeros_like(output)
        slope[:, :classes] = back(output[:, :classes])
        slopes = self._backward(slope)
        found = [(self._inputs[at].to(self._kind), slopes[at].to(self._kind)) for at in self._trained]
        return lambda sound: self._part(found if sound is None else [(_sound(x, sound), _sound(d, sound)) for x, d in found])

    def _read(self) -> None:
        """Weights and bias of each layer as they are now, in one matrix, with zeros where rows are filled up."""
        for layer, matrix in zip(self._linear.values(), self._weights, strict=True):
            matrix[: layer.out_features, : layer.in_features] = layer.weight
            if layer.bias is not None:
                matrix[: layer.out_features, self._whole(layer.in_features)] = layer.bias

    def _forward(self, x: Tensor) -> Tensor:
        """The last output; what flowed into and out of each linear layer is kept."""
        self._inputs[0][:, : x.shape[1]] = x  # proof: one-alignment
        for at, cut in enumerate(self._cut):
            flow = torch.mm(self._inputs[at], self._weights[at].T, out=self._outputs[at])
            place = self._inputs[at + 1][:, : flow.shape[1]]
            torch.clamp_min(flow, 0.0, out=place) if cut else place.copy_(flow)
        return torch.mm(self._inputs[-1], self._weights[-1].T, out=self._outputs[-1])

    def _backward(self, slope: Tensor) -> dict[int, Tensor]:
        """The gradient at the output of each linear layer, from the last one down to the first that is trained."""
        slopes = {len(self._sizes) - 1: slope}
        for at in reversed(range(self._trained[0], len(self._cut))):
            slope = slope @ self._weights[at + 1][:, : self._outputs[at].shape[1]]  # proof: by-hand
            if self._cut[at]:  # zero where what flowed in was not above zero, as torch's own backward pass has it
                torch.ops.aten.threshold_backward.grad_input(slope, self._outputs[at], 0, grad_input=slope)
            slopes[at] = slope
        return slopes

    def _part(self, found: list[tuple[Tensor, Tensor]]) -> Part:
        """Outer products, as `layers` has them: ||g||^2 is the sum over layers of ||d||^2 ||(x, 1)||^2."""
        for at, factors in enumerate(found):
            for which, factor in enumerate(factors):
                torch.linalg.vector_norm(factor, dim=1, dtype=torch.float64, out=self._norms[which, at])
        squares = self._norms.prod(0).square_().sum(0)  # proof: outer-by-hand
        squares = torch.where(self._norms.amax((0, 1)) < math.sqrt(LARGEST[self._kind]), squares, math.inf)

        def weighted(share: Tensor) -> dict[str, Tensor]:
            sums: dict[str, Tensor] = {}
            names = list(self._linear)
            for at, (inputs, d) in zip(self._trained, found, strict=True):
                total = (d[: len(share)] * share.unsqueeze(1)).T @ inputs[: len(share)]
                taken, given = self._sizes[at]
                sums[f"{names[at]}.weight".lstrip(".")] = total[:given, :taken]
                if self._linear[names[at]].bias is not None:
                    sums[f"{names[at]}.bias".lstrip(".")] = total[:given, self._whole(taken)]
            return sums

        return Part(squares, weighted)

    def _whole(self, size: int) -> int:
        return -(-size // self._unit) * self._unit

    def _room(self, rows: int, size: int, *, more: bool = False) -> Tensor:
        return torch.zeros(rows, self._whole(size) + more * self._unit, dtype=self._passes)


def _sound(values: Tensor, sound: Tensor) -> Tensor:
    return torch.where(sound.unsqueeze(1), values, 0.0)
