"""Both READMEs say the same, and each number in them is one that was measured and committed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
JAPANESE = (ROOT / "README.ja.md").read_text(encoding="utf-8")


def test_every_ratio_comes_from_a_kept_run_and_both_have_the_same() -> None:
    row = r"\| \*\*<!-- figure: (\S+) -->[\d.,]+<!-- / -->×\*\* \|"
    assert re.findall(row, ENGLISH) == re.findall(row, JAPANESE)
    for text in (ENGLISH, JAPANESE):
        assert len(re.findall(row, text)) == text.count("×** |") >= 6


def test_both_say_when_and_where_it_was_measured() -> None:
    assert "measured <!-- figure: when -->" in ENGLISH
    assert "<!-- figure: when.ja -->" in JAPANESE


@pytest.mark.parametrize(
    "words", ["make demo ", "source .venv/bin/activate", "sabun schema check", "`OutlierCount`", "`tally`"]
)
def test_both_tell_how_to_begin(words: str) -> None:
    assert words in ENGLISH
    assert words in JAPANESE


def test_both_say_on_the_first_screen_that_nobody_outside_has_audited_it() -> None:
    assert "alpha version, and nobody outside the project has audited it" in ENGLISH.partition("\n## ")[0]
    assert "アルファ版で、外部の監査は受けていません" in JAPANESE.partition("\n## ")[0]


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
        # A page that is there in Japanese too is the same page.
        links = {link.replace(".ja.md", ".md") for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README")}
        return text.count("\n## "), code, links

    assert parts(ENGLISH) == parts(JAPANESE)
