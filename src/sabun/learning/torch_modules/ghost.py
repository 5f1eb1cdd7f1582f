"""Clipped sums of a torch module's gradients, one forward pass with one backward pass; proved in ghost.proof.md."""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, final

import torch
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.torch_modules.by_hand import Perceptron
from sabun.learning.torch_modules.layers import ALIGNED, Part, Rule, own_group_norm, rule_for, written_numbers, written_out
from sabun.learning.torch_modules.paths import Loss, chain, check_dimensions, refuse, why_written_out

__all__ = ["MARGIN", "Clipper", "Loss", "check_module", "clipped_gradients", "needs_fallback", "rows_stand_alone"]

MARGIN = 2.0**-30
"""By how much, relatively, a norm in doubles is taken larger than it was found."""

_WRITTEN_AT_ONCE = {"cpu": 1 << 24, "cuda": 1 << 30}
"""Numbers in the per-example gradients that are written out at a time; a matter of memory only."""

_UNIT = 64
"""Rows of a chain are worked on in multiples of so many: then no row falls into the rest that vector code leaves over."""

_PartOf: TypeAlias = Callable[[Tensor | None], Part]
"""The part of all trained layers together: of all rows, or with zeros in the place of those that are not sound."""


@final
class Clipper:
    """Sums over examples of their gradients, each cut to the clip norm and divided by it, as doubles.

    Guarantee: one example contributes at most 1 in L2; its contribution is computed from that example alone, by structure.
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
        self._perceptron: Perceptron | None = None

    def most_rows(self, x: Tensor) -> int:
        """How many rows of that shape to give at a time, for the sake of memory; looks at shapes alone."""
        if self._chain is None:
            numbers = sum(parameter.numel() for parameter in self._trained.values())
        else:
            with torch.no_grad():
                dimensions = {name: flow.dim() for name, flow, _ in self._inputs(x.new_zeros(1, *x.shape[1:]))}
            numbers = sum(written_numbers(layer, dimensions[name]) for name, layer, rule in self._chain if rule)
        return max(1, _WRITTEN_AT_ONCE.get(x.device.type, 1 << 24) // max(1, int(numbers)))

    def piece(self, x: Tensor, wanted: int) -> int:
        """How many rows of that shape to give at a time: those wanted or what memory allows, for chains in whole units."""
        rows = min(wanted, self.most_rows(x))
        return rows if self._chain is None else -(-rows // _UNIT) * _UNIT  # proof: units

    def contribution(self, x: Tensor, y: Tensor, row: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Every row's squared norm, with what one of them would add unclipped; for a chain. Not private."""
        part = (self._by_hand(x, y) if self.by_hand(x) else self._by_graph(x, y))(None)
        alone = torch.zeros(len(x), dtype=self._kind, device=x.device)
        alone[row] = 1.0
        with torch.no_grad():
            return part.squares.clone(), part.weighted(alone)

    def by_hand(self, x: Tensor) -> bool:
        """Whether the passes over such rows are made by hand."""
        return self._chain is not None and Perceptron.fits([layer for _, layer, _ in self._chain], x)

    def __call__(self, x: Tensor, y: Tensor, *, count: int | None = None) -> dict[str, Tensor]:
        """The sum over the first `count` rows, or over all; the rows behind them only keep the shape the same."""
        if not len(x):
            return {name: torch.zeros_like(p, dtype=torch.float64) for name, p in self._trained.items()}
        way = self._by_examples if self._chain is None else self._by_ghosts
        with torch.autograd.set_detect_anomaly(False), torch.autocast(x.device.type, enabled=False):
            return way(x, y, count)

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

    def _by_ghosts(self, x: Tensor, y: Tensor, count: int | None) -> dict[str, Tensor]:
        part_of = self._by_hand(x, y) if self.by_hand(x) else self._by_graph(x, y)
        with torch.no_grad():
            part = part_of(None)
            squares = part.squares
            if not math.isfinite(float(squares.sum())):
                # An example without a finite norm is left out whole: zero times NaN would spoil everybody's sum.
                part = part_of(torch.isfinite(squares))  # proof: sound-rows
            # A share per example needs its whole norm, over all layers; only then can each layer sum share times gradient.
            share = self._shares(squares[:count])  # proof: filling-counts-nothing
            with _full_precision(self._kind):
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

    def _by_hand(self, x: Tensor, y: Tensor) -> _PartOf:
        """Both passes for linear layers and ReLUs; only the loss is left to automatic differentiation."""
        assert self._chain is not None
        if self._perceptron is None or self._perceptron.rows != len(x):
            self._perceptron = Perceptron({name: layer for name, layer, _ in self._chain}, len(x), self._kind)

        def back(output: Tensor) -> Tensor:
            with torch.enable_grad():
                output = output.detach().to(x.dtype).requires_grad_()  # the loss may hold weights of the module's own type
                losses = _one_each(self._loss(output, y), len(x))
                return torch.autograd.grad(losses, output, torch.ones_like(losses))[0]

        with torch.no_grad():
            return self._perceptron(x, back)

    def _shares(self, squares: Tensor) -> Tensor:
        """1 / max(norm with its margin, clip norm); 0 for an example whose norm is no finite number."""
        # A sum of squares may be rounded down by a few last digits; the margin makes the norm too large rather than too small.
        norms = squares.sqrt().mul_(1 + MARGIN)
        share = norms.clamp_(min=self._clip_norm).reciprocal_()  # proof: share
        return share.nan_to_num_(nan=0.0).to(self._kind)

    def _by_examples(self, x: Tensor, y: Tensor, count: int | None) -> dict[str, Tensor]:
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
            with _full_precision(self._kind):
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


def check_module(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> tuple[int, ...]:
    """Refuses a module that cannot be trained privately; looks at its structure, at made-up rows, never at the given values.

    Args:
        module: What is to be trained.
        loss: One number for each example.
        x: Tells shape and type of a row; its values are not used.
        y: Tells shape and type of a target.

    Returns:
        The shape of the module's output for three rows.

    Raises:
        ParameterError: The module keeps statistics, writes into its buffers, draws random numbers, cannot be copied or
            differentiated example by example, or has nothing to train.
    """
    refuse(module)
    _copies_share_nothing(module, loss)
    rows = torch.zeros(3, *x.shape[1:], dtype=x.dtype, device=x.device)
    if x.dtype.is_floating_point:
        spread = torch.arange(rows.numel(), device=x.device, dtype=torch.float64) * 0.6180339887498949 % 1 + 0.5
        rows += spread.reshape(rows.shape).to(x.dtype)  # numbers all different: a constant row would hide what is written
    targets = torch.zeros(3, *y.shape[1:], dtype=y.dtype, device=y.device)
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        shape = _forward_leaves_nothing(module, rows)
        try:
            clipped_gradients(module.train(), loss, rows, targets, clip_norm=1.0)
        except ParameterError:
            raise
        except Exception as error:
            if "randomness error mode" in str(error):
                raise ParameterError(
                    f"module must not draw random numbers; got {type(module).__name__}, which does. "
                    "Leave out dropout: the noise regularises."
                ) from error
            raise ParameterError(
                "module must be differentiable example by example with torch.func; "
                f"got {type(error).__name__} on made-up rows. Take out what writes in place or branches on values."
            ) from error
    return shape


def rows_stand_alone(clipper: Clipper, x: Tensor, y: Tensor, *, rows: int) -> bool:
    """Whether passes by hand give a row the same bits wherever it stands, tried on made-up rows before a run.

    Args:
        clipper: That of the run.
        x: Tells the shape of a row; its values are not used.
        y: Tells the type of a target.
        rows: About how many are worked on at a time.
    """
    if not clipper.by_hand(x):
        return True
    count = clipper.piece(x, rows)
    made = torch.arange(count * x.shape[1], dtype=torch.float64) * 0.6180339887498949 % 2 - 1
    made, targets = made.reshape(count, -1).to(x.dtype), torch.zeros(count, dtype=y.dtype)
    squares, sums = clipper.contribution(made, targets, 7)
    for shift in (1, 5, 17):
        moved, theirs = clipper.contribution(made.roll(shift, 0), targets, (7 + shift) % count)
        if not torch.equal(moved.roll(-shift, 0), squares) or any(not torch.equal(sums[name], theirs[name]) for name in sums):
            return False
    return True


def _copies_share_nothing(module: nn.Module, loss: Loss) -> None:
    """Refuses a module or loss whose copy is itself in some part, which would remember rows."""
    for what, given in (("module", module), ("loss", loss)):
        if not isinstance(given, nn.Module):
            continue
        try:
            copied = copy.deepcopy(given)
        except Exception as error:
            raise ParameterError(f"{what} must be copyable; got {type(error).__name__} from copy.deepcopy.") from error
        if {id(part) for part in copied.modules()} & {id(part) for part in given.modules()}:
            raise ParameterError(
                f"{what} must be copyable; got {type(given).__name__}, whose copy shares parts with it. Take out __deepcopy__."
            )


def _forward_leaves_nothing(module: nn.Module, rows: Tensor) -> tuple[int, ...]:
    """Runs a copy on made-up rows; buffers and weights have to be the same afterwards, bit for bit."""
    try:
        twin = copy.deepcopy(module).train()
        with torch.no_grad():
            output = twin(rows)
    except Exception as error:
        raise ParameterError(
            f"module must be copyable, taking a batch of rows of this shape; got {type(error).__name__} on made-up rows."
        ) from error
    before, after = (dict(one.named_parameters()) | dict(one.named_buffers()) for one in (module, twin))
    for name, value in before.items():
        if name not in after or not torch.equal(value.nan_to_num(), after[name].nan_to_num()):
            raise ParameterError(
                f"buffers must not change in training; {name!r} does, and would be released without noise. "
                "Take out what keeps statistics of rows."
            )
    return tuple(getattr(output, "shape", ()))


def needs_fallback(module: nn.Module, loss: object) -> bool:
    """Whether the module is no chain of known layers, so that gradients are written out; says so."""
    reason = why_written_out(module, loss)
    if reason is None:
        return False
    warnings.warn(f"{reason}: per-example gradients are written out with torch.func, which is slower.", stacklevel=3)
    return True
