from __future__ import annotations

import dataclasses
import importlib
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import typer

from sabun.cli import build
from sabun.density.reproduction import EPSILONS, ITEMS, REFERENCE, Outcome, curves, reproduce, run_trials, true_ratio
from sabun.density.reproduction.claims import Facts, claims, errata, facts_of
from sabun.density.reproduction.curves import typical_data_set
from sabun.density.reproduction.noise_analysis import SWEEPS, run_sweeps, slope
from sabun.density.reproduction.trials import BLOCK, ulsif_of
from sabun.density.settings import METHODS
from sabun.reproduction import unmade
from sabun.telling.reproduction import Figure, Reproduction
from sabun.telling.words import number

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def results() -> dict[str, list[Outcome]]:
    """Seeded from end to end, so that a pass stays a pass.

    As many as the figures choose from. A positive number with a long tail has a standard deviation of about its
    median, and a median of 40 then one of 1.25 / sqrt(40), a fifth: noise of half or twice the size is 2.5 of them away.
    """
    return run_trials(40)


@pytest.fixture(scope="module")
def hundred() -> dict[str, list[Outcome]]:
    return run_trials(100)


def median(found: list[Outcome], field: str) -> float:
    return statistics.median(getattr(outcome, field) for outcome in found)


@pytest.mark.parametrize("name", REFERENCE)
def test_medians_agree_with_an_independent_implementation(results: dict[str, list[Outcome]], name: str) -> None:
    assert median(results[name], "integrated") == pytest.approx(REFERENCE[name], rel=0.4)


@pytest.mark.long
@pytest.mark.parametrize("name", REFERENCE)
def test_medians_of_a_hundred_are_nearer(hundred: dict[str, list[Outcome]], name: str) -> None:
    assert median(hundred[name], "integrated") == pytest.approx(REFERENCE[name], rel=0.25)


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


@pytest.fixture(scope="module")
def page() -> Reproduction:
    heard: list[float] = []
    made = reproduce(quick=True, progress=lambda share, what: heard.append(share))
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    return made


@pytest.fixture(scope="module")
def facts(results: dict[str, list[Outcome]]) -> Facts:
    return facts_of(results, 3)


def test_a_quick_run_gives_tables_figures_claims_and_errata(page: Reproduction) -> None:
    assert unmade(page) == []
    named = [*(f"figure-{place}" for place in (1, 2, 3, 4)), "ours-default", "section-4", "ours-by-epsilon"]
    assert [figure.name for figure in page.figures] == named
    assert [table.name for table in page.tables] == ["section-4", "section-5-curves", "section-5-answers"]
    assert (len(page.errata), len(page.claims)) == (9, 17)
    assert all(figure.title.startswith(("Figure", "Section", "Ours, not in the paper")) for figure in page.figures)
    assert "pure epsilon" in page.default


def test_figures_show_whole_curves_of_the_median_data_set(results: dict[str, list[Outcome]], page: Reproduction) -> None:
    shown = typical_data_set(results)
    peaks = [outcome.peak for outcome in results["uLSIF, private centres"]][:40]
    assert shown.seeds == 40
    assert sum(peak <= shown.peak for peak in peaks) == 20
    assert shown.peak == peaks[shown.trial.seed] == pytest.approx(3.16, abs=0.1)
    fit = ulsif_of(shown.trial, "numerator").predict(BLOCK)
    assert float(fit.max()) == pytest.approx(shown.peak)
    made = {figure.name: figure for figure in page.figures}
    for name in ("figure-2", "figure-3", "figure-4", "ours-default"):
        assert "the one of 12 whose fit without privacy has the median peak" in made[name].note
        assert ("uLSIF, centres of E" in made[name].svg) == (name == "figure-3")
    assert "ratio w = p_D / p_E" in made["figure-1"].svg


def test_the_axis_holds_every_curve(results: dict[str, list[Outcome]], monkeypatch: pytest.MonkeyPatch) -> None:
    limits: dict[str, tuple[float, float]] = {}

    def watched(*, name: str, title: str, draw: Callable[[Any], None], note: str = "", size: object = None) -> Figure:
        axes = MagicMock()
        draw(axes)
        heights = [float(np.nanmax(call.args[1])) for call in axes.plot.call_args_list]
        limits[name] = (max(heights), axes.set.call_args.kwargs["ylim"][1])
        return Figure(name=name, title=title, svg="<svg/>", note=note)

    monkeypatch.setattr(curves, "drawn", watched)
    curves.method_figures(typical_data_set(results), results)
    assert len(limits) == 4
    assert all(highest < limit for highest, limit in limits.values())


def test_the_noise_in_alpha_is_of_the_stated_order() -> None:
    points = run_sweeps(6)
    for swept, (_, values, stated) in SWEEPS.items():
        own = [point for point in points if point.swept == swept]
        assert [point.value for point in own] == list(values)
        assert slope(points, swept) == pytest.approx(stated, abs=0.25)
    # A sum over b coordinates, each of that order, is longer by the root of b: the test can tell the two apart.
    longer = [dataclasses.replace(point, error=point.error * point.value**0.5) for point in points if point.swept == "b"]
    assert abs(slope(longer, "b") - 1) > 0.25


def test_every_claim_is_judged_by_the_run(facts: Facts) -> None:
    found = {(claim.where, claim.text.split()[0]): claim.verdict for claim in claims(facts)}
    assert [where for (where, _), verdict in found.items() if verdict == "does not hold"] == ["Section 3.2, method A"]
    assert found["Section 3.1, (22)", "Removing"] == "holds"
    flat = [dataclasses.replace(outcome, spread=9.0, centroid=3.0) for outcome in facts.results["method A, ε = 0.1"]]
    high = [dataclasses.replace(outcome, level=7.75) for outcome in facts.results["method B, ε = 0.1"]]
    other = dataclasses.replace(
        facts, results={**facts.results, "method A, ε = 0.1": flat, "method B, ε = 0.1": high}, moved=(1.5, 2.0)
    )
    changed = {one.where for one, two in zip(claims(facts), claims(other), strict=True) if one.verdict != two.verdict}
    assert changed == {"Section 3.1, (22)", "Section 5, figure 2"}
    assert "their mean is 7.75" in errata(other)[7]
    assert "7.75" not in errata(facts)[7]


def test_the_mean_weight_of_method_b_is_the_one_that_was_measured(facts: Facts) -> None:
    levels = [outcome.level for outcome in facts.results["method B, ε = 0.1"]]
    assert number(statistics.fmean(levels), 3) in errata(facts)[7]
    assert statistics.fmean(levels) > 2


def test_every_item_of_the_paper_has_a_place_and_a_test_that_exist(page: Reproduction) -> None:
    shown = {thing.name for thing in (*page.tables, *page.figures)}
    told = " ".join(item.item for item in ITEMS)
    for needed in [
        *(f"Definition {place}" for place in (1, 2, 3)),
        *(f"Figure {place}" for place in (1, 2, 3, 4)),
        *("Theorem 1", "Table 1", "method A", "method B", "method C", "Section 3.1", "Section 4", "Section 5"),
    ]:
        assert needed in told
    for item in ITEMS:
        if item.reason:
            continue
        file, _, name = item.test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), item
        if item.place.startswith("reproduction: "):
            assert item.place.removeprefix("reproduction: ") in shown, item
        elif item.place.startswith("sabun "):
            verb = typer.main.get_command(build()).commands["density"].commands["weights"]  # type: ignore[attr-defined]
            options = {name for parameter in verb.params for name in parameter.opts}
            words = item.place.split()
            assert {word for word in words if word.startswith("--")} <= options, item
            assert words[words.index("--method") + 1] in METHODS, item
        else:
            module, _, attribute = item.place.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), item
