"""The learning paper's figures, drawn from the tables of its reproduction."""

from __future__ import annotations

from typing import Any

from sabun.telling.reproduction import Figure, Table, drawn

__all__ = ["pictures"]

_OURS = (
    "DP-SGD, the library's defaults",
    "DP-SGD, linear",
    "DP-SGD, 32",
    "pure: synthetic table, then linear",
    "pure: objective perturbation, linear",
)
_PAPERS = ("paper's AnonymizedLearning, 3x32", "paper's AnonymizedLearning, linear", "paper's LearningFirst, 3x32")


def pictures(*, per_parameter: Table, joint: Table, depth: Table, majority: float) -> tuple[Figure, ...]:
    """Accuracy over the paper's epsilon, over the joint one, and what depth wins."""
    size = _size(per_parameter)
    return (
        drawn(
            name="three-approaches",
            title="The paper's figure 5 again: accuracy over its epsilon",
            draw=lambda axes: _approaches(axes, per_parameter, majority),
            note=f"The upper axis says what epsilon per parameter costs for all {size:,.0f} parameters together (pure); it "
            "does "
            "not hold for AnonymizingFirst, whose epsilon is for the whole model already. The grey line is ours: what the "
            "paper "
            "calls its baseline is not defined.",
            size=(7.2, 4.6),
        ),
        drawn(
            name="joint",
            title="Accuracy over the epsilon of the whole model",
            draw=lambda axes: _jointly(axes, joint, majority),
            note="Ours in full lines, the paper's two noisy methods dashed; the grey line is the majority class.",
            size=(9.0, 4.6),
        ),
        drawn(
            name="depth",
            title="What a hidden layer wins over a linear model at the same epsilon",
            draw=lambda axes: _gains(axes, depth),
            note="Above zero the network is better. Bars are standard deviations over the test folds.",
        ),
    )


def _size(table: Table) -> float:
    """How many parameters the network has: what all of them cost, over what each does."""
    return next(float(str(row[2])) / float(str(row[1])) for row in table.rows if row[0] == "LearningFirst")


def _points(table: Table, name: str) -> tuple[list[float], list[float]]:
    rows = [row for row in table.rows if row[0] == name]
    return [float(str(row[1])) for row in rows], [float(str(row[4])) for row in rows]


def _approaches(axes: Any, table: Table, majority: float) -> None:
    for place, name in enumerate(dict.fromkeys(str(row[0]) for row in table.rows)):
        first = name.startswith("AnonymizingFirst")
        axes.semilogx(*_points(table, name), "^:" if first else "os"[place % 2] + "-", label=name, color=f"C{place}")
    axes.axhline(majority, color="grey", linewidth=0.8, label="majority class")
    size = _size(table)
    upper = axes.secondary_xaxis("top", functions=(lambda x: x * size, lambda x: x / size))
    upper.set_xlabel("joint epsilon of AnonymizedLearning and LearningFirst")
    axes.set_xlabel("the paper's epsilon")
    axes.set_ylabel("held-out accuracy")
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def _jointly(axes: Any, table: Table, majority: float) -> None:
    epsilons = [float(name) for name in table.columns[1:]]
    for row in table.rows:
        if row[0] in (*_OURS, *_PAPERS):
            style = "s--" if row[0] in _PAPERS else "o-"
            axes.semilogx(epsilons, [float(str(cell)) for cell in row[1:]], style, label=row[0], markersize=4)
    axes.axhline(majority, color="grey", linewidth=0.8, label="majority class")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("joint epsilon")
    axes.set_ylabel("held-out accuracy")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _gains(axes: Any, table: Table) -> None:
    names = list(dict.fromkeys(str(row[0]) for row in table.rows))
    ticks = list(dict.fromkeys(str(row[1]) for row in table.rows))
    for place, name in enumerate(names):
        rows = [row for row in table.rows if row[0] == name]
        at = [ticks.index(str(row[1])) + 0.36 * (place - 0.5) for row in rows]
        gains, errors = [float(str(row[6])) for row in rows], [float(str(row[7] or 0)) for row in rows]
        axes.bar(at, gains, width=0.32, yerr=errors, capsize=3, label=name)
    axes.axhline(0.0, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(ticks)), [t if t == "not private" else f"epsilon {float(t):g}" for t in ticks])
    axes.set_ylabel("accuracy: network less linear")
    axes.legend(frameon=False, fontsize=8)
