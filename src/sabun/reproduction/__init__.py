"""The papers' tables and figures, regenerated beside what the papers print.

One file per paper, each with `reproduce(quick, progress)`; `sabun reproduce` runs them and writes CSV, SVG and one page.
"""

from sabun.reproduction.shape import Figure, Reproduction, Table, drawn

__all__ = ["Figure", "Reproduction", "Table", "drawn"]
