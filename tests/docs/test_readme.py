"""Both READMEs say the same, and each number in them is one that was measured and committed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.page import _short  # noqa: E402

ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
JAPANESE = (ROOT / "README.ja.md").read_text(encoding="utf-8")

# The rows of "How well it works": room, figure, peer.
ROWS = [
    ("outliers", "private count, dense, N = 100,000, d = 8", "BLAS float64"),
    ("outliers", "noise on ionosphere, epsilon = 1", "Theorem 2 Gaussian"),
    ("density", "section 5, mean query, ε = 1", "Ji–Elkan"),
    ("regression", "narrow, 10 x 1000 rows, epsilon 1: relative error", "constrained + mirror"),
    ("noise", "discrete gaussian, scale 1000, 100000 values", "opendp"),
    (
        "keyvalue",
        "MSE of means, gaussian, n = 100,000, equal certified epsilon 2 (PrivKV's nominal: 3.013)",
        "PrivKV + EM",
    ),
    ("keyvalue", "MSE of means, gaussian, n = 100,000, equal nominal epsilon 2 (PrivKV's certified: 1.38)", "PrivKV + EM"),
]


def record(room: str) -> dict[str, object]:
    file = ROOT / "docs" / "results" / "benchmarks" / f"{room}.json"
    found: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("readme", [ENGLISH, JAPANESE], ids=["english", "japanese"])
def test_the_ratios_are_those_of_the_committed_runs(readme: str) -> None:
    measured = []
    for room, name, peer in ROWS:
        figures = record(room)["figures"]
        assert isinstance(figures, list)
        (figure,) = [one for one in figures if one["name"] == name and peer in one["peer_name"]]
        measured.append(_short(figure["ratio"]))
    assert re.findall(r"\| \*\*([\d.,]+)×\*\* \|", readme) == measured


def test_the_date_and_the_machine_are_those_of_the_committed_runs() -> None:
    for room in {room for room, _, _ in ROWS}:
        place = record(room)["machine"]
        assert isinstance(place, dict)
        year, month, day = place["date"].split("-")
        cores = place["machine"].split(", ")[1]
        assert f"on {place['date']}, {cores} of an {place['processor']} machine" in ENGLISH
        japanese = f"{year} 年 {int(month)} 月 {int(day)} 日、{place['processor']} の {cores.split()[0]} コア"
        assert japanese in JAPANESE


@pytest.mark.parametrize(
    "words", ["make demo ", "source .venv/bin/activate", "sabun schema check", "`OutlierCount`", "`tally`"]
)
def test_both_tell_how_to_begin(words: str) -> None:
    assert words in ENGLISH
    assert words in JAPANESE


def test_both_say_on_the_first_screen_that_nobody_outside_has_audited_it() -> None:
    assert "alpha version, and nobody outside the project has audited it" in ENGLISH.partition("\n## ")[0]
    assert "アルファ版で、外部の監査は受けていません" in JAPANESE.partition("\n## ")[0]


def test_the_kept_cases_of_the_reviews_are_where_they_are_said_to_be() -> None:
    for pattern in ("test_*refutation*.py", "test_mended*.py"):
        for text in (ENGLISH, JAPANESE, (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")):
            assert f"`tests/*/{pattern}`" in text
        assert len(list((ROOT / "tests").glob(f"*/{pattern}"))) >= 5


def test_the_evidence_lists_every_proof_by_its_title() -> None:
    listed = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").partition("## All proofs\n")[2].partition("\n## ")[0]
    proofs = [*(ROOT / "src").rglob("*.proof.md"), *(ROOT / "examples").rglob("*.proof.md")]
    titled = {
        (
            proof.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").replace("`", ""),
            proof.relative_to(ROOT).as_posix(),
        )
        for proof in proofs
    }
    assert set(re.findall(r"\[([^\]]+)\]\(\.\./([^)]+)\)", listed)) == titled


def test_what_the_security_policy_says_of_a_release_is_so() -> None:
    from sabun import Guarantee
    from sabun.release import Provenance, Release

    origin = Provenance(kind="count", mechanism="discrete Laplace", parameters={"k": 1})
    made = json.loads(Release(value={"count": 1}, guarantee=Guarantee(epsilon=1), provenance=origin).to_json())["provenance"]
    assert "`provenance.software.sabun`" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert made["software"]["sabun"]
    assert {"kind", "mechanism", "parameters"} <= set(made)


def test_the_two_have_the_same_sections_commands_and_links() -> None:
    def parts(text: str) -> tuple[int, list[str], set[str]]:
        code = re.findall(r"```(?:console|text|python)\n.*?```", text, re.DOTALL)
        links = {link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README")}
        return text.count("\n## "), code, links

    assert parts(ENGLISH) == parts(JAPANESE)
