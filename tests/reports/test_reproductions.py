from __future__ import annotations

import base64
import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from reports.html_checks import Page
from reports.report_samples import EVIL
from sabun.reports.reproductions import Listed, reproduction_index, reproduction_page
from sabun.reproduction import Claim, Figure, Reproduction, Table
from sabun.telling.harness import Run

RUN = Run(time="2026-01-31T12:00:00Z", seconds=1.234, quick=True)


def page_of(*rows: tuple[object, ...], **changes: object) -> Page:
    table = Table(name="t", title=EVIL, columns=tuple("abcdefgh"[: len(rows[0])]), rows=rows, note=EVIL)
    made: dict[str, object] = {"room": "r", "paper": EVIL, "summary": EVIL, "errata": (EVIL,), "settings": {EVIL: EVIL}}
    made |= {"tables": (table,), "figures": (Figure(name="f", title=EVIL, svg=f"<svg>{EVIL}</svg>", note=EVIL),)}
    return Page(reproduction_page(Reproduction(**(made | changes)), RUN))  # type: ignore[arg-type]


def test_texts_and_pictures_cannot_act_on_the_page() -> None:
    page = page_of((EVIL, 1))
    assert page.problems == []
    assert "script" not in page.tags


def test_the_whole_picture_is_in_the_page() -> None:
    svg = "<svg>" + "<g/>" * 10_000 + "</svg>"
    page = page_of((1,), figures=(Figure(name="f", title="t", svg=svg),))
    [address] = [link for link in page.links if link.startswith("data:")]
    assert base64.b64decode(address.partition(",")[2]).decode() == svg


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (1 / 3, "0.3333"),
        (12345, "12,345"),
        (np.float64(0.25), "0.25"),
        (np.float32(0.5), "0.5"),
        (np.int64(7), "7"),
        (math.nan, "–"),
        (True, "yes"),
        ("word", "word"),
        (Fraction(1, 2), "1/2"),
    ],
)
def test_cells_are_written_for_people(cell: object, words: str) -> None:
    assert f" a {words} " in page_of((cell,)).text


def test_settings_of_any_kind_are_shown() -> None:
    text = page_of((1,), settings={"seeds": [1, 2], "other": object, "none": None}).text
    assert "seeds 1, 2" in text
    assert "none none" in text


CLAIMS = (
    Claim(text="Method A errs less than `B`.", where="section 5, figure 3", verdict="holds", found="0.14 against 0.21"),
    Claim(text=EVIL, where=EVIL, verdict="holds in part", found=EVIL),
    Claim(text="It is private.", where="Theorem 2", verdict="does not hold", found="delta is at least 2e-5"),
)


def test_a_page_tells_claims_figures_errata_our_default_and_the_settings_in_this_order() -> None:
    page = page_of((1,), claims=CLAIMS, default="Sabun adds noise once.")
    assert page.problems == []
    headings = [words for level, words in page.headings if level == 2]
    assert headings == [
        "What the paper claims, and what we found",
        "In short",
        "Figures, as in the paper and ours",
        "Tables, as in the paper and ours",
        "What is wrong in the paper",
        "What Sabun does by default",
        "How it was run",
    ]
    assert "Sabun adds noise once." in page.text


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            ("✓ holds Method A errs less than B . (section 5, figure 3) Found: 0.14", "◐ holds in part", "✗ does not hold It"),
        ),
        ("ja", ("○ 成り立つ Method A errs less than B . (5 節、図 3) 結果： 0.14", "△ 一部成り立つ", "× 成り立たない It")),
    ],
)
def test_a_verdict_has_a_sign_and_words_not_a_colour_only(lang: str, words: tuple[str, ...]) -> None:
    made = Reproduction(room="r", paper="p", summary="s", tables=(), figures=(), errata=(), settings={}, claims=CLAIMS)
    page = Page(reproduction_page(made, RUN, lang=lang))
    assert page.problems == []
    assert [part for part in words if part not in page.text] == []
    assert (
        Page(reproduction_page(made, RUN, lang=lang)).headings[1][1]
        == {
            "en": "What the paper claims, and what we found",
            "ja": "論文の主張と、確かめた結果",
        }[lang]
    )


def test_a_paper_without_claims_has_no_section_for_them() -> None:
    assert page_of((1,)).headings[1] == (2, "In short")


def test_the_index_counts_how_the_claims_came_out() -> None:
    kept = tuple(dataclasses.asdict(claim) for claim in (*CLAIMS, CLAIMS[0]))
    entry = Listed(room="r", paper="p", summary="s", page="r.html", time="2026-01-31T12:00:00Z", quick=True, claims=kept)
    assert "✓ holds: 2 ◐ holds in part: 1 ✗ does not hold: 1" in Page(reproduction_index([entry])).text


def test_the_index_lists_the_papers() -> None:
    entry = Listed(room="r", paper=EVIL, summary=EVIL, page="r.html", time="2026-01-31T12:00:00Z", quick=False)
    page = Page(reproduction_index([entry]))
    assert page.problems == []
    assert page.links == ["r.html"]
    assert "full version" in page.text
