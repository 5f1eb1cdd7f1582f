"""Draws docs/ideas.svg: the two laws an observer would have to tell apart.

python tools/docs/ideas_picture.py
"""

from __future__ import annotations

import math
from pathlib import Path

__all__ = ["drawn"]

EPSILON = 0.5
COUNTS = (42, 41)
COLOURS = ("#1f4e5f", "#d9814f")
FIRST, LAST = 32, 51
STEP, LEFT, BASE, TALL = 32, 50, 262, 190


def law(centre: int, outcome: int) -> float:
    """Probability that a count with discrete Laplace noise is released as this outcome."""
    ratio = math.exp(-EPSILON)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(outcome - centre)


def drawn() -> str:
    """The picture as SVG text; the same every time."""
    top = law(0, 0)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 330" font-family="sans-serif" font-size="13" role="img">',
        "<title>Two laws of the released count: with her record, and with another record in its place</title>",
        '<rect width="740" height="330" fill="#ffffff"/>',
    ]
    for place, outcome in enumerate(range(FIRST, LAST + 1)):
        for which, (count, colour) in enumerate(zip(COUNTS, COLOURS, strict=True)):
            height = TALL * law(count, outcome) / top
            x = LEFT + STEP * place + 11 * which
            parts.append(f'<rect x="{x}" y="{BASE - height:.1f}" width="10" height="{height:.1f}" fill="{colour}"/>')
        if outcome % 3 == 0:
            middle = LEFT + STEP * place + 10.5
            parts.append(f'<text x="{middle}" y="{BASE + 18}" text-anchor="middle" fill="#444444">{outcome}</text>')
    return "\n".join([*parts, *_words(top), "</svg>"]) + "\n"


def _words(top: float) -> list[str]:
    shown = 44
    x = LEFT + STEP * (shown - FIRST) + 21
    heights = [BASE - TALL * law(count, shown) / top for count in COUNTS]
    bound = f"{math.exp(EPSILON):.2f}"
    return [
        f'<line x1="{LEFT - 12}" y1="{BASE}" x2="{LEFT + STEP * 20}" y2="{BASE}" stroke="#444444"/>',
        f'<text x="{LEFT + STEP * 10}" y="{BASE + 42}" text-anchor="middle" fill="#222222">the count that is released</text>',
        f'<line x1="{x + 3}" y1="{heights[0]:.1f}" x2="{x + 3}" y2="{heights[1]:.1f}" stroke="#222222" stroke-width="2"/>',
        f'<text x="{x + 14}" y="{heights[0] - 22:.1f}" fill="#222222">For every outcome, one bar is</text>',
        f'<text x="{x + 14}" y="{heights[0] - 5:.1f}" fill="#222222">at most e^ε = {bound} times the other.</text>',
        f'<rect x="{LEFT}" y="24" width="12" height="12" fill="{COLOURS[0]}"/>',
        f'<text x="{LEFT + 20}" y="35" fill="#222222">with her record in the table (true count {COUNTS[0]})</text>',
        f'<rect x="{LEFT}" y="46" width="12" height="12" fill="{COLOURS[1]}"/>',
        f'<text x="{LEFT + 20}" y="57" fill="#222222">with another record in its place (true count {COUNTS[1]})</text>',
    ]


if __name__ == "__main__":
    (Path(__file__).resolve().parents[2] / "docs" / "ideas.svg").write_text(drawn(), encoding="utf-8")
