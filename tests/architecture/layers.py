"""Who may import whom, with the rooms found by their `room.py`; prints every import that goes upward or sideways.

python tests/architecture/layers.py FOLDER     FOLDER holds the package `sabun`
"""

from __future__ import annotations

import sys
from pathlib import Path

import grimp

ABOVE = [["cli"], ["desk", "service"], ["web"], ["reports", "audit", "reproduction"]]
BELOW = [["datasets"], ["asking", "telling"], ["engine"], ["release", "records"], ["ledger"], ["privacy"]]
BASE = ["checks", "foreign", "notebook"]
FLOOR = ["compiled", "errors", "lazy", "mixtures"]
OUTSIDE = {"__main__"}
FORBIDDEN = {
    "records": ("ledger", "privacy"),
    "engine": ("privacy.noise",),
    "keyvalue.client": ("errors", *BASE, *(name for layer in BELOW for name in layer)),
}
"""What the order of the layers would allow and the house does not: the door in knows no budget, the engine tosses no coin, the
device carries the standard library alone."""


def layers(package: Path) -> list[list[str]]:
    """The floors of the house, top first; siblings on one floor do not know each other."""
    rooms = sorted(file.parent.name for file in package.glob("*/room.py"))
    return [*ABOVE, rooms, *BELOW, BASE, FLOOR]


def violations(package: Path) -> list[str]:
    """Every import that breaks the order, as `importer -> imported`, and every part that stands on no floor."""
    graph = grimp.build_graph("sabun", cache_dir=None)
    here = {name.split(".")[1] for name in graph.find_children("sabun")}
    floors = layers(package)
    found = [f"{name} stands on no floor" for name in sorted(here - {name for floor in floors for name in floor} - OUTSIDE)]
    order = [grimp.Layer(*(name for name in floor if name in here)) for floor in floors if here & set(floor)]
    for broken in graph.find_illegal_dependencies_for_layers(order, containers={"sabun"}):
        found += [f"{route} (for {broken.importer} -> {broken.imported})" for route in _first_steps(broken)]
    for importer, names in FORBIDDEN.items():
        found += [
            f"sabun.{importer} -> sabun.{imported}"
            for imported in names
            if f"sabun.{importer}" in graph.modules
            and f"sabun.{imported}" in graph.modules
            and graph.chain_exists(importer=f"sabun.{importer}", imported=f"sabun.{imported}", as_packages=True)
        ]
    return found


def _first_steps(broken: grimp.PackageDependency) -> list[str]:
    return sorted(f"{head} -> {(*route.middle, *route.tails)[0]}" for route in broken.routes for head in route.heads)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    print("\n".join(violations(Path(sys.argv[1]) / "sabun")))
