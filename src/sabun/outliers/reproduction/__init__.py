"""The outlier paper, run again: its examples, its theorems on small worlds, its experiment; beside them the sound method."""

from __future__ import annotations

from sabun.outliers.reproduction.claims import DEFAULT, claims, errata, facts_of, summary
from sabun.outliers.reproduction.examples import example_table, figures
from sabun.outliers.reproduction.items import ITEMS
from sabun.outliers.reproduction.samples import INJECTED, NAMES, Best, K, Sample, accuracy, best_radius, sample_of
from sabun.outliers.reproduction.section_five import (
    DELTA,
    EPSILONS,
    accuracy_figure,
    cover_table,
    floor_table,
    noise_figure,
    noise_of,
    noise_table,
    radii_of,
    radius_table,
    steps_of,
    steps_table,
    table_one,
)
from sabun.telling.reproduction import Progress, Reproduction

__all__ = ["EPSILONS", "ITEMS", "Best", "Sample", "accuracy", "best_radius", "reproduce", "sample_of"]

_DRAWS, _QUICK_DRAWS = 20, 3


def reproduce(*, quick: bool, progress: Progress) -> Reproduction:
    """Runs the paper again, its formulas beside the sound ones: 20 draws of its data, or 3 for a quick look."""
    draws = _QUICK_DRAWS if quick else _DRAWS
    progress(0.0, "the radius of best accuracy")
    radii = radii_of(draws)
    samples = {name: sample_of(name, seed=0) for name in NAMES}
    noise = {}
    for place, name in enumerate(NAMES):
        progress(0.2 + 0.25 * place, f"noise on {name}")
        noise[name] = noise_of(name, draws)
    progress(0.7, "Algorithm 2 and small worlds")
    facts = facts_of(radii, noise, steps_of(samples))
    progress(0.9, "drawing the figures")
    tables = (example_table(facts.examples), table_one(samples), radius_table(radii))
    noises = tuple(noise_table(name, rows) for name, rows in noise.items())
    pictures = (*figures(facts.examples), *(noise_figure(name, rows) for name, rows in noise.items()))
    made = Reproduction(
        room="outliers",
        paper="差分プライバシーを保証した外れ値検出 (Okada, Fukuchi, Sakuma)",
        summary=summary(facts),
        tables=(*tables, *noises, steps_table(facts.steps), floor_table(), cover_table(samples)),
        figures=(*pictures, *(accuracy_figure(name, sample) for name, sample in samples.items())),
        errata=errata(facts),
        settings={"k": K, "delta": DELTA, "draws": draws, "seeds": f"0 to {draws - 1}", "injected outliers": INJECTED},
        claims=claims(facts),
        default=DEFAULT,
    )
    progress(1.0, "done")
    return made
