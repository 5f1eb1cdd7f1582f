"""Names that a package loads on first use, so that importing one part does not import them all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names live in the modules named beside them.

    Args:
        package: Whose names they are.
        homes: For each name a module of the package, or any module by its whole name (``sabun.…``).

    Example:
        >>> load, _ = lazily("sabun.privacy", {"plain": "amounts"})
        >>> load("plain").__name__
        'plain'
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name] if homes[name].startswith("sabun.") else f"{package}.{homes[name]}"
        found = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, found)  # the next look finds it without this function
        return found

    return load, lambda: sorted({*vars(sys.modules[package]), *homes})
