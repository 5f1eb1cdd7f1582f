from __future__ import annotations

import base64
import math
from fractions import Fraction

import numpy as np
import pytest

from reports.html_checks import Page
from reports.report_samples import EVIL
from sabun.reports.reproductions import Listed, reproduction_index, reproduction_page
from sabun.reproduction import Figure, Reproduction, Table
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


def test_the_index_lists_the_papers() -> None:
    entry = Listed(room="r", paper=EVIL, summary=EVIL, page="r.html", time="2026-01-31T12:00:00Z", quick=False)
    page = Page(reproduction_index([entry]))
    assert page.problems == []
    assert page.links == ["r.html"]
    assert "full version" in page.text
