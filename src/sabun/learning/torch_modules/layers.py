"""Norms and weighted sums of per-example gradients, layer by layer, from what flows in and what flows back.

Each rule takes a layer, its input, the loss's gradient at its output, both as doubles; `norms` gives a bound on each example's
squared gradient norm, `weighted` the sum over examples of share times gradient, both without a gradient for each example where
that is cheaper. Notation: S is the sum of the norms of an example's terms, one for each place; `CANCEL` S**2 is added to every
squared norm in which terms can cancel, which is more than rounding can take away from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import grad as convolution_gradients

__all__ = ["CANCEL", "RULES", "Rule", "rule_for"]

CANCEL = 2.0**-32
"""Above the relative error of a squared norm in doubles, in units of S**2, for up to 2**20 multiplications."""

_conv2d_weight: Any = convolution_gradients.conv2d_weight


class Rule(NamedTuple):
    """How one kind of layer is treated."""

    norms: Callable[[Any, Tensor, Tensor], Tensor]
    weighted: Callable[[Any, Tensor, Tensor, Tensor], dict[str, Tensor]]


def _lengths(terms: Tensor, dimension: int) -> Tensor:
    """Norms along one dimension; torch's own norm is slow along any but the last."""
    return terms.square().sum(dimension).sqrt_()


def _linear_norms(layer: nn.Linear, x: Tensor, d: Tensor) -> Tensor:
    total = torch.zeros(len(d), dtype=d.dtype, device=d.device)
    if d.dim() == 2:
        back = d.square().sum(1)
        if layer.weight.requires_grad:
            total += x.square().sum(1) * back
        return total + back if layer.bias is not None and layer.bias.requires_grad else total
    flat_x, flat_d = x.reshape(len(x), -1, x.shape[-1]), d.reshape(len(d), -1, d.shape[-1])
    if layer.weight.requires_grad:
        total += _products(flat_x, flat_d)
    if layer.bias is not None and layer.bias.requires_grad:
        total += flat_d.sum(1).square().sum(1) + CANCEL * _lengths(flat_d, 2).sum(1).square()
    return total


def _products(x: Tensor, d: Tensor) -> Tensor:
    """A bound on ||sum_t x_t d_t'||^2 for each example, by whichever of the two ways needs less memory."""
    length, inputs, outputs = x.shape[1], x.shape[2], d.shape[2]
    if length * length <= inputs * outputs:
        found = ((x @ x.transpose(1, 2)) * (d @ d.transpose(1, 2))).sum((1, 2)).clamp(min=0.0)
    else:
        found = (x.transpose(1, 2) @ d).square().sum((1, 2))
    return found + CANCEL * (_lengths(x, 2) * _lengths(d, 2)).sum(1).square()


def _linear_weighted(layer: nn.Linear, x: Tensor, d: Tensor, share: Tensor) -> dict[str, Tensor]:
    scaled = d * share.reshape(-1, *[1] * (d.dim() - 1))
    found = {}
    if layer.weight.requires_grad:
        found["weight"] = scaled.reshape(-1, d.shape[-1]).T @ x.reshape(-1, x.shape[-1])
    if layer.bias is not None and layer.bias.requires_grad:
        found["bias"] = scaled.reshape(-1, d.shape[-1]).sum(0)
    return found


def _padded(layer: nn.Conv2d, x: Tensor) -> tuple[Tensor, Any]:
    """The input with padding that is given as a word carried out; the padding left to do."""
    if layer.padding == "valid":
        return x, 0
    if layer.padding != "same":
        return x, layer.padding
    sides: list[int] = []
    for size, spread in zip(reversed(layer.kernel_size), reversed(layer.dilation), strict=True):
        both = spread * (size - 1)
        sides += [both // 2, both - both // 2]
    return nn.functional.pad(x, sides), 0


def _patches(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """The inputs of a convolution as (example, group, patch size, place)."""
    x, padding = _padded(layer, x)
    cut: Tensor = nn.functional.unfold(x, layer.kernel_size, layer.dilation, padding, layer.stride)
    return cut.reshape(len(x), layer.groups, -1, cut.shape[-1])


def _conv_norms(layer: nn.Conv2d, x: Tensor, d: Tensor) -> Tensor:
    total = torch.zeros(len(d), dtype=d.dtype, device=d.device)
    if layer.weight.requires_grad:
        cut = _patches(layer, x)
        back = d.reshape(len(d), layer.groups, -1, cut.shape[-1])
        places, inputs, outputs = cut.shape[-1], cut.shape[2], back.shape[2]
        if places * places <= inputs * outputs:
            products = (cut.transpose(2, 3) @ cut) * (back.transpose(2, 3) @ back)
            total += products.sum((1, 2, 3)).clamp(min=0.0)
        else:
            total += (back @ cut.transpose(2, 3)).square().sum((1, 2, 3))
        total += CANCEL * (_lengths(cut, 2) * _lengths(back, 2)).sum(2).square().sum(1)
    if layer.bias is not None and layer.bias.requires_grad:
        total += d.sum((2, 3)).square().sum(1) + CANCEL * _lengths(d, 1).sum((1, 2)).square()
    return total


def _conv_weighted(layer: nn.Conv2d, x: Tensor, d: Tensor, share: Tensor) -> dict[str, Tensor]:
    scaled = d * share.reshape(-1, 1, 1, 1)
    found = {}
    if layer.weight.requires_grad:
        x, padding = _padded(layer, x)
        found["weight"] = _conv2d_weight(
            x, list(layer.weight.shape), scaled, layer.stride, padding, layer.dilation, layer.groups
        )
    if layer.bias is not None and layer.bias.requires_grad:
        found["bias"] = scaled.sum((0, 2, 3))
    return found


def _embedding_norms(layer: nn.Embedding, x: Tensor, d: Tensor) -> Tensor:
    flat_x, flat_d = x.reshape(len(x), -1), d.reshape(len(x), -1, d.shape[-1])
    if layer.padding_idx is not None:
        flat_d = flat_d * (flat_x != layer.padding_idx).unsqueeze(-1)
    same = (flat_x.unsqueeze(1) == flat_x.unsqueeze(2)).to(d.dtype)
    found = ((flat_d @ flat_d.transpose(1, 2)) * same).sum((1, 2)).clamp(min=0.0)
    return found + CANCEL * _lengths(flat_d, 2).sum(1).square()


def _embedding_weighted(layer: nn.Embedding, x: Tensor, d: Tensor, share: Tensor) -> dict[str, Tensor]:
    scaled = (d * share.reshape(-1, *[1] * (d.dim() - 1))).reshape(-1, d.shape[-1])
    flat = x.reshape(-1)
    if layer.padding_idx is not None:
        scaled = scaled * (flat != layer.padding_idx).unsqueeze(-1)
    return {"weight": torch.zeros_like(layer.weight, dtype=d.dtype).index_add_(0, flat, scaled)}


def _layer_norm_each(layer: nn.LayerNorm, x: Tensor, d: Tensor, *, absolute: bool = False) -> dict[str, Tensor]:
    normal = nn.functional.layer_norm(x, layer.normalized_shape, eps=layer.eps)
    keep = x.dim() - len(layer.normalized_shape)
    return _affine_each(layer, normal * d, d, tuple(range(1, keep)), absolute)


def _group_norm_each(layer: nn.GroupNorm, x: Tensor, d: Tensor, *, absolute: bool = False) -> dict[str, Tensor]:
    normal = nn.functional.group_norm(x, layer.num_groups, eps=layer.eps)
    return _affine_each(layer, normal * d, d, tuple(range(2, x.dim())), absolute)


def _affine_each(layer: Any, slopes: Tensor, d: Tensor, places: tuple[int, ...], absolute: bool) -> dict[str, Tensor]:
    """Gradients of scale and shift for each example; they are small enough to be written out."""
    found = {}
    for name, part in (("weight", slopes), ("bias", d)):
        parameter = getattr(layer, name, None)
        if parameter is not None and parameter.requires_grad:
            terms = part.abs() if absolute else part
            found[name] = (terms.sum(places) if places else terms).reshape(len(d), *parameter.shape)
    return found


def _from_each(each: Callable[..., dict[str, Tensor]]) -> Rule:
    def norms(layer: Any, x: Tensor, d: Tensor) -> Tensor:
        parts = [part.flatten(1).square().sum(1) for part in each(layer, x, d).values()]
        sizes = [part.flatten(1).square().sum(1) for part in each(layer, x, d, absolute=True).values()]
        return torch.stack(parts).sum(0) + CANCEL * torch.stack(sizes).sum(0)

    def weighted(layer: Any, x: Tensor, d: Tensor, share: Tensor) -> dict[str, Tensor]:
        return {name: torch.tensordot(share, part, dims=1) for name, part in each(layer, x, d).items()}

    return Rule(norms=norms, weighted=weighted)


RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: Rule(norms=_linear_norms, weighted=_linear_weighted),
    nn.Conv2d: Rule(norms=_conv_norms, weighted=_conv_weighted),
    nn.Embedding: Rule(norms=_embedding_norms, weighted=_embedding_weighted),
    nn.LayerNorm: _from_each(_layer_norm_each),
    nn.GroupNorm: _from_each(_group_norm_each),
}


def rule_for(layer: nn.Module) -> Rule | None:
    """The rule of a layer's exact type; a subclass may compute something else, so it has none."""
    rule = RULES.get(type(layer))
    if isinstance(layer, nn.Conv2d) and layer.padding_mode != "zeros":
        return None
    if isinstance(layer, nn.Embedding) and (layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse):
        return None
    return rule
