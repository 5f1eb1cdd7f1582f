"""A picture of the weights: how the public table looks before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sabun.density.answers import effective_size
from sabun.density.kernel import Floats
from sabun.telling.language import said
from sabun.telling.svg_texts import svg_text

__all__ = ["weights_svg"]

_MOST_PANELS = 5
_BINS = 24


def weights_svg(columns: Sequence[tuple[str, Any]], weights: Floats, *, private: Sequence[Any] | None = None) -> str:
    """Draws marginals of the public table, unweighted and weighted, beside a histogram of the weights.

    Args:
        columns: Names with one value for each public row (numbers, dates or labels); the first five are drawn.
        weights: The weights.
        private: The same columns of the private table. NOT PRIVATE: a picture for its owner only, which says so in its title.

    Returns:
        The picture as SVG text; the same input gives the same bytes.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = list(columns)[:_MOST_PANELS]
    looks: Any = {"svg.hashsalt": "density", "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(looks):
        figure, panels = pyplot.subplots(1, len(shown) + 1, figsize=(3.1 * (len(shown) + 1), 2.9), layout="constrained")
        try:
            for index, (name, values) in enumerate(shown):
                _marginal(panels[index], name, values, weights, None if private is None else private[index])
            _histogram(panels[-1], weights)
            if private is not None:
                figure.suptitle(said("NOT PRIVATE: drawn from private records, for their owner only"), color="crimson")
            return svg_text(figure)
        finally:
            pyplot.close(figure)


def _marginal(axes: Any, name: str, values: Any, weights: Floats, private: Any | None) -> None:
    kinds = [(said("public"), values, np.ones(len(weights)), "0.65"), (said("public, weighted"), values, weights, "tab:blue")]
    if private is not None:
        kinds.append((said("private"), private, np.ones(len(private)), "crimson"))
    if (kind := np.asarray(values).dtype.kind) in "biufM":
        edges = np.histogram_bin_edges(_numbers(values), bins=_BINS)
        for label, numbers, mass, colour in kinds:
            axes.hist(_numbers(numbers), bins=edges, weights=mass / mass.sum(), histtype="step", lw=1.5,
                      color=colour, label=label)  # fmt: skip
    else:
        labels = sorted({str(value) for value in values})
        for place, (label, cells, mass, colour) in enumerate(kinds):
            texts = np.array([str(cell) for cell in cells])
            shares = [float(mass[texts == one].sum() / mass.sum()) for one in labels]
            axes.barh(np.arange(len(labels)) + 0.3 * place, shares, height=0.3, color=colour, label=label)
        axes.set_yticks(np.arange(len(labels)) + 0.3, labels, fontsize=7)
    if kind == "M":
        axes.xaxis_date()
        axes.tick_params(axis="x", labelrotation=30, labelsize=7)
    axes.set_title(name, fontsize=10)
    axes.legend(frameon=False, fontsize=7)


def _numbers(values: Any) -> Floats:
    """Numbers; dates as the axis counts them, in days since 1970-01-01."""
    cells = np.asarray(values)
    return (cells.astype("datetime64[D]").astype(np.int64) if cells.dtype.kind == "M" else cells).astype(np.float64)


def _histogram(axes: Any, weights: Floats) -> None:
    axes.hist(weights, bins=_BINS, color="tab:blue")
    worth = f"{effective_size(weights):.0f}"
    axes.set_title(said("weights ({rows} rows, worth {worth})", rows=len(weights), worth=worth), fontsize=10)
    axes.set_yticks([])
