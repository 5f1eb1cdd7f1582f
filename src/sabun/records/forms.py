"""How the text of a file is written: encoding, what parts its cells, how it writes numbers. Declared, never guessed."""

from __future__ import annotations

import array
import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

from sabun import checks
from sabun.errors import ParameterError

__all__ = ["PLAIN", "FileFormat"]

_PARTS = ("encoding", "separator", "decimal", "thousands", "sheet")
_SPOKEN = {"tab": "\t", "\\t": "\t", "space": " ", "semicolon": ";", "comma": ",", "pipe": "|"}
_DECIMALS = (".", ",", "٫")
_THOUSANDS = ("", ",", ".", " ", "'", "’", "_", "\u00a0", "\u202f", "٬")


@final
@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How a table's texts are to be read.

    Args:
        encoding: The text's encoding, as Python names it: ``utf-8``, ``cp932`` (Shift-JIS as Windows writes it), ``utf-16``, …
        separator: What stands between two cells of a line; ``tab`` is understood.
        decimal: What parts the whole from the fraction of a number: ``.`` or ``,``.
        thousands: What parts groups of three digits; nothing when empty.
        sheet: The sheet of a workbook; its first one when empty.
        said: Which of these somebody said, where a schema may say the others; None for all of them.

    Example:
        >>> FileFormat(encoding="Shift-JIS", separator="tab").separator
        '\\t'
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    sheet: str = ""
    said: frozenset[str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in self.parts.items():
            checks.require(isinstance(value, str), "text", **{name: value})
        object.__setattr__(self, "separator", _SPOKEN.get(self.separator, self.separator))
        object.__setattr__(self, "thousands", _SPOKEN.get(self.thousands, self.thousands))
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        good = len(self.separator) == 1 and self.separator.isascii() and self.separator not in "\"'\r\n\0"
        checks.require(good, "one character, such as ; or tab", separator=self.separator)
        checks.one_of(_DECIMALS, decimal=self.decimal)
        checks.one_of(_THOUSANDS, thousands=self.thousands)
        checks.require(self.thousands != self.decimal, "another sign than the decimal one", thousands=self.thousands)

    @property
    def parts(self) -> dict[str, str]:
        """Everything that a file says about itself, by name."""
        return {name: getattr(self, name) for name in _PARTS}

    @property
    def own(self) -> dict[str, str]:
        """Those of them that somebody said."""
        return {name: value for name, value in self.parts.items() if self.said is None or name in self.said}

    def over(self, declared: FileFormat) -> FileFormat:
        """What was said here, and for the rest what is declared."""
        return replace(declared, said=self.said, **self.own)

    @property
    def plain_numbers(self) -> bool:
        """Whether numbers are written as in programs: 1234.5."""
        return self.decimal == "." and not self.thousands

    @property
    def number(self) -> str:
        """A regular expression for a number as it is written here; a sign between digits must part groups of three."""
        point, group = re.escape(self.decimal), re.escape(self.thousands)
        whole = f"[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}})+" if self.thousands else "[0-9]+"
        return rf"^[+-]?((?:{whole})({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?$"

    def to_dict(self) -> dict[str, Any]:
        """What differs from a plain file, as plain JSON values."""
        return {name: value for name, value in self.parts.items() if value != getattr(PLAIN, name)}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote."""
        checks.require(isinstance(mapping, Mapping), "a JSON object", file=mapping)
        unknown = sorted(str(key) for key in mapping if key not in _PARTS)
        checks.require(not unknown, f"some of {', '.join(_PARTS)}", **{"keys of file": unknown})
        return cls(**mapping)


def _encoding(name: str) -> str:
    """The one name of an encoding.

    Shift-JIS is read as what is nearly always meant by it: Windows' cp932, which has the signs ①, ㈱ and the wave dash.
    """
    try:
        found = codecs.lookup(name)
        found.decode(array.array("B"))  # what is no encoding of files (punycode) cannot even do that
    except (LookupError, ValueError, AttributeError, TypeError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ParameterError(f"encoding must be one that Python knows, such as utf-8, cp932 or utf-16; got {name!r:.40}.")
    return {"shift_jis": "cp932", "utf-8-sig": "utf-8"}.get(found.name, found.name)


PLAIN = FileFormat()
"""UTF-8, commas, numbers as in programs."""
