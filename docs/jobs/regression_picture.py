"""Draws `regression-clinics.svg`: a practice that knows adults only, alone and with two private releases."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sabun.regression import PrivateRidge, combine
from sabun.reproduction import drawn

BOUNDS = {"x_bounds": [(0, 100), (0, 150)], "y_bounds": (0, 60)}


def clinic(rows: int, youngest: float, oldest: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Made-up patients of an age range with their doses."""
    age = rng.uniform(youngest, oldest, rows)
    weight = np.clip(10 + 1.2 * np.minimum(age, 50) + rng.normal(0, 8, rows), 3, 150)
    return np.column_stack([age, weight]), np.clip(5 + 0.25 * weight + 0.1 * age + rng.normal(0, 3, rows), 0, 60)


def main() -> None:
    """Writes the picture beside this file."""
    rng = np.random.default_rng(1)
    others = [clinic(3000, 0, 18, rng), clinic(3000, 65, 95, rng)]
    X, y = clinic(60, 25, 45, rng)
    # The data are invented, so a seed harms nobody; it makes the picture the same every time.
    releases = [PrivateRidge(epsilon=1, random_state=s, **BOUNDS).fit(*table).release_ for s, table in enumerate(others)]
    joined = combine(releases, X, y)
    design = np.column_stack([X, np.ones(len(X))])
    alone = np.linalg.lstsq(design, y, rcond=None)[0]
    ages = np.linspace(0, 95, 60)
    new = np.column_stack([ages, 10 + 1.2 * np.minimum(ages, 50)])
    truth = 5 + 0.25 * new[:, 1] + 0.1 * ages
    middle = joined.predict(new)
    line = np.column_stack([new, np.ones(len(new))]) @ joined.cov_ @ np.column_stack([new, np.ones(len(new))]).T
    reach = 1.96 * np.sqrt(np.diag(line))

    def draw(axes) -> None:
        axes.scatter(X[:, 0], y, s=8, color="0.6", label="the practice's own patients")
        axes.plot(ages, truth, color="black", linewidth=1, label="truth")
        axes.plot(ages, new @ alone[:2] + alone[2], color="tab:red", label="practice alone")
        axes.plot(ages, middle, color="tab:blue", label="with two private releases")
        axes.fill_between(ages, middle - reach, middle + reach, color="tab:blue", alpha=0.2, linewidth=0)
        axes.set_xlabel("age (years), typical weight")
        axes.set_ylabel("dose")
        axes.legend(frameon=False, fontsize=8)

    figure = drawn(name="regression-clinics", title="Dose by age", draw=draw)
    Path(__file__).with_name("regression-clinics.svg").write_text(figure.svg, encoding="utf-8")


if __name__ == "__main__":
    main()
