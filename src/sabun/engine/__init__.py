"""From pieces of a table to one exact statistic, wherever the pieces lie: in this process, in several, on Dask, on Spark.

    cut(source) ─► pieces ─► engine: each counted by the same recipe ─► each piece once ─► the state, in the owner's hands

Workers get public settings and a piece; they hold no coin, no ledger, no key. The owner's process merges, charges and draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.engine.engines import Engine, engine_named
    from sabun.engine.pieces import Piece, cut
    from sabun.engine.spread_table import Spread, spread
    from sabun.engine.statistic import Elsewhere, Part, Statistic, probe, state_of

__all__ = [
    "Elsewhere",
    "Engine",
    "Part",
    "Piece",
    "Spread",
    "Statistic",
    "cut",
    "engine_named",
    "probe",
    "spread",
    "state_of",
]

_HOMES = {
    "Elsewhere": "statistic",
    "Engine": "engines",
    "Part": "statistic",
    "Piece": "pieces",
    "Spread": "spread_table",
    "Statistic": "statistic",
    "cut": "pieces",
    "engine_named": "engines",
    "probe": "statistic",
    "spread": "spread_table",
    "state_of": "statistic",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
