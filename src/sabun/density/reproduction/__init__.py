"""The density-ratio paper, run again: its section 4 and 5, its three methods, and our default beside them."""

from __future__ import annotations

from sabun.density.reproduction.claims import DEFAULT, claims, errata, facts_of, summary
from sabun.density.reproduction.curves import (
    answers_table,
    by_epsilon,
    curves_table,
    figure_one,
    method_figures,
    typical_data_set,
)
from sabun.density.reproduction.items import ITEMS
from sabun.density.reproduction.noise_analysis import noise_figure, noise_table
from sabun.density.reproduction.trials import BOX, CENTRES, EPSILONS, REFERENCE, Outcome, run_trials, true_ratio
from sabun.telling.reproduction import Progress, Reproduction

__all__ = ["EPSILONS", "ITEMS", "REFERENCE", "Outcome", "reproduce", "run_trials", "true_ratio"]


def reproduce(*, quick: bool, progress: Progress) -> Reproduction:
    """Runs the experiment again: 200 data sets, or 12 for a quick look."""
    trials, sweeps = (12, 4) if quick else (200, 40)
    results = run_trials(trials, progress=progress)
    progress(0.9, "section 4: noise in alpha")
    facts = facts_of(results, sweeps)
    progress(0.95, "drawing the paper's figures")
    shown = typical_data_set(results)
    figures = (figure_one(), *method_figures(shown, results), noise_figure(facts.points), by_epsilon(results))
    progress(1.0, "done")
    return Reproduction(
        room="density",
        paper="Takabayashi, Arai and Nakagawa, Differentially Private Least-squares Importance Fitting",
        summary=summary(facts),
        tables=(noise_table(facts.points), curves_table(results), answers_table(results)),
        figures=figures,
        errata=errata(facts),
        settings={
            "trials": trials,
            "first_seed": 0,
            "trials of section 4": sweeps,
            "public_rows": 50,
            "private_rows": 2000,
            "centres": CENTRES,
            "box": list(BOX[0]),
            "data set of the figures": f"{shown.how}",
        },
        claims=claims(facts),
        default=DEFAULT,
    )
