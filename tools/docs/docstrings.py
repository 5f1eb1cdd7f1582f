"""How this project's docstrings are read: doctests and drawings are shown as code, constants are shown at all."""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

__all__ = ["Reading"]

_HEADING = re.compile(r"^(\s*)Example:\s*$", re.MULTILINE)
_DRAWN = re.compile(r"^(?=\S).*─►.*$", re.MULTILINE)


class Reading(Extension):
    """Prepares each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute once its source was read."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = _DRAWN.sub(r"    \g<0>", _HEADING.sub(r"\1Examples:", obj.docstring.value))
        elif obj.is_attribute and obj.parent is not None and obj.parent.is_module and not obj.name.startswith("_"):
            obj.docstring = Docstring("A constant." if obj.name.isupper() else "A type.", parent=obj)
