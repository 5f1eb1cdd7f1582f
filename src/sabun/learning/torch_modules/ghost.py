"""Clipped sums of a torch module's gradients, one forward pass with one backward pass; proved in ghost.proof.md."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, final

import numpy as np
import torch
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.clipping import likely_rows, piece_size
from sabun.learning.network import slope_of
from sabun.learning.torch_modules.by_hand import Laid, Perceptron, size_for, sizes_below
from sabun.learning.torch_modules.layers import ALIGNED, Part, Rule, own_group_norm, rule_for, written_numbers, written_out
from sabun.learning.torch_modules.paths import Loss, chain, check_dimensions, why_written_out

__all__ = ["MARGIN", "Clipper", "Loss", "clipped_gradients", "rows_stand_alone"]

MARGIN = 2.0**-30
"""By how much, relatively, a norm in doubles is taken larger than it was found."""

_WRITTEN_AT_ONCE = {"cpu": 1 << 24, "cuda": 1 << 30}
"""Numbers in the per-example gradients that are written out at a time; a matter of memory only."""

_LAID_ONCE = 1 << 25
"""Numbers in a table that is laid out once for a run rather than piece by piece."""

_UNIT = 64
"""Rows of a chain are worked on in multiples of so many: then no row falls into the rest that vector code leaves over."""

_PartOf: TypeAlias = Callable[[Tensor | None], Part]
"""The part of all trained layers together: of all rows, or with zeros in the place of those that are not sound."""


@final
class Clipper:
    """Sums over examples of their gradients, each cut to the clip norm and divided by it, as doubles.

    Guarantee: one example contributes at most 1 in L2 but for rounding; its contribution is computed from that example alone,
    by structure, and to the last bit where there are as many rows as `piece` says.
    A module that is no chain of known layers is always written out, whatever `fallback` says.

    Args:
        module: What is trained.
        loss: One number for each example.
        clip_norm: The norm to cut to.
        precision: "double" sums in 64-bit numbers; "single" in 32-bit ones, whose rounding the proof does not cover.
        fallback: Write out each example's gradient (torch.func) also where that is not needed; slower.
    """

    def __init__(
        self, module: nn.Module, loss: Loss, *, clip_norm: float, precision: str = "double", fallback: bool = False
    ) -> None:
        self._module, self._loss, self._clip_norm = module, loss, clip_norm
        self._kind = torch.float64 if precision == "double" else torch.float32
        self._trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        known = not fallback and why_written_out(module, loss) is None  # proof: whitelist
        self._chain = [(name, layer, _active_rule(layer)) for name, layer in chain(module)] if known else None
        self._hand = self._chain is not None and Perceptron.fits([layer for _, layer, _ in self._chain])
        self._plain = type(loss) is nn.CrossEntropyLoss and _is_plain(loss)
        self._passes: Perceptron | None = None

    def most_rows(self, x: Tensor) -> int:
        """How many rows of that shape to give at a time, for the sake of memory; looks at shapes alone."""
        if self._chain is None:
            numbers = sum(parameter.numel() for parameter in self._trained.values())
        else:
            with torch.no_grad():
                dimensions = {name: flow.dim() for name, flow, _ in self._inputs(x.new_zeros(1, *x.shape[1:]))}
            numbers = sum(written_numbers(layer, dimensions[name]) for name, layer, rule in self._chain if rule)
        return max(1, _WRITTEN_AT_ONCE.get(x.device.type, 1 << 24) // max(1, int(numbers)))

    def piece(self, x: Tensor, *, expected: float, probability: float, most: int) -> int:
        """How many rows of that shape to give at a time, when a batch is expected to have so many; public, as all this is.

        Args:
            x: Tells the shape.
            expected: How many rows a batch has on average.
            probability: With which each row is in it.
            most: How many there are to be at most; the first unit stays whole.
        """
        likely = likely_rows(expected, probability)
        if self.by_hand(x):
            return size_for(likely, most)
        rows = min(most, piece_size(likely, most=most), self.most_rows(x))
        return rows if self._chain is None else -(-rows // _UNIT) * _UNIT  # proof: units

    def laid(self, x: Tensor, rows: int) -> Tensor | Laid:
        """All rows of a run as they are wanted, so many at a time, if they take no more memory than is worth it."""
        if not self.by_hand(x) or x.numel() > _LAID_ONCE:
            return x
        with torch.no_grad():
            return self._perceptron(rows).laid(x)

    def contribution(self, x: Tensor, y: Tensor, row: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Every row's squared norm, with what one of them would add unclipped; for a chain. Not private."""
        alone = torch.zeros(len(x), dtype=self._kind, device=x.device)
        alone[row] = 1.0
        if not self.by_hand(x):
            part = self._by_graph(x, y)(None)
            return part.squares.clone(), part.weighted(alone)
        with torch.no_grad():
            passes = self._perceptron(len(x))
            passes.begin()
            squares = passes.run(laid := passes.laid(x), lambda output: self._slope(output, y))
            passes.add(laid, alone)
            return squares, {name: value.clone() for name, value in passes.sums().items()}

    def made_up_targets(self, y: Tensor, count: int) -> Tensor:
        """Targets of that shape and type, each class in turn, or all shares alike: some have a gradient, whatever the loss."""
        if y.dtype.is_floating_point:
            return torch.ones(count, *y.shape[1:], dtype=y.dtype)
        assert self._chain is not None
        return (torch.arange(count) % self._chain[-1][1].get_parameter("weight").shape[0]).to(y.dtype)

    def by_hand(self, x: Tensor) -> bool:
        """Whether the passes over such rows are made by hand."""
        if not self._hand or x.dim() != 2 or x.device.type != "cpu":
            return False
        return all(p.dtype == x.dtype and p.device == x.device for p in self._trained.values())

    def __call__(self, x: Tensor | Laid, y: Tensor, *, count: int | None = None) -> dict[str, Tensor]:
        """The sum over the first `count` rows, or over all; the rows behind them only keep the shape the same."""
        found = self.over([(x, y, len(y) if count is None else count)])
        return {name: value.clone() for name, value in found.items()}

    def over(self, pieces: Iterable[tuple[Tensor | Laid, Tensor, int]]) -> dict[str, Tensor]:
        """The sum over the first so many rows of each piece, all at the weights as they are now; to be used up at once."""
        total: dict[str, Tensor] = {}
        hand: Perceptron | None = None
        with torch.autograd.set_detect_anomaly(False), _without_autocast(), _full_precision(self._kind):
            for x, y, count in pieces:
                if not len(y):
                    continue
                if isinstance(x, Laid) or self.by_hand(x):
                    hand = self._by_hand(x, y, count, begin=hand is None)
                    continue
                found = self._by_examples(x, y, count) if self._chain is None else self._by_ghosts(x, y, count)
                total = {name: value + total[name] for name, value in found.items()} if total else found
        if hand is not None:
            return hand.sums()
        return total or {name: torch.zeros_like(p, dtype=torch.float64) for name, p in self._trained.items()}

    def _inputs(self, x: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
        """Each layer's name, its input, where its rule wants the gradient; the last output under the name of the loss."""
        assert self._chain is not None
        for name, layer, rule in self._chain:  # proof: chain
            check_dimensions(layer, tuple(x.shape))
            if type(layer) is nn.MaxPool2d and x.device.type == "cpu":
                x = x.contiguous(memory_format=torch.channels_last)  # many times as fast; the same numbers
            flow = x
            if type(layer) is nn.GroupNorm and rule is not None:
                x, at = own_group_norm(layer, x)
            else:
                x = at = _aligned_linear(layer, x) if type(layer) is nn.Linear else layer(x)
            yield name, flow, at
        yield "loss", x, x

    def _by_ghosts(self, x: Tensor, y: Tensor, count: int) -> dict[str, Tensor]:
        part_of = self._by_graph(x, y)
        with torch.no_grad():
            part = part_of(None)
            squares = part.squares
            if not math.isfinite(float(squares.sum())):
                # An example without a finite norm is left out whole: zero times NaN would spoil everybody's sum.
                part = part_of(torch.isfinite(squares))  # proof: sound-rows
            # A share per example needs its whole norm, over all layers; only then can each layer sum share times gradient.
            share = self._shares(squares[:count])  # proof: filling-counts-nothing
            return {name: value.double() for name, value in part.weighted(share).items()}

    # No layer of a chain mixes examples, so row i of what flows back from the sum of all losses is that of loss i alone: one
    # backward pass for everybody. With what flowed in it gives every example's gradient norm, layer by layer, and for a linear
    # layer on vectors without the gradient ever being written down: hence ghosts.

    def _by_graph(self, x: Tensor, y: Tensor) -> _PartOf:
        """Both passes by automatic differentiation."""
        assert self._chain is not None
        *flows, (_, output, _) = self._inputs(x)
        calls = [
            (name, layer, rule, flow, at)
            for (name, layer, rule), (_, flow, at) in zip(self._chain, flows, strict=True)
            if rule is not None
        ]
        losses = _one_each(self._loss(output, y), len(x))
        backs = torch.autograd.grad(losses, [at for *_, at in calls], torch.ones_like(losses))
        flowing = [(*call, flow.detach(), back) for (*call, flow, _), back in zip(calls, backs, strict=True)]

        def part(sound: Tensor | None) -> Part:
            def kept(values: Tensor) -> Tensor:
                return values if sound is None else _blank(values, sound)

            return _joined({name: rule(layer, kept(flow), kept(back), self._kind) for name, layer, rule, flow, back in flowing})

        return part

    def _by_hand(self, x: Tensor | Laid, y: Tensor, count: int, *, begin: bool) -> Perceptron:
        """The same for linear layers and ReLUs, added to what was summed since the beginning."""
        with torch.no_grad():
            passes = self._perceptron(len(y))
            if begin:
                passes.begin()
            rows = x if isinstance(x, Laid) else passes.laid(x)
            squares = passes.run(rows, lambda output: self._slope(output, y))
            if not math.isfinite(float(squares.sum())):
                rows = passes.leave_out(rows, torch.isfinite(squares))  # proof: sound-by-hand
            passes.add(rows, self._shares(squares[:count]))  # proof: filling-by-hand
            return passes

    def _perceptron(self, rows: int) -> Perceptron:
        """The passes over so many rows; their memory is kept as long as there are as many."""
        if self._passes is None or self._passes.rows != rows:
            assert self._chain is not None
            self._passes = Perceptron({name: layer for name, layer, _ in self._chain}, rows, self._kind)
        return self._passes

    def _slope(self, output: Tensor, y: Tensor) -> None:
        """Puts in the place of the last output, a column for each example, the gradient of its loss there."""
        # Which way is told by type and shape of targets alone: were it told by their values, one row's target would change how
        # the rows beside it are rounded. What is no class number for each row goes to torch, which takes or refuses it.
        if self._plain and y.dtype == torch.int64 and y.dim() == 1:  # proof: softmax
            with np.errstate(all="ignore"):  # an overflow warning would speak of a private row
                slope_of(output.numpy(), y.numpy().clip(0))
            output.masked_fill_(y < 0, 0.0)  # no class: it adds nothing  # proof: no-class
            return
        kind = next(iter(self._trained.values())).dtype
        with torch.enable_grad():
            rows = output.T.to(kind, memory_format=torch.contiguous_format, copy=True).requires_grad_()
            losses = _one_each(self._loss(rows, y), len(y))
            output.copy_(torch.autograd.grad(losses, rows, torch.ones_like(losses))[0].T)

    def _shares(self, squares: Tensor) -> Tensor:
        """1 / max(norm with its margin, clip norm); 0 for an example whose norm is no finite number."""
        # A sum of squares may be rounded down by a few last digits; the margin makes the norm too large rather than too small.
        norms = squares.sqrt().mul_(1 + MARGIN)
        share = norms.clamp_(min=self._clip_norm).reciprocal_()  # proof: share
        return share.nan_to_num_(nan=0.0).to(self._kind)

    def _by_examples(self, x: Tensor, y: Tensor, count: int) -> dict[str, Tensor]:
        """The same from gradients written out, each computed on a batch of one."""
        # Whatever the module or the loss may remember of these rows goes away with the copies.
        twin, loss = copy.deepcopy((self._module, self._loss))  # proof: twin
        fixed = {name: p.detach().clone() for name, p in twin.named_parameters() if not p.requires_grad}
        fixed |= {name: buffer.clone() for name, buffer in twin.named_buffers()}
        trained = {name: p.detach() for name, p in self._trained.items()}

        def one(parameters: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
            output = torch.func.functional_call(twin, parameters | fixed, (row.unsqueeze(0),))  # proof: batch-of-one
            return _one_each(loss(output, target.unsqueeze(0)), 1).sum()

        by_rows = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0), randomness="error")  # proof: no-chance
        each = by_rows(trained, x, y)
        with torch.no_grad():
            squares = (part := written_out(each, self._kind)).squares
            if not math.isfinite(float(squares.sum())):
                sound = torch.isfinite(squares)
                part = written_out({name: _blank(value, sound) for name, value in each.items()}, self._kind)
            return {name: value.double() for name, value in part.weighted(self._shares(squares[:count])).items()}


def clipped_gradients(
    module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, clip_norm: float, fallback: bool = False
) -> dict[str, Tensor]:
    """The sum over all examples of their gradients, each cut to the clip norm and divided by it; see `Clipper`."""
    return Clipper(module, loss, clip_norm=clip_norm, fallback=fallback)(x, y)


def _aligned_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """The layer's output, with every row at the same alignment: else some libraries round a row by where it stands."""
    rows, columns = -layer.out_features % ALIGNED, -layer.in_features % ALIGNED  # proof: aligned
    if not rows and not columns:
        return nn.functional.linear(x, layer.weight, layer.bias)
    weight = nn.functional.pad(layer.weight, (0, columns, 0, rows))
    bias = None if layer.bias is None else nn.functional.pad(layer.bias, (0, rows))
    return nn.functional.linear(nn.functional.pad(x, (0, columns)), weight, bias)[..., : layer.out_features]


def _is_plain(loss: nn.CrossEntropyLoss) -> bool:
    """Whether the gradient at the output is the softmax, less one at the class."""
    return loss.weight is None and not loss.label_smoothing and loss.ignore_index < 0


def _joined(parts: Mapping[str, Part]) -> Part:
    """The part of several layers, each used once: squared norms add up; sums bear the layers' names."""
    squares = functools.reduce(torch.add, [part.squares for part in parts.values()])  # proof: norms-add

    def weighted(share: Tensor) -> dict[str, Tensor]:
        found = {name: part.weighted(share) for name, part in parts.items()}
        return {f"{name}.{which}".lstrip("."): value for name, sums in found.items() for which, value in sums.items()}

    return Part(squares, weighted)


def _active_rule(layer: nn.Module) -> Rule | None:
    """The rule of a layer that has something to train."""
    return rule_for(layer) if any(p.requires_grad for p in layer.parameters(recurse=False)) else None


def _blank(values: Tensor, sound: Tensor) -> Tensor:
    """Zeros in the rows that do not count; the shape stays."""
    return torch.where(sound.reshape(-1, *[1] * (values.dim() - 1)), values, torch.zeros_like(values))


def _without_autocast() -> contextlib.AbstractContextManager[object]:
    """Everything in the types it has; entering torch's own context takes longer than asking whether one is needed."""
    on = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    stack = contextlib.ExitStack()
    for kind in on:
        stack.enter_context(torch.autocast(kind, enabled=False))
    return stack


@contextlib.contextmanager
def _full_precision(kind: torch.dtype) -> Iterator[None]:
    """Sums in 32-bit numbers are not to be rounded to fewer bits by a setting of the caller's; doubles never are."""
    if kind == torch.float64:
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _one_each(losses: Tensor, count: int) -> Tensor:
    if losses.shape != (count,):
        raise ParameterError(
            f"loss must give one number for each example, shape (n,); got {losses.dim()} dimensions. Use reduction='none'."
        )
    return losses


def rows_stand_alone(clipper: Clipper, x: Tensor, y: Tensor, *, most: int) -> bool:
    """Whether passes by hand give a row the same bits wherever it stands, tried on made-up rows before a run.

    Args:
        clipper: That of the run.
        x: Tells the shape of a row; its values are not used.
        y: Tells the type of a target.
        most: How many rows are worked on at a time at most; each number that a run may choose is tried.
    """
    return not clipper.by_hand(x) or all(_stands_alone(clipper, x, y, count) for count in sizes_below(most))  # proof: each-size


def _stands_alone(clipper: Clipper, x: Tensor, y: Tensor, count: int) -> bool:
    made = torch.arange(count * x.shape[1], dtype=torch.float64) * 0.6180339887498949 % 2 - 1
    made, targets = made.reshape(count, -1).to(x.dtype), clipper.made_up_targets(y, count)
    row = int(clipper.contribution(made, targets, 0)[0].argmax())  # one that adds something, whatever the loss ignores
    squares, sums = clipper.contribution(made, targets, row)
    for shift in (1, 5, 17):
        moved, theirs = clipper.contribution(made.roll(shift, 0), targets.roll(shift, 0), (row + shift) % count)
        if not torch.equal(moved.roll(-shift, 0), squares) or any(not torch.equal(sums[name], theirs[name]) for name in sums):
            return False
    return True
