"""Writes the golden vectors that another implementation of the device can be tested against.

python tests/keyvalue/wire_vectors.py > src/sabun/keyvalue/wire-vectors.json
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sabun.keyvalue.client import (
    PROTOCOLS,
    Client,
    ClientError,
    Harmony,
    RandomizedResponse,
    Report,
    Terms,
    assigned_index,
    certified_epsilon,
    pack,
    report_id,
    table_for,
    to_json,
)
from sabun.keyvalue.client.bounds import decimal_text
from sabun.keyvalue.client.channel import joint_symbol, ternary_symbol, unary_symbols
from sabun.keyvalue.client.probabilities import JOINT, PADDED, PER_KEY, SETS, later_round, subsets_of
from sabun.keyvalue.client.subsets import drawn_symbols, is_kept, symbols_of

CREDENTIAL = bytes(range(16))
TABLE = ("keep", "opposite", "each", "none_present", "none_absent")
RANGES = ("-1:1", "0:1", "0:10", "-1/3:1/3", "0.1:0.3", "1/3:1000000", "-1e100:1e100", "1e-100:1e-99", "-5e-324:5e-324")
ODD_KEYS = ('"quoted"', "back\\slash", "line\nbreak", "tab\tbell\x07", "delete\x7f", "é地図", "😀", "/", "</script>")


def vector(name: str, terms: Terms) -> dict[str, Any]:
    identity = report_id(terms, CREDENTIAL)
    record: dict[str, Any] = {
        "name": name,
        "terms": terms.to_json(),
        "task_id": terms.task_id,
        "table": {entry: str(getattr(terms.table, entry)) for entry in TABLE},
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


def tables() -> Iterator[dict[str, Any]]:
    """Tables of many studies; null where the study must be refused."""
    epsilons = ("1/1000", "1/3", "1", "1.5", "5", "19.99", "700")
    for protocol, epsilon, keys, bits in itertools.product(PROTOCOLS, epsilons, (1, 7, 300), (16, 64)):
        facts: dict[str, Any] = {"protocol": protocol, "epsilon": Fraction(epsilon), "keys": keys, "bits": bits}
        facts["padding"] = min(keys, 3) if protocol in PADDED else 1
        facts["rounds"] = 4 if protocol == "privkvm" else 1
        yield {**facts, "epsilon": epsilon, **(found(**facts) or {"table": None})}


def found(**facts: Any) -> dict[str, Any] | None:
    try:
        table, certified = table_for(**facts), certified_epsilon(**facts)
    except ClientError:
        return None
    record: dict[str, Any] = {"table": [str(getattr(table, entry)) for entry in TABLE], "certified": decimal_text(certified)}
    if facts["protocol"] in SETS:
        subset = subsets_of(**{name: fact for name, fact in facts.items() if name != "rounds"})
        record |= {"accept": str(subset.accept), "width": subset.width}
    if facts["protocol"] == "privkvm":
        record["later"] = [str(entry) for entry in later_round(**{name: facts[name] for name in ("epsilon", "rounds", "bits")})]
    return record


def thresholds(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Where doubles stand in a range, out of 2**53: as they are (null: absent) and clipped."""
    for text in RANGES:
        low, high = map(Fraction, text.split(":"))
        client = Client(Terms(keys=("a",), epsilon=1, protocol="kv3", value_range=(low, high)))
        ends = [float(low), float(high)]
        beside = [math.nextafter(end, way) for end in ends for way in (-math.inf, math.inf)]
        within = [ends[0] + chance.random() * (ends[1] - ends[0]) for _ in range(24)]
        values = [*ends, *beside, *within, 0.0, -0.0, 1e300, -1e300, math.inf, -math.inf, math.nan]
        cases = [
            [bits(value), written(client._threshold(value, False)), written(client._threshold(value, True))] for value in values
        ]
        yield {"range": [decimal_text(low), decimal_text(high)], "ends": [bits(end) for end in ends], "cases": cases}


def doubles(chance: random.Random) -> Iterator[list[str]]:
    """Rationals with the nearest double, ties to even: halves between two doubles and a hair beside them are among them."""
    smallest = Fraction(5e-324)
    tiny = [Fraction(share) * smallest for share in ("0", "1/2", "1/2", "3/2", "7/3", "4503599627370495/2", "4503599627370496")]
    drawn = [
        Fraction(chance.getrandbits(chance.randint(1, 400)), chance.getrandbits(chance.randint(1, 400)) | 1) for _ in range(150)
    ]
    for number in [*tiny, *drawn, *halves(chance)]:
        signed = number * chance.choice((1, -1))
        yield [str(signed), bits(float(signed))]


def halves(chance: random.Random) -> Iterator[Fraction]:
    for _ in range(50):
        below = math.ldexp(1 + chance.random(), chance.randint(-1070, 330))
        middle = (Fraction(below) + Fraction(math.nextafter(below, math.inf))) / 2
        yield from (middle, middle * (1 + Fraction(1, 1 << 300)), middle * (1 - Fraction(1, 1 << 300)))


def unary(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Words of unary encoding with the symbols they give."""
    for size, keys in ((64, 9), (16, 4), (21, 6)):
        table = table_for(protocol="pckv-ue", epsilon=Fraction(1, 2), keys=keys, padding=2, bits=size)
        width = -(-size // 8)
        edges = (0, table.each - 1, table.each, 2 * table.each - 1, 2 * table.each, table.keep - 1, table.keep, table.size - 1)
        words = b"".join(chance.choice((*edges, chance.getrandbits(size))).to_bytes(width, "big") for _ in range(keys))
        for picked in (None, (0, 1), (keys - 1, 2)):
            symbols = unary_symbols(table, keys, picked, words)
            yield {"epsilon": "1/2", "keys": keys, "bits": size, "picked": picked, "words": words.hex(), "symbols": symbols}


def odd_studies() -> Iterator[dict[str, Any]]:
    """Studies with odd letters, numbers and dates: their canonical text, what it hashes to, whom it asks what."""
    seed = bytes(range(32))
    facts: tuple[dict[str, Any], ...] = (
        {"keys": ODD_KEYS, "protocol": "kv3"},
        {"keys": tuple(range(-3, 9)), "protocol": "privkv", "index_commitment": hashlib.sha256(seed).hexdigest()},
        {"keys": (2**53 + 1, 2**70, -(2**64)), "protocol": "privkv-tight", "min_batch": 2**62},
        {
            "keys": tuple(f"k{place}" for place in range(1000)),
            "protocol": "rr-f",
            "value_range": (Fraction(1, 3), Fraction(10) ** 30),
        },
        {"keys": ("a", "b", "c"), "protocol": "kv3", "value_range": (Fraction(-1, 10**40), Fraction(1, 10**41)), "rounds": 9},
    )
    for fact in facts:
        study = Terms(epsilon=Fraction("0.7"), typical_frequency=Fraction(1, 3), **fact)
        own = seed if study.index_commitment else b""
        asked = []
        for place in range(8):
            credential = hashlib.sha256(bytes([place])).digest()
            identity = report_id(study, credential)
            asked.append([credential.hex(), identity.hex(), assigned_index(study, identity, own)])
        ends = [bits(float(end)) for end in study.value_range]
        yield {"terms": study.to_json(), "task_id": study.task_id, "ends": ends, "seed": own.hex(), "asked": asked}


def classics() -> dict[str, Any]:
    """Randomized response and Harmony: what others and the sign get out of 2**64."""
    responses = [
        {
            "categories": size,
            "epsilon": epsilon,
            "each": str(RandomizedResponse(categories=words(size), epsilon=Fraction(epsilon)).each),
        }
        for size in (2, 7, 500)
        for epsilon in ("0.1", "1", "7.5")
    ]
    harmony = [{"epsilon": epsilon, "keep": str(Harmony(epsilon=Fraction(epsilon)).keep)} for epsilon in ("0.1", "1", "7.5")]
    return {"responses": responses, "harmony": harmony}


def words(size: int) -> tuple[str, ...]:
    return tuple(map(str, range(size)))


def bits(value: float) -> str:
    return struct.pack(">d", value).hex()


def written(threshold: int | None) -> str | None:
    return None if threshold is None else str(threshold)


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
    chance = random.Random(20_000)
    return {"format": "sabun-keyvalue-vectors-1", "studies": studies} | {
        "tables": list(tables()),
        "thresholds": list(thresholds(chance)),
        "doubles": list(doubles(chance)),
        "unary": list(unary(chance)),
        "odd_studies": list(odd_studies()),
        "classics": classics(),
    }


def text() -> str:
    """The file: studies spread over lines, to be read; of the long lists one entry per line."""
    vectors = all_vectors()
    first = {name: vectors.pop(name) for name in ("format", "studies")}
    spread = json.dumps(first, indent=1).removesuffix("\n}")
    classic = vectors.pop("classics")
    for name, entries in vectors.items():
        spread += f',\n "{name}": [\n' + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n ]"
    return spread + f',\n "classics": {json.dumps(classic)}\n}}\n'


if __name__ == "__main__":
    print(text(), end="")
