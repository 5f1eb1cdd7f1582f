"""Rows as tensors, by public rules alone: no value of a row in a tensor, an array or a frame can raise an error.

A list is read by torch, which takes the type from the values, or fails on one that is too large: give tensors or arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import narwhals as nw
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sabun.errors import DataError, ParameterError
from sabun.learning.features import typed_as_numbers
from sabun.records import open_unbounded

__all__ = ["Rows"]


@final
@dataclass(frozen=True, kw_only=True)
class Rows:
    """Inputs with targets that a module can read.

    Guarantee: each row is changed, or left out, by a rule that looks at that row alone. A row that is left out contributes
    nothing to any step, which is the same as a share of zero.

    Args:
        x: Inputs, finite, within the bound.
        y: Targets.
        count: How many rows there were before some were left out.
    """

    x: Tensor
    y: Tensor
    count: int

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        module: nn.Module,
        loss: object,
        input_bound: float,
        tokens: int | None,
        device: torch.device,
    ) -> Self:
        """Tensors on the device: numbers cut to the bound, whole numbers to the tokens; rows that are not finite left out.

        Raises:
            DataError: X and y differ in length, have no rows' dimension, or hold something else than numbers.
            ParameterError: Whole-number inputs for a module with several embeddings, without `tokens`.
        """
        x, targets = _tensor("X", X), _tensor("y", y)
        if not x.dim() or not targets.dim() or len(x) != len(targets):
            raise DataError("X and y must have as many rows as each other; they do not.")
        x, targets = x.to(device), targets.to(device)
        # Looked at before anything is cut (the bound would make a number of infinity), taken out after everything is: on the
        # way every row has its place. Those behind a row that is left out move up, which changes whose coin is whose and
        # no coin's chance: the batches of a table with and without such a row are those of two tables that differ in a row.
        keep = _finite(x) & _finite(targets)
        if not x.dtype.is_floating_point and x.dtype != torch.bool and _reads_numbers(module):
            x = x.double()
        if x.dtype.is_floating_point:
            kind = next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), torch.float32)
            x = x if x.element_size() > 2 else x.float()  # numbers of 16 bits end below the bound
            x = x.clamp(-input_bound, input_bound).to(kind)  # in this order: 1e300 is no number of 32 bits any more
        elif x.dtype != torch.bool:
            most = _tokens(module, tokens)
            x = x if most is None else x.long().clamp(0, most - 1)
        if type(loss) is nn.CrossEntropyLoss and targets.dim() == 1:
            targets = _labels(targets)
        return cls(x=x[keep], y=targets[keep], count=len(targets))

    def fit_for(self, loss: object, shape: tuple[int, ...]) -> Self:
        """Leaves out rows whose target is no class, where the loss is cross entropy over an output of that shape."""
        if type(loss) is not nn.CrossEntropyLoss or self.y.dim() != 1 or len(shape) != 2:
            return self
        keep = (self.y >= 0) & (self.y < shape[1])
        return type(self)(x=self.x[keep], y=self.y[keep], count=self.count)


def _tensor(name: str, given: Any) -> Tensor:
    """What was given as a tensor; what it is decides by its type alone, but for lists, which torch reads by their values."""
    try:
        framed: Any = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
        plain = _array(framed) if isinstance(framed, nw.DataFrame | nw.Series) else given
    except nw.exceptions.NarwhalsError:  # its words would show what columns are called
        raise DataError(f"{name} must be a frame in which each column has a name of its own; it is not.") from None
    if name == "y" and isinstance(framed, nw.DataFrame) and plain is not None and plain.shape[1:] == (1,):
        plain = plain[:, 0]
    try:
        return torch.as_tensor(_laid_out(plain)).detach()
    except (TypeError, ValueError, RuntimeError):  # torch's own words may show what a list holds
        raise DataError(
            f"{name} must be numbers: a tensor, an array of numbers, or a frame or column typed as numbers; it is not. "
            "Write categories as numbers first, classes as whole numbers from 0 on."
        ) from None


def _laid_out(plain: Any) -> Any:
    """An array as torch takes it: row after row, in the machine's order of bytes, no longer than 64 bits."""
    if not isinstance(plain, np.ndarray) or plain.dtype.kind not in "biuf":
        return plain
    kind = np.dtype(np.float64) if plain.dtype.kind == "f" and plain.dtype.itemsize > 8 else plain.dtype.newbyteorder("=")
    return np.asarray(plain, dtype=kind, order="C")


def _array(framed: Any) -> NDArray[Any] | None:
    """A frame or a column in its one type of NumPy, else in 64-bit numbers, NaN for a cell without; None if not of numbers."""
    column, native = isinstance(framed, nw.Series), framed.to_native()
    kinds = {getattr(native, "dtype", None)} if column else set(getattr(native, "dtypes", ()))
    if len(kinds) == 1 and isinstance(kinds.pop(), np.dtype):
        return np.array(native)
    frame = framed.to_frame() if column else framed
    if not typed_as_numbers(frame):
        return None
    named = {f"column {place}": values for place, values in enumerate(frame.iter_columns())}  # names need not be text
    matrix = open_unbounded(nw.from_dict(named).to_native()).matrix()
    return matrix[:, 0] if column else matrix


def _reads_numbers(module: nn.Module) -> bool:
    """Whether what comes in is multiplied first, so that whole numbers are numbers like others and no places of a table."""
    first = next((layer for layer in module.modules() if next(layer.parameters(recurse=False), None) is not None), None)
    return isinstance(first, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)


def _finite(values: Tensor) -> Tensor:
    """Which rows hold nothing but finite numbers."""
    good = torch.isfinite(values)
    return good.flatten(1).all(1) if good.dim() > 1 else good


def _labels(targets: Tensor) -> Tensor:
    """Class numbers; -1, which is no class, for what is no whole number below a billion."""
    if not targets.dtype.is_floating_point:
        return targets.long()
    # Beyond 2**63 the conversion is whatever the processor does; 1e9 is far from it, and far above any number of classes.
    whole = (targets == targets.round()) & (targets.abs() < 1e9)
    return torch.where(whole, targets, -torch.ones_like(targets)).long()


def _tokens(module: nn.Module, tokens: int | None) -> int | None:
    """How many whole numbers there are: never more than the largest table has, or a row could make a lookup fail."""
    sizes = {layer.num_embeddings for layer in module.modules() if isinstance(layer, nn.Embedding | nn.EmbeddingBag)}
    if tokens is not None:
        return min(tokens, max(sizes, default=tokens))
    if len(sizes) > 1:
        raise ParameterError(
            f"tokens must be given for a module with embeddings of {len(sizes)} sizes; got None. "
            "Pass the number of different whole numbers in X."
        )
    return sizes.pop() if sizes else None
