"""Key-value data under local differential privacy: people's devices answer, nobody sees what they hold.

    Study ─► Client (on the device) ─► report ─► Tally ─► Estimates

Names are loaded on first use, so that a device can `import sabun.keyvalue.client` with nothing but the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.keyvalue.attacks import Attack
    from sabun.keyvalue.client import Client, Diary, Harmony, RandomizedResponse
    from sabun.keyvalue.em import Iteration
    from sabun.keyvalue.estimates import Estimates
    from sabun.keyvalue.population import People
    from sabun.keyvalue.robustness import index_uniformity_test, influence_bounds, report_size_test
    from sabun.keyvalue.study import Study
    from sabun.keyvalue.tally import Tally

_HOMES = {
    "Attack": "attacks",
    "Client": "client",
    "Diary": "client",
    "Estimates": "estimates",
    "Harmony": "client",
    "Iteration": "em",
    "People": "population",
    "RandomizedResponse": "client",
    "Study": "study",
    "Tally": "tally",
    "index_uniformity_test": "robustness",
    "influence_bounds": "robustness",
    "report_size_test": "robustness",
}

__all__ = [
    "Attack",
    "Client",
    "Diary",
    "Estimates",
    "Harmony",
    "Iteration",
    "People",
    "RandomizedResponse",
    "Study",
    "Tally",
    "index_uniformity_test",
    "influence_bounds",
    "report_size_test",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
