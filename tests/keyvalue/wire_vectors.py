"""Writes the golden vectors that another implementation of the device can be tested against.

python tests/keyvalue/wire_vectors.py > src/sabun/keyvalue/wire-vectors.json
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from sabun.keyvalue.client import PROTOCOLS, Report, Terms, assigned_index, pack, report_id, to_json
from sabun.keyvalue.client.channel import joint_symbol, ternary_symbol
from sabun.keyvalue.client.probabilities import JOINT, PADDED, PER_KEY, SETS
from sabun.keyvalue.client.subsets import drawn_symbols, is_kept, symbols_of

CREDENTIAL = bytes(range(16))


def vector(name: str, terms: Terms) -> dict[str, Any]:
    identity = report_id(terms, CREDENTIAL)
    table = ("keep", "opposite", "each", "none_present", "none_absent")
    record: dict[str, Any] = {
        "name": name,
        "terms": terms.to_json(),
        "task_id": terms.task_id,
        "table": {entry: str(getattr(terms.table, entry)) for entry in table},
        "certified_epsilon": str(terms.certified),
        "credential": CREDENTIAL.hex(),
        "report_id": identity.hex(),
        "symbols": symbols(terms),
        "reports": reports(terms, identity),
    }
    if terms.protocol in SETS:
        record |= {"accept": str(terms.subset.accept), "width": terms.subset.width}
    return record | ({"assigned_index": assigned_index(terms, identity)} if terms.sampled else {})


def symbols(terms: Terms) -> list[dict[str, Any]]:
    table = terms.table
    if terms.sampled:
        words = (
            0,
            table.each - 1,
            table.each,
            2 * table.each,
            table.keep - 1,
            table.keep,
            table.keep + table.opposite,
            table.size - 1,
        )
        return [
            {"state": state, "word": str(word), "symbol": ternary_symbol(table, state, word)}
            for state in range(terms.signs + 1)
            for word in words
        ]
    if terms.protocol in SETS:
        return subsets(terms)
    if terms.protocol not in JOINT:
        return []
    words = (0, table.keep - 1, table.keep, table.keep + table.none_present, table.none_absent, table.size - 1)
    return [
        {"picked": picked, "word": str(word), "symbol": joint_symbol(table, len(terms.keys), picked, word)}
        for picked in (None, (0, 1), (2, 2))
        for word in words
    ]


def subsets(terms: Terms) -> list[dict[str, Any]]:
    """Drawn subsets with a word each: whether they are the report, and what they say then."""
    subset = terms.subset
    holdings: tuple[list[tuple[int, int]], ...] = ([], [(0, 1)], [(2, terms.signs), (4, 1)])
    tried = ([*range(subset.width)], [terms.signs * subset.keys - 1 - place for place in range(subset.width)])
    words = (0, subset.accept - 1, subset.accept, (1 << subset.bits) - 1)
    return [
        {
            "held": held,
            "own": sorted(symbols_of(subset, held)),
            "drawn": drawn,
            "word": str(word),
            "kept": is_kept(subset, symbols_of(subset, held), drawn, word),
            "symbol": drawn_symbols(subset, drawn),
        }
        for held in holdings
        for drawn in tried
        for word in words
    ]


def reports(terms: Terms, identity: bytes) -> list[dict[str, str]]:
    index = 2 if terms.sampled and terms.index_mode == "chosen" else None
    known: list[int | tuple[int, ...]] = [*range(terms.signs + 1)]
    if terms.protocol in PER_KEY:
        known = [(0, 1, 2, 1, 0) if terms.protocol == "pckv-ue" else (0, terms.signs, 0, 0, 0), (0, 0, 0, 0, 0)]
    elif terms.protocol in JOINT:
        known = [0, 1, 10]
    packed = [pack(terms, Report(round=0, report_id=identity, index=index, symbol=symbol)) for symbol in known]
    return [{"bytes": content.hex(), "json": to_json(terms, content)} for content in packed]


def all_vectors() -> dict[str, Any]:
    studies = []
    for protocol in PROTOCOLS:
        facts: dict[str, Any] = {
            "keys": ("YouTube", "LINE", "地図", "d", "e"),
            "epsilon": Fraction("1.5"),
            "protocol": protocol,
        }
        facts |= {"rounds": 3} if protocol == "privkvm" else {}
        facts |= {"padding_length": 2} if protocol in PADDED else {}
        studies.append(vector(protocol, Terms(**facts)))
    chosen = Terms(keys=tuple(range(5)), epsilon=Fraction(1, 3), protocol="kv3", index_mode="chosen", table_bits=32)
    studies.append(vector("kv3, chosen index, 32 bits", chosen))
    return {"format": "sabun-keyvalue-vectors-1", "studies": studies}


if __name__ == "__main__":
    print(json.dumps(all_vectors(), indent=1, ensure_ascii=True))
