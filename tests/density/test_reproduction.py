from __future__ import annotations

import statistics

import numpy as np
import pytest

from sabun.density.reproduction import EPSILONS, REFERENCE, Outcome, reproduce, run_trials, true_ratio


@pytest.fixture(scope="module")
def results() -> dict[str, list[Outcome]]:
    """Seeded from end to end, so that a pass stays a pass."""
    return run_trials(100)


def median(found: list[Outcome], field: str) -> float:
    return statistics.median(getattr(outcome, field) for outcome in found)


@pytest.mark.parametrize("name", REFERENCE)
def test_medians_agree_with_an_independent_implementation(results: dict[str, list[Outcome]], name: str) -> None:
    assert median(results[name], "integrated") == pytest.approx(REFERENCE[name], rel=0.25)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_default_keeps_its_error_below_six_percent(results: dict[str, list[Outcome]], epsilon: float) -> None:
    assert median(results[f"Sabun's default, ε = {epsilon:g}"], "pointwise") < 0.06


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("rival", ["method A", "method B", "Ji–Elkan"])
def test_the_default_beats_its_rivals(results: dict[str, list[Outcome]], epsilon: float, rival: str) -> None:
    ours, theirs = results[f"Sabun's default, ε = {epsilon:g}"], results[f"{rival}, ε = {epsilon:g}"]
    assert median(ours, "pointwise") < median(theirs, "pointwise")
    assert statistics.fmean(o.mean**2 for o in ours) < statistics.fmean(o.mean**2 for o in theirs)


def test_erratum_9_clipped_noise_makes_raw_weights_too_large(results: dict[str, list[Outcome]]) -> None:
    found = results["method B, ε = 0.1"]
    assert statistics.fmean(o.raw for o in found) > 3 * median(found, "integrated")


def test_the_true_ratio_has_mean_one_under_the_public_density() -> None:
    x = np.linspace(-8, 10, 20001)
    density = np.exp(-0.5 * (x - 1) ** 2) / np.sqrt(2 * np.pi)
    assert float(np.trapezoid(true_ratio(x) * density, x)) == pytest.approx(1.0, abs=1e-6)


def test_a_quick_run_gives_tables_figures_and_errata() -> None:
    heard: list[float] = []
    page = reproduce(quick=True, progress=lambda share, what: heard.append(share))
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    assert [figure.name for figure in page.figures] == ["figure-2", "figure-3", "figure-4", "figure-5", "by-epsilon"]
    assert len(page.tables) == 2
    assert len(page.errata) == 9
