"""The files that pages load: style and scripts, from the installed package and from nowhere else."""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import final

__all__ = ["Assets"]

_KINDS = {".css": "text/css", ".js": "text/javascript"}


@final
class Assets:
    """Files of a package's folder `assets` and of this one's, by name; `style.css` is that of reports with ours after it.

    Args:
        package: Whose.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def found(self, name: str) -> tuple[bytes, str] | None:
        """A file and its media type; None where there is none of that name."""
        return _found(self._package, name)


@cache
def _known(package: str) -> dict[str, Traversable]:
    """Every file by its path: what a request names is looked up here and never on the disk."""
    return {name: file for part in ("sabun.web", package) for name, file in _files(resources.files(part) / "assets", "")}


def _files(folder: Traversable, above: str) -> list[tuple[str, Traversable]]:
    found = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _files(one, f"{above}{one.name}/")
        elif _kind(one.name) is not None:
            found.append((above + one.name, one))
    return found


def _kind(name: str) -> str | None:
    return next((kind for ending, kind in _KINDS.items() if name.endswith(ending)), None)


def _found(package: str, name: str) -> tuple[bytes, str] | None:
    kind, file = _kind(name), _known(package).get(name)
    if kind is None or file is None:
        return None
    before = (resources.files("sabun.reports") / "templates" / "style.css").read_bytes() if name == "style.css" else b""
    return before + file.read_bytes(), kind
