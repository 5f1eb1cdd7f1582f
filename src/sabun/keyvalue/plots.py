"""Estimated against true means, key by key: the picture of the paper's figure 5, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sabun.errors import ParameterError
from sabun.keyvalue.estimates import Estimates
from sabun.telling.language import said
from sabun.telling.svg_texts import svg_text

__all__ = ["draw_means", "means_svg"]


def draw_means(axes: Any, estimates: Estimates, truth: ArrayLike | None = None) -> None:
    """Draws each key's mean with its interval, and the truth where it is known."""
    if not estimates.valued:
        raise ParameterError("estimates must be of a study that asks for values; this one has no means to draw.")
    places = np.arange(len(estimates.keys))
    mean, ends = estimates.shown_mean, estimates.mean_interval
    shown = ~np.isnan(mean)
    axes.vlines(places[shown], ends[shown, 0], ends[shown, 1], color="#9ecae1", linewidth=2, label=said("interval"))
    named = said("estimate ({method})", method=estimates.method)
    axes.plot(places[shown], mean[shown], "o", color="#08519c", markersize=4, label=named)
    if truth is not None:
        true = np.asarray(truth, dtype=float)
        if true.shape != places.shape:
            raise ParameterError(f"truth must be one number per key ({len(places)}); got {true.shape}.")
        axes.plot(places, true, "_", color="#cb181d", markersize=9, label=said("truth"))
    if (~shown).any():
        low = axes.get_ylim()[0]
        rare = said("too rare to say")
        axes.plot(places[~shown], np.full((~shown).sum(), low), "x", color="#969696", markersize=4, label=rare)
    if estimates.guarantee.simulated:
        axes.set_title(said("NOT PRIVATE: simulated"), fontsize=9, color="#cb181d", loc="left")
    axes.set_xlabel(said("key"))
    axes.set_ylabel(said("mean value"))
    if len(places) <= 20:
        axes.set_xticks(places, [str(key) for key in estimates.keys], rotation=45, ha="right")
    axes.legend(frameon=False, fontsize=8)


def means_svg(estimates: Estimates, truth: ArrayLike | None = None) -> str:
    """The picture as SVG text; equal estimates give equal text."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(
        {"svg.hashsalt": "sabun", "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        FigureCanvasSVG(figure)
        draw_means(figure.add_subplot(), estimates, truth)
        return svg_text(figure)
