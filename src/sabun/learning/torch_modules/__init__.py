"""Any torch module trained privately; needs the extra `sabun[learning]`.

`ghost` and `loop` need nothing but torch and numpy; `trainer` joins them with the accountant, the ledger and the release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sabun.errors import MissingExtra

if TYPE_CHECKING:
    from sabun.learning.torch_modules.settings import Descent, Runtime
    from sabun.learning.torch_modules.trainer import TorchTrainer

__all__ = ["Descent", "Runtime", "TorchTrainer"]

_HOMES = {"Descent": "settings", "Runtime": "settings", "TorchTrainer": "trainer"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sabun.learning.torch_modules' has no attribute {name!r}")
    try:
        importlib.import_module("torch")
    except ImportError:
        raise MissingExtra(job="training a torch module", package="torch", extra="learning") from None
    return getattr(importlib.import_module(f"sabun.learning.torch_modules.{_HOMES[name]}"), name)
