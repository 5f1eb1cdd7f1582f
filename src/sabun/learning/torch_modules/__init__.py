"""Any torch module trained privately; needs the extra `sabun[learning]`.

`ghost` and `loop` need nothing but torch and numpy; `trainer` joins them with the accountant, the ledger and the release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sabun.errors import MissingExtra

if TYPE_CHECKING:
    from sabun.learning.torch_modules.trainer import TorchTrainer

__all__ = ["TorchTrainer"]


def __getattr__(name: str) -> Any:
    if name != "TorchTrainer":
        raise AttributeError(f"module 'sabun.learning.torch_modules' has no attribute {name!r}")
    try:
        importlib.import_module("torch")
    except ImportError:
        raise MissingExtra(job="training a torch module", package="torch", extra="learning") from None
    return importlib.import_module("sabun.learning.torch_modules.trainer").TorchTrainer
