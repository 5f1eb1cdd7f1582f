"""Figures and tables of section 5 of the density-ratio paper, in its own form; ours are named as ours."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.density.reproduction.trials import (
    BLOCK,
    CENTRES,
    EPSILONS,
    GRID,
    REFERENCE,
    Outcome,
    Trial,
    fitted_ratio,
    trial_of,
    true_ratio,
    ulsif_of,
)
from sabun.telling.reproduction import Figure, Table, drawn

__all__ = ["Shown", "answers_table", "by_epsilon", "curves_table", "figure_one", "method_figures", "typical_data_set"]

_MOST_SEEDS = 40
_COLOURS = ("tab:blue", "tab:red", "tab:green")
"""For epsilon 0.1, 1 and 10, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The data set that the figures show, and how it was chosen."""

    trial: Trial
    seeds: int
    peak: float
    lowest: float
    highest: float

    @property
    def how(self) -> str:
        """How it was chosen, for a reader."""
        return (
            f"The data set (seed {self.trial.seed}) is the one of {self.seeds} whose fit without privacy has the median peak, "
            f"{self.peak:.2f}; the peaks range from {self.lowest:.2f} to {self.highest:.2f}."
        )


def typical_data_set(results: dict[str, list[Outcome]]) -> Shown:
    """The data set of median peak among the first forty (or as many as there are): chosen by the run, not by eye."""
    peaks = [outcome.peak for outcome in results["uLSIF, private centres"]][:_MOST_SEEDS]
    order = sorted(range(len(peaks)), key=peaks.__getitem__)
    seed = order[(len(order) - 1) // 2]
    return Shown(trial=trial_of(seed), seeds=len(peaks), peak=peaks[seed], lowest=min(peaks), highest=max(peaks))


def figure_one() -> Figure:
    """Figure 1: both densities with their ratio."""
    private = 2.0 * np.exp(-2.0 * (GRID - 2.0) ** 2) / math.sqrt(2.0 * math.pi)
    public = np.exp(-0.5 * (GRID - 1.0) ** 2) / math.sqrt(2.0 * math.pi)
    ratio = true_ratio(GRID)

    def draw(axes: Any) -> None:
        axes.plot(GRID, private, color="tab:blue", label="private density p_D")
        axes.plot(GRID, public, color="tab:green", label="public density p_E")
        axes.plot(GRID, ratio, color="tab:red", label="ratio w = p_D / p_E")
        axes.set(xlim=(-2, 5), ylim=(0, 1.05 * ratio.max()), xlabel="x")
        axes.legend(frameon=False)

    top = int(np.argmax(ratio))
    return drawn(
        name="figure-1",
        title="Figure 1: the densities and their ratio",
        draw=draw,
        note="D is normal around 2 with variance 1/4, E around 1 with variance 1; the ratio peaks at "
        f"x = {GRID[top]:.2f} with {ratio[top]:.2f}.",
    )


def method_figures(shown: Shown, results: dict[str, list[Outcome]]) -> tuple[Figure, ...]:
    """Figures 2 to 4, and the same for our default."""
    return (
        _method_figure(shown, results, "figure-2", "Figure 2: method A, noisy private centres", "ulsif-a", "method A"),
        _method_figure(shown, results, "figure-3", "Figure 3: method B, public centres", "ulsif-b", "method B"),
        _method_figure(shown, results, "figure-4", "Figure 4: method C, raw private centres", "ulsif-c", "method C"),
        _method_figure(shown, results, "ours-default", "Ours, not in the paper: Sabun's default", "rkhs", "Sabun's default"),
    )


def _method_figure(shown: Shown, results: dict[str, list[Outcome]], name: str, title: str, method: str, called: str) -> Figure:
    trial = shown.trial
    lines: list[tuple[str, str, Any]] = [("black", "uLSIF, centres of D", ulsif_of(trial, "numerator").predict(BLOCK))]
    if method == "ulsif-b":
        lines.append(("tab:brown", "uLSIF, centres of E", ulsif_of(trial, "denominator").predict(BLOCK)))
    for epsilon, colour in zip(EPSILONS, _COLOURS, strict=True):
        lines.append((colour, f"ε = {epsilon:g}", fitted_ratio(trial, method, epsilon).predict(BLOCK)))

    def draw(axes: Any) -> None:
        axes.plot(GRID, true_ratio(GRID), color="0.75", lw=4, label="true ratio")
        for colour, label, curve in lines:
            axes.plot(GRID, curve, color=colour, label=label)
        top = max(float(true_ratio(GRID).max()), *(float(np.nanmax(curve)) for _, _, curve in lines))
        axes.set(xlim=(-2, 5), ylim=(0, 1.05 * top), xlabel="x", ylabel="ratio")
        axes.legend(frameon=False)

    def middle(field: str) -> str:
        found = [statistics.median(getattr(o, field) for o in results[f"{called}, ε = {epsilon:g}"]) for epsilon in EPSILONS]
        return ", ".join(f"{value:.2f}" for value in found)

    listed = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    scaling = "" if method == "rkhs" else f" before scaling to mean one the mean weight was {middle('level')};"
    note = (
        f"At ε = {listed}:{scaling} spread {middle('spread')} (0 is flat), mean of the weighted public density "
        f"{middle('centroid')} (private 2, public 1). Medians over the data sets; private curves are scaled. {shown.how}"
    )
    return drawn(name=name, title=title, draw=draw, note=note)


def by_epsilon(results: dict[str, list[Outcome]]) -> Figure:
    """All methods in one picture; ours."""

    def draw(axes: Any) -> None:
        for name in ("method A", "method B", "method C", "Ji–Elkan", "Sabun's default"):
            errors = [statistics.median(o.pointwise for o in results[f"{name}, ε = {epsilon:g}"]) for epsilon in EPSILONS]
            axes.loglog(EPSILONS, errors, marker="o", label=name)
        axes.set(xlabel="ε", ylabel="relative error of the weights (median)")
        axes.legend(frameon=False)

    return drawn(
        name="ours-by-epsilon",
        title="Ours, not in the paper: relative error of the published weights",
        draw=draw,
        note=f"A, B and C are helped by tuning on private records and C by publishing {CENTRES} of them.",
    )


def curves_table(results: dict[str, list[Outcome]]) -> Table:
    """How far each curve is from the true ratio, and its shape."""
    rows = tuple(
        (
            name,
            round(statistics.median(o.integrated for o in found), 3),
            REFERENCE.get(name),
            round(statistics.fmean(o.raw for o in found), 3),
            round(statistics.fmean(o.level for o in found), 2),
            round(statistics.median(o.pointwise for o in found), 3),
            round(statistics.median(o.spread for o in found), 3),
            round(statistics.median(o.centroid for o in found), 3),
            round(statistics.fmean(o.size for o in found), 1),
        )
        for name, found in results.items()
    )
    return Table(
        name="section-5-curves",
        title="Section 5: how far the estimated ratio is from the true one",
        columns=(
            "method",
            "relative ISE, scaled (median)",
            "the same elsewhere",
            "relative ISE, raw (mean)",
            "mean weight, raw (mean)",
            "relative error at the public rows (median)",
            "spread of the curve (median)",
            "mean of the weighted public density (median)",
            "effective rows of 50",
        ),
        rows=rows,
        note="The paper prints no numbers; the third column is an independent implementation. Raw means have heavy tails.",
    )


def answers_table(results: dict[str, list[Outcome]]) -> Table:
    """Errors of answers from the weighted public table."""

    def rmse(found: list[Outcome], field: str) -> float:
        return round(math.sqrt(statistics.fmean(getattr(o, field) ** 2 for o in found)), 3)

    fields = ("mean", "variance", "median", "share")
    rows = tuple((name, *(rmse(found, field) for field in fields)) for name, found in results.items())
    ahead = [
        f"ε = {epsilon:g}"
        for epsilon in EPSILONS
        if rmse(results[f"method C, ε = {epsilon:g}"], "variance")
        < rmse(results[f"Sabun's default, ε = {epsilon:g}"], "variance")
    ]
    note = f"On the variance method C, which publishes raw records, is ahead of the default at {', '.join(ahead) or 'no ε'}."
    return Table(
        name="section-5-answers",
        title="Section 5: errors of answers from the weighted public table (root mean square)",
        columns=("method", "mean", "variance", "median", "share above 2.3"),
        rows=rows,
        note=note,
    )
