"""Sabun: five research methods of differential privacy as software people can rely on.

One guarantee object, one durable budget ledger, one release format; the five jobs live in `sabun.outliers`, `sabun.density`,
`sabun.regression`, `sabun.keyvalue` and `sabun.learning`.

Names are loaded on first use, so that a device can `import sabun.keyvalue.client` with nothing but the standard library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sabun import errors
    from sabun.ledger import Ledger
    from sabun.privacy import Guarantee
    from sabun.records import Column, Schema
    from sabun.release import Release

    __version__: str

__all__ = ["Column", "Guarantee", "Ledger", "Release", "Schema", "__version__", "errors"]

_ROOMS = {"Column": "records", "Guarantee": "privacy", "Ledger": "ledger", "Release": "release", "Schema": "records"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("sabun")
    if name == "errors":
        return importlib.import_module("sabun.errors")
    if name in _ROOMS:
        return getattr(importlib.import_module(f"sabun.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'sabun' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
