"""Which torch modules are trained by which path, told from their structure alone, never by trying them out on rows.

A chain is a (nested) `nn.Sequential` of layers whose code is known to treat each example by itself. Exact types only: a
subclass, a hook, a parametrization or a forward method put on an instance may compute anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy

from sabun.errors import ParameterError
from sabun.learning.torch_modules.layers import rule_for

__all__ = ["Loss", "chain", "check_dimensions", "last_of_chain", "refuse", "rounds_by_row", "why_written_out"]

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Outputs and targets to one loss for each example."""

_ELEMENTWISE: tuple[type[nn.Module], ...] = (
    nn.Identity,
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.LogSigmoid,
    nn.Hardtanh,
    nn.Hardswish,
    nn.Hardsigmoid,
)
_EXACT = {nn.Identity, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Hardtanh}
"""Elementwise functions with at most one rounding: vector code and scalar code give the same bits."""
_POOLS: dict[type[nn.Module], int] = {
    nn.AvgPool1d: 3,
    nn.MaxPool1d: 3,
    nn.AdaptiveAvgPool1d: 3,
    nn.AdaptiveMaxPool1d: 3,
    nn.AvgPool2d: 4,
    nn.MaxPool2d: 4,
    nn.AdaptiveAvgPool2d: 4,
    nn.AdaptiveMaxPool2d: 4,
}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)


def chain(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers in the order in which they run, with their names; containers are taken apart."""
    for name, layer in module.named_modules(remove_duplicate=False):
        if type(layer) is not nn.Sequential:
            yield name, layer


def last_of_chain(module: nn.Module) -> nn.Module | None:
    """The layer that decides how many numbers the module gives: functions of each number behind it do not."""
    return next((layer for _, layer in reversed(list(chain(module))) if type(layer) not in _ELEMENTWISE), None)


def why_written_out(module: nn.Module, loss: Any) -> str | None:
    """Why the module is no chain of known layers, in a few words; None when it is one.

    Guarantee: reads types, settings and identities of layers and parameters; no row, no weight.
    """
    if type(loss) is not nn.CrossEntropyLoss or loss.reduction != "none" or _touched(loss):
        return "the loss is not the built-in cross entropy"
    if any(getattr(torch_module, name, None) for name in _GLOBAL_HOOKS):
        return "a global hook is registered"
    for name, layer in module.named_modules(remove_duplicate=False):
        if type(layer) is nn.Sequential:
            if _touched(layer) or layer._parameters or layer._buffers:
                return f"the container at {name!r} carries hooks or tensors of its own"
        elif not _known(layer):
            return f"{type(layer).__name__} at {name!r} is not among the layers with a proof"
    owned = [parameter for _, layer in chain(module) for parameter in layer._parameters.values() if parameter is not None]
    if len({id(parameter) for parameter in owned}) != len(owned):
        return "a layer is used more than once or shares its weights"
    if any(type(p) is not nn.Parameter or p.dtype not in (torch.float32, torch.float64) for p in owned):
        return "a parameter is of an unusual type"
    if len({p.untyped_storage().data_ptr() for p in owned}) != len(owned):
        return "parameters share memory"
    return None


def rounds_by_row(module: nn.Module, loss: Any, *, dimensions: int) -> bool:
    """Whether torch was seen to compute a row of every layer the same wherever it stands; all that is looked at is public.

    Not so for smooth functions and norms, whose last numbers in a block are computed by other code; in doubles for anything
    but linear layers on vectors; nor on a GPU for layers whose kernels choose or add up in no fixed order.

    Args:
        module: What is trained.
        loss: One number for each example.
        dimensions: Of the inputs, with the batch's.
    """
    if why_written_out(module, loss) is not None:
        return False
    parameter = next(module.parameters())
    sure: set[type[nn.Module]] = {*_EXACT, nn.Linear, nn.Flatten}
    if parameter.dtype == torch.float64:
        return dimensions == 2 and all(type(layer) in sure for _, layer in chain(module))
    sure.add(nn.Unflatten)
    if parameter.device.type == "cpu":
        sure |= {nn.Conv2d, nn.Embedding, *_POOLS}
    return all(type(layer) in sure for _, layer in chain(module))


def _touched(layer: nn.Module) -> bool:
    """Whether hooks, compiled code, or methods on the instance, change what the type says the layer does."""
    if any(getattr(layer, name) for name in _HOOKS) or layer._compiled_call_impl is not None:
        return True
    return any(callable(value) and hasattr(type(layer), name) for name, value in vars(layer).items())


def _known(layer: nn.Module) -> bool:
    """Whether the layer's exact type is proved to treat each example by itself under these settings."""
    kind = type(layer)
    if layer._buffers or layer._modules or _touched(layer):
        return False
    if rule_for(layer) is not None:
        return set(layer._parameters) == ({"weight"} if kind is nn.Embedding else {"weight", "bias"})
    if layer._parameters:
        return False
    settings: Any = layer
    if kind is nn.Flatten:
        return bool(settings.start_dim >= 1)
    if kind is nn.Unflatten:
        return isinstance(settings.dim, int) and settings.dim >= 1
    if kind in _POOLS:
        return not getattr(layer, "return_indices", False)
    return kind in _ELEMENTWISE and not getattr(layer, "inplace", False)


def check_dimensions(layer: nn.Module, shape: tuple[int, ...]) -> None:
    """Refuses an input that the layer would read as one example instead of a batch; shapes are public.

    Raises:
        ParameterError: The input has too few dimensions to hold a batch.
    """
    least, settings = 1, cast("Any", layer)
    if type(layer) in (nn.Linear, nn.GroupNorm, nn.Flatten, nn.Unflatten):
        least = 2
    elif type(layer) is nn.LayerNorm:
        least = 1 + len(settings.normalized_shape)
    fixed = 4 if type(layer) is nn.Conv2d else _POOLS.get(type(layer))
    if len(shape) < least or (fixed is not None and len(shape) != fixed):
        raise ParameterError(
            f"the input of {type(layer).__name__} must have {fixed or f'at least {least}'} dimensions, examples first; "
            f"got {len(shape)}. Reshape X."
        )


def refuse(module: nn.Module) -> None:
    """Refuses modules that keep statistics of rows, write into their weights, share or lack them, or have complex ones.

    Raises:
        ParameterError: With the layer's type and place.
    """
    for name, layer in module.named_modules():
        kind = type(layer).__name__
        tensors = (*layer._parameters.values(), *layer._buffers.values())
        if isinstance(layer, LazyModuleMixin) or any(is_lazy(tensor) for tensor in tensors):
            raise ParameterError(
                f"module must be fully built; got {kind} at {name!r}, which takes its sizes from the first rows. "
                "Use the layer with its sizes given."
            )
        if isinstance(layer, _NormBase):
            raise ParameterError(
                f"module must treat each example by itself; got {kind} at {name!r}, which mixes the examples "
                "of a batch or keeps their statistics. Use nn.GroupNorm or nn.LayerNorm instead."
            )
        if isinstance(layer, nn.Embedding | nn.EmbeddingBag) and layer.max_norm is not None:
            raise ParameterError(
                f"max_norm must be None; {kind} at {name!r} rewrites the rows of its table that are looked up, "
                "without noise. Leave max_norm out."
            )
    seen: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.is_complex():
            raise ParameterError(f"parameters must be real numbers; got {parameter.dtype} at {name!r}. Use two real parts.")
        first = seen.setdefault(parameter.data_ptr(), name) if parameter.numel() else name
        if first != name:
            raise ParameterError(f"parameters must not share memory; got {first!r} with {name!r}. Give each layer its own.")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ParameterError("module must have parameters that require gradients; got none.")
