"""The Kotlin client, compiled and held to the golden vectors and to the law of its reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from keyvalue.client.test_law import EPSILON, KEYS, PADDING, WRONG, enough, law_of, refused
from sabun.keyvalue.client import Report, Terms, pack, unpack

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "clients/kotlin"
COMPILER = os.environ.get("SABUN_KOTLINC") or shutil.which("kotlinc")

pytestmark = [
    pytest.mark.skipif(COMPILER is None or shutil.which("java") is None, reason="no Kotlin compiler or no Java is at hand"),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the Kotlin client is not part of this archive"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    jar = tmp_path_factory.mktemp("kotlin") / "sabun.jar"
    sources = [*FOLDER.glob("src/*.kt"), *FOLDER.glob("test/*.kt")]
    subprocess.run([str(COMPILER), *map(str, sources), "-include-runtime", "-d", str(jar)], check=True, capture_output=True)
    return ["java", "-jar", str(jar)]


def test_the_golden_vectors(program: list[str]) -> None:
    vectors = ROOT / "src/sabun/keyvalue/wire-vectors.json"
    done = subprocess.run([*program, str(vectors)], capture_output=True, text=True, check=False)
    assert done.stdout.endswith(" checks passed, 0 failed\n"), done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 2000


def test_reports_follow_their_law_and_no_law_whose_epsilon_is_off_by_30_per_cent(program: list[str]) -> None:
    """A right law is refused once in ten million runs, a wrong one passes less than once in a million."""
    cases = []
    for protocol in ("pckv-ue", "pckv-grr", "set"):
        law, *wrong = (law_of(protocol, factor * EPSILON, {"a": 0.4}, "a") for factor in (1, *WRONG))
        terms = Terms(keys=KEYS, epsilon=Fraction(2), protocol=protocol, padding_length=PADDING)
        cases.append((terms, law, wrong, enough(law, wrong)))
    asked = json.dumps([{"terms": terms.to_json(), "n": n} for terms, *_, n in cases])
    done = subprocess.run([*program, "draw", asked], capture_output=True, text=True, check=True)
    for line, (terms, law, wrong, n) in zip(done.stdout.splitlines(), cases, strict=True):
        empty = pack(
            terms, Report(round=0, report_id=bytes(16), index=None, symbol=0 if terms.protocol == "pckv-grr" else (0, 0))
        )
        counts = {unpack(terms, empty[:37] + bytes.fromhex(said)).symbol: times for said, times in json.loads(line).items()}
        found = Counter(counts)
        assert sum(found.values()) == n
        assert not refused(found, law)
        assert all(refused(found, other) for other in wrong)
