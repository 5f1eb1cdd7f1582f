"""Norms and weighted sums of per-example gradients, layer by layer, from what flows in and what flows back.

A rule takes a layer, its input, the loss's gradient at its output (of a group norm: at the weights that each example has of
its own, `own_group_norm`); it gives a `Part`: each example's squared gradient norm in doubles, with the function from shares to
the sum of share times gradient. A gradient is either an outer product, whose norm is the product of two norms (`_outer`), or it
is written out, and the norm is that of the very numbers that are summed (`written_out`). So norm and summand always belong
together, in whatever precision the gradient was computed.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

__all__ = ["ALIGNED", "LARGEST", "Part", "Rule", "own_group_norm", "rule_for", "written_numbers", "written_out"]


class Part(NamedTuple):
    """One layer's share of the work on one batch: squared norms; a function of shares of the first so many examples."""

    squares: Tensor
    weighted: Callable[[Tensor], dict[str, Tensor]]


Rule: TypeAlias = Callable[[Any, Tensor, Tensor, torch.dtype], Part]
"""Layer, input, gradient at the output or at each example's own weights, type of the sums."""

ALIGNED = 16
"""So many numbers fill a line of the processor's cache, or two."""

LARGEST = {torch.float64: 1e200, torch.float32: 1e50}
"""Squared norms above do not count: beside them the square of the other factor could have been rounded to zero, or, in 32-bit
sums, a number times its share could be infinite."""

_LOST = 2.0**-30
"""What is added to a norm of terms that may cancel, relative to the norm that they had if none did."""

_MOST_PLACES = 256
"""Of a convolution whose norms are products of places: what is lost where terms cancel grows with them."""

_MOST_GROUPS = 65_535
"""Of one example that torch normalises on a GPU: so many blocks a launch may have along its second axis."""

_COLUMNS = {"cpu": 12, "cuda": 16}
"""Matrix libraries are fastest when the number of columns is a multiple of this; zeros fill up."""


def _trained(layer: Any, name: str) -> bool:
    parameter = getattr(layer, name, None)
    return parameter is not None and parameter.requires_grad


def _filled(values: Tensor, length: int, dimension: int) -> Tensor:
    """Zeros behind one dimension: each example's numbers then begin at the same alignment, whatever its place in the batch."""
    if length % ALIGNED == 0 and values.is_contiguous():  # torch would copy them all the same
        return values
    return nn.functional.pad(values, (0, 0) * (values.dim() - 1 - dimension) + (0, -length % ALIGNED))  # proof: aligned


def _squares(rows: Tensor) -> Tensor:
    """Each row's sum of squares, in doubles."""
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square_()


def _outer(layer: nn.Linear, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    """A linear layer on vectors: the gradient is d (x, 1)', so ||g||^2 = ||d||^2 ||(x, 1)||^2."""
    with_weight, with_bias = _trained(layer, "weight"), _trained(layer, "bias")
    n, unit = x.shape[1] if with_weight else 0, _COLUMNS.get(x.device.type, 1)
    # The bias is a weight on an input that is always 1 (0 where it is not trained): one column more, one product for both.
    inputs = torch.empty(len(x), -(-(n + 1) // unit) * unit, dtype=kind, device=x.device)
    inputs[:, :n] = x[:, :n]
    inputs[:, n:] = 0.0
    inputs[:, n] = float(with_bias)
    d = d.to(kind)
    size, back = _squares(inputs), _squares(d)
    squares = size * back  # proof: outer
    if layer.weight.dtype == torch.float64 or kind == torch.float32:  # doubles of 32-bit numbers need no limit
        squares = torch.where(torch.maximum(size, back) < LARGEST[kind], squares, math.inf)  # proof: factors

    def weighted(share: Tensor) -> dict[str, Tensor]:
        total = (d[: len(share)] * share.unsqueeze(1)).T @ inputs[: len(share)]
        found = {"weight": total[:, :n]} if with_weight else {}
        return found | ({"bias": total[:, n]} if with_bias else {})

    return Part(squares, weighted)


def written_out(each: Mapping[str, Tensor], kind: torch.dtype) -> Part:
    """Gradients written out, one for each example, in the layer's own precision."""
    flat = {name: part.flatten(1).to(kind) for name, part in each.items()}
    squares = functools.reduce(torch.add, [_squares(part) for part in flat.values()])

    def weighted(share: Tensor) -> dict[str, Tensor]:
        sums = {name: share @ part[: len(share)] for name, part in flat.items()}  # proof: very-numbers
        return {name: total.reshape(each[name].shape[1:]) for name, total in sums.items()}

    return Part(squares, weighted)


def _linear(layer: nn.Linear, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    if d.dim() == 2:
        return _outer(layer, x, d, kind)
    x, d = x.flatten(1, -2), d.flatten(1, -2)
    each = {}
    if _trained(layer, "weight"):
        products = _filled(d, d.shape[2], 2).transpose(1, 2) @ _filled(x, x.shape[2], 2)
        each["weight"] = products[:, : d.shape[2], : x.shape[2]]
    if _trained(layer, "bias"):
        each["bias"] = d.sum(1)
    return written_out(each, kind)


def _conv(layer: nn.Conv2d, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    if _few_places(layer, d, kind):
        return _by_places(layer, x, d, kind)
    each = {}
    if _trained(layer, "weight"):
        cut = (_unfolded if x.device.type == "cuda" else _patches)(layer, x)
        places = d.flatten(2)
        back = _filled(places, places.shape[2], 2).unflatten(1, (layer.groups, -1))
        with _as_convolutions():
            each["weight"] = (back @ cut.transpose(2, 3)).reshape(len(d), *layer.weight.shape)
    if _trained(layer, "bias"):
        each["bias"] = d.sum((2, 3))
    return written_out(each, kind)


@contextlib.contextmanager
def _as_convolutions() -> Iterator[None]:
    """Products as rounded as torch's own convolutions are on a GPU: the gradient of a convolution's weight is one."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if torch.backends.cudnn.allow_tf32 else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _few_places(layer: nn.Conv2d, d: Tensor, kind: torch.dtype) -> bool:
    """Whether products of places are cheaper than gradients written out: on a GPU, which is fast at doubles."""
    patch, outputs, places = layer.weight[0].numel(), layer.out_channels, d.shape[2] * d.shape[3]
    cheap = places <= _MOST_PLACES and places * (patch + outputs) < patch * outputs
    right = d.device.type == "cuda" and layer.groups == 1 and (d.dtype, kind) == (torch.float32, torch.float64)
    return cheap and right and _trained(layer, "weight")


def _by_places(layer: nn.Conv2d, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    """A convolution with few places p, whose gradient is the sum of d_p (x_p, 1)': never written out.

    ||g||^2 is the sum over pairs of places of (d_p'd_q) (x_p'x_q + 1). What may have been lost where terms cancel is added.
    """
    with_bias = _trained(layer, "bias")
    cut = _patches(layer, x, kind)
    back = torch.empty(d.shape[1], len(d), cut.shape[2], dtype=kind, device=d.device)
    back[..., : d.shape[2] * d.shape[3]] = d.flatten(2).transpose(0, 1)
    back[..., d.shape[2] * d.shape[3] :] = 0.0
    seen, sent = (part.permute(1, 2, 0) @ part.transpose(0, 1) for part in (cut, back))
    seen += float(with_bias)
    whole = (part.diagonal(dim1=1, dim2=2).sum(1) for part in (seen, sent))
    squares = (seen * sent).sum((1, 2)) + _LOST * functools.reduce(torch.mul, whole)  # proof: places

    def weighted(share: Tensor) -> dict[str, Tensor]:
        scaled = (back[:, : len(share)] * share.unsqueeze(1)).flatten(1)
        total = scaled @ cut[:, : len(share)].flatten(1).T
        found = {"weight": total.reshape(layer.weight.shape)}
        return found | ({"bias": scaled.sum(1)} if with_bias else {})

    return Part(squares, weighted)


def _sides(layer: nn.Conv2d) -> list[int]:
    """The zeros that a convolution puts around its input: left, right, above, below."""
    sides: list[int] = []
    for axis in (1, 0):
        both = 0 if layer.padding == "valid" else layer.dilation[axis] * (layer.kernel_size[axis] - 1)
        sides += [both // 2, both - both // 2] if isinstance(layer.padding, str) else [int(layer.padding[axis])] * 2
    return sides


def _unfolded(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """The same patches by torch's unfold, which takes a GPU less time than a padded copy with another of its view."""
    left, right, above, below = _sides(layer)
    if (left, above) != (right, below):
        x, left, above = nn.functional.pad(x, (left, right, above, below)), 0, 0
    # All channels of all examples as those of one image: torch starts a kernel for each image.
    image = x.reshape(1, -1, *x.shape[2:])
    cut = nn.functional.unfold(image, layer.kernel_size, layer.dilation, (above, left), layer.stride)
    return _filled(cut.reshape(len(x), layer.groups, -1, cut.shape[2]), cut.shape[2], 3)


def _patches(layer: nn.Conv2d, x: Tensor, kind: torch.dtype | None = None) -> Tensor:
    """The inputs of a convolution as (example, group, patch size, place), the places filled up with zeros.

    With a type: as (patch size, example, place) in that type, of a convolution of one group.
    """
    down, right = layer.kernel_size
    sides = _sides(layer)
    x = nn.functional.pad(x, sides) if any(sides) else x
    high, wide = ((x.shape[2 + a] - layer.dilation[a] * (layer.kernel_size[a] - 1) - 1) // layer.stride[a] + 1 for a in (0, 1))
    example, channel, row, column = x.stride()
    # Six axes over the memory of x: example, channel, cell of the kernel (down, right), place of the kernel (high, wide). One
    # cell further in the kernel is `dilation` cells further in the image, one place further is `stride` cells: overlapping
    # patches are the same numbers, seen twice. `high` and `wide` are the places where the kernel still fits, so the last cell
    # of the last place lies inside the padded image: no patch reaches into the next channel, let alone the next example.
    # One copy of a view; on a CPU torch's unfold is many times slower.
    view = x.as_strided(
        (len(x), x.shape[1], down, right, high, wide),
        (
            example,
            channel,
            row * layer.dilation[0],
            column * layer.dilation[1],
            row * layer.stride[0],
            column * layer.stride[1],
        ),
        x.storage_offset(),
    )
    full = high * wide + -(high * wide) % ALIGNED
    if kind is not None:
        cut = x.new_empty(x.shape[1] * down * right, len(x), full, dtype=kind)
        cut[..., : high * wide].unflatten(2, (high, wide)).unflatten(0, (x.shape[1], down, right)).copy_(
            view.permute(1, 2, 3, 0, 4, 5)
        )
        cut[..., high * wide :] = 0.0
        return cut
    cut = x.new_empty(len(x), x.shape[1] * down * right, full)
    cut[..., : high * wide].unflatten(2, (high, wide)).unflatten(1, (x.shape[1], down, right)).copy_(view)
    cut[..., high * wide :] = 0.0
    return cut.unflatten(1, (layer.groups, -1))


def _embedding(layer: nn.Embedding, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    """Each token's gradient is written out at the place where the token stands first."""
    tokens, back = x.reshape(len(x), -1), d.reshape(len(x), -1, d.shape[-1])
    # A token that stands at several places has one row of the table, so its gradients add up before they are squared. Row i of
    # `same` marks the places with the token of place i: `same @ back` has that sum at each of them, `first` keeps one.
    same = tokens.unsqueeze(1) == tokens.unsqueeze(2)
    first = ~same.tril(-1).any(2)
    if layer.padding_idx is not None:
        first &= tokens != layer.padding_idx
    length, width = back.shape[1:]
    summed = _filled(same.to(d.dtype), length, 2) @ _filled(_filled(back, width, 2), length, 1)
    each = (summed[..., :width] * first.unsqueeze(-1)).to(kind)  # proof: each-token

    def weighted(share: Tensor) -> dict[str, Tensor]:
        scaled = each[: len(share)] * share.reshape(-1, 1, 1)
        table = torch.zeros_like(layer.weight, dtype=kind)
        return {"weight": table.index_add_(0, tokens[: len(share)].reshape(-1), scaled.flatten(0, 1))}

    return Part(written_out({"weight": each}, kind).squares, weighted)


def _layer_norm(layer: nn.LayerNorm, x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    normal = nn.functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)
    places = tuple(range(1, x.dim() - len(layer.normalized_shape)))
    parts = {name: part for name, part in (("weight", normal * d), ("bias", d)) if _trained(layer, name)}
    return written_out({name: part.sum(places) if places else part for name, part in parts.items()}, kind)


def own_group_norm(layer: nn.GroupNorm, x: Tensor) -> tuple[Tensor, Tensor]:
    """The output, with the weights and biases that went into it: each example's own, (example, 2, channel).

    n examples of g groups are one example of n g groups: the gradient at its weights, which torch's backward pass adds up
    over places anyway, is that of each example.
    """
    own = torch.stack([layer.weight, layer.bias]).detach().repeat(len(x), 1, 1).requires_grad_()
    most = max(1, _MOST_GROUPS // layer.num_groups)
    if len(x) <= most:
        return _normalised(layer, x, own), own
    return torch.cat([_normalised(layer, *some) for some in zip(x.split(most), own.split(most), strict=True)]), own


def _normalised(layer: nn.GroupNorm, x: Tensor, own: Tensor) -> Tensor:
    weight, bias = (part.reshape(-1) for part in own.unbind(1))
    one = x.reshape(1, -1, *x.shape[2:])
    return torch.group_norm(one, len(x) * layer.num_groups, weight, bias, layer.eps).reshape(x.shape)  # proof: own-weights


def _group_norm(layer: nn.GroupNorm, _x: Tensor, d: Tensor, kind: torch.dtype) -> Part:
    each = zip(("weight", "bias"), d.unbind(1), strict=True)
    return written_out({name: part for name, part in each if _trained(layer, name)}, kind)


_RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.Conv2d: _conv,
    nn.Embedding: _embedding,
    nn.LayerNorm: _layer_norm,
    nn.GroupNorm: _group_norm,
}


def rule_for(layer: nn.Module) -> Rule | None:
    """The rule of a layer's exact type; a subclass may compute something else, so it has none."""
    if isinstance(layer, nn.Conv2d) and layer.padding_mode != "zeros":
        return None
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse):
        return None
    return _RULES.get(type(layer))


def written_numbers(layer: nn.Module, dimensions: int) -> int:
    """How many numbers of one example's gradient are written out at this layer, for an input with that many dimensions."""
    if type(layer) is nn.Embedding or (type(layer) is nn.Linear and dimensions == 2):
        return 0
    return sum(parameter.numel() for parameter in layer.parameters(recurse=False) if parameter.requires_grad)
