"""Pictures of matplotlib as text."""

from __future__ import annotations

import io
import warnings
from typing import Any

__all__ = ["svg_text"]


def svg_text(figure: Any) -> str:
    """A figure as SVG, the same for the same figure.

    Its texts stay texts, which the reader's own fonts show: that matplotlib has no sign for some of them is nobody's concern.
    """
    text = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
