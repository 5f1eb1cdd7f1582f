from __future__ import annotations

import dataclasses
import importlib
import math
import statistics
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import typer

from sabun.cli import build
from sabun.datasets import load_wdbc
from sabun.outliers import outlier_degrees
from sabun.outliers.ladder import Bands, Cover
from sabun.outliers.laws import PowerTail
from sabun.outliers.paper import printed_global_bound, theorem_two
from sabun.outliers.reproduction import ITEMS, accuracy, best_radius, reproduce, sample_of
from sabun.outliers.reproduction.claims import claims, errata, facts_of, summary
from sabun.outliers.reproduction.examples import judged
from sabun.outliers.reproduction.samples import NAMES
from sabun.outliers.reproduction.section_five import noise_figure, noise_of, radii_of, steps_of
from sabun.outliers.reproduction.small_worlds import (
    heaps,
    theorem_four_on_lines,
    theorem_one_delta,
    theorem_two_delta,
    widest_changes,
)
from sabun.outliers.sensitivity import measure, rungs_of, smooth_bound
from sabun.reproduction import unmade
from sabun.telling.reproduction import Item, Reproduction

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def quick() -> tuple[Reproduction, list[float]]:
    steps: list[float] = []
    return reproduce(quick=True, progress=lambda share, _: steps.append(share)), steps


def test_a_quick_reproduction_has_all_its_parts(quick: tuple[Reproduction, list[float]]) -> None:
    made, steps = quick
    assert unmade(made) == []
    assert [table.name for table in made.tables] == [
        *("examples", "table-1", "radius", "noise-ionosphere", "noise-wdbc"),
        *("algorithm-2", "floor", "covers"),
    ]
    assert [figure.name for figure in made.figures] == [
        *(f"figure-{number}" for number in range(1, 6)),
        *("accuracy-ionosphere", "accuracy-wdbc"),
    ]
    assert len(made.errata) == 9
    assert len(made.claims) == 16
    assert "pure epsilon" in made.default
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 1)


def test_every_claim_has_the_verdict_that_the_errata_give_it(quick: tuple[Reproduction, list[float]]) -> None:
    verdicts = {claim.where: claim.verdict for claim in quick[0].claims}
    assert [where for where, verdict in verdicts.items() if verdict == "holds"] == [
        *("Theorem 2", "Theorem 4, (15)", "Example 2, figure 2", "Section 4.2")
    ]
    assert verdicts["Theorem 1"] == "holds in part", "it is printed without a limit on epsilon"
    assert verdicts["Theorem 3, (11)"] == "holds in part"
    broken = ("Section 4.3, (20)-(24)", "Section 4.2, Algorithm 1", "Example 1, figure 1", "(16), in the proof of Theorem 4")
    assert {verdicts[where] for where in broken} == {"does not hold"}


def test_sentences_with_figures_are_filled_from_the_run() -> None:
    """Another run gives other sentences and other verdicts: nothing is typed."""
    radii, noise = radii_of(1), {name: noise_of(name, 1) for name in NAMES}
    facts = facts_of(radii, noise, steps_of({name: sample_of(name, seed=0) for name in NAMES}))
    rows = [dataclasses.replace(row, printed=1.0, ours=row.sound / 2, count=10.0) for row in noise["wdbc"]]
    other = dataclasses.replace(
        facts,
        noise=dict.fromkeys(NAMES, rows),
        radii=[dataclasses.replace(radius, at_printed=1.0) for radius in radii],
        three=(2, 7.25),
        widest={3: 77, 4: 77, 5: 77},
        deltas=(0.5, 0.25),
    )
    changed = {one.where for one, two in zip(claims(facts), claims(other), strict=True) if one.verdict != two.verdict}
    assert changed >= {
        *("Theorem 1", "Theorem 2", "Theorem 3, (11)", "Section 4.3, (20)-(24)", "Section 5.1, table 1, (26)"),
        *("Section 5.2", "Section 5.2, figures 4 and 5", "Sections 5.2 and 6"),
    }
    assert "2 to 2 times less noise" in summary(other)
    assert "7.25" in errata(other)[0]
    assert "1.000 (wdbc)" in errata(other)[7]


def test_the_examples_are_what_their_words_say() -> None:
    found = {one.example.name: one for one in judged()}
    assert (found["1, X_A"].change, found["1, X_B"].change) == (1, 1)
    assert found["1, k copies (ours)"].change == found["1, k copies (ours)"].exact == 2 * 2 * 3 + 1
    for name in ("2, X_A", "2, X_B"):
        assert found[name].formula == found[name].change == found[name].exact == 4
    for name in ("3, X_A", "3, X_B (ours: k = 2)"):
        assert found[name].change == found[name].exact == 3 < found[name].formula
    degrees = outlier_degrees(found["3, X_A"].example.after(0), radius=1.0)
    assert sorted(degrees.tolist()) == [1, 1, 2, 2]  # k, and k + 1 for x_0 and for the one with a second neighbour
    for example in (one.example for one in found.values() if one.example.name.startswith("2")):
        apart = example.after(0)[1:]
        assert min(np.linalg.norm(apart[i] - apart[j]) for i in range(3) for j in range(i)) > 1


def test_theorem_3_fails_between_k_and_2k_on_a_line() -> None:
    assert widest_changes() == {3: 0, 4: 4, 5: 4}
    assert [printed_global_bound(n=n, d=1, k=3) for n in (3, 4, 5)] == [3, 4, 5]


def test_theorem_4_holds_where_its_equality_does_not() -> None:
    found = theorem_four_on_lines()
    assert found.above_fifteen == 0 < found.above_sixteen < found.tables


def test_the_constants_of_both_gaussian_theorems_keep_their_delta() -> None:
    """Checked where another formula is known (Balle and Wang 2018), then for the stretch that a smooth bound allows."""
    normal = NormalDist()
    sigma = math.sqrt(2 * math.log(2 / 1e-2)) / 0.5
    exact = normal.cdf(1 / (2 * sigma) - 0.5 * sigma) - math.exp(0.5) * normal.cdf(-1 / (2 * sigma) - 0.5 * sigma)
    assert theorem_one_delta(0.5, 1e-2) == pytest.approx(exact, rel=1e-3)
    assert theorem_one_delta(0.5, 1e-6) < 1e-6
    assert theorem_two_delta(1.0, 1e-6) == pytest.approx(2e-13, rel=0.1)


def test_a_table_of_the_papers_size_breaks_its_bound_and_not_ours() -> None:
    found = heaps(1.0, 1e-6)
    assert (found.records, found.columns) == (235, 34)
    assert found.printed < found.change <= found.ours


def test_table_1_adds_up_to_the_accuracy() -> None:
    sample = sample_of("wdbc", seed=0)
    right, extra, missed, also_right = sample.cells(sample.best.middle)
    assert right + extra + missed + also_right == len(sample.points) == 367
    assert right + missed == 10
    assert (right + also_right) / 367 == accuracy(sample, sample.best.middle) == sample.best.accuracy
    assert sample.cells(1.3) == (10, 357, 0, 0)


def test_figures_4_and_5_show_the_count_with_its_noise_at_the_best_radius(quick: tuple[Reproduction, list[float]]) -> None:
    made = {figure.name: figure for figure in quick[0].figures}
    rows = noise_of("wdbc", 3)
    assert 8.0 < statistics.median(sample_of("wdbc", seed=seed).best.middle for seed in range(3)) < 8.5
    assert made["figure-5"].note == noise_figure("wdbc", rows).note
    assert f"± {rows[0].printed:,.0f} by (24)" in made["figure-5"].note
    assert "count ± standard deviation of the noise" in made["figure-4"].svg
    table = next(table for table in quick[0].tables if table.name == "noise-wdbc")
    assert [row[1] for row in table.rows] == [row.count for row in rows]


def test_every_item_of_the_paper_has_a_place_and_a_test_that_exist(quick: tuple[Reproduction, list[float]]) -> None:
    shown = {thing.name for thing in (*quick[0].tables, *quick[0].figures)}
    told = " ".join(item.item for item in ITEMS)
    for needed in [
        *(f"Definition {number}" for number in range(1, 9)),
        *(f"Theorem {number}" for number in range(1, 5)),
        *(f"Example {number}" for number in (1, 2, 3)),
        *(f"Figure {number}" for number in range(1, 6)),
        *("Algorithm 1", "Algorithm 2", "Table 1", "Section 5.1", "Section 5.2"),
    ]:
        assert needed in told
    for item in ITEMS:
        must_exist(item, shown)


def must_exist(item: Item, shown: set[str]) -> None:
    if item.reason:
        return
    file, _, name = item.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), item
    if item.place.startswith("reproduction: "):
        assert item.place.removeprefix("reproduction: ") in shown, item
    elif item.place.startswith("sabun "):
        verb = typer.main.get_command(build())
        words = item.place.split()[1:]
        for word in words[:2]:
            verb = verb.commands[word]  # type: ignore[attr-defined]
        options = {name for parameter in verb.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, item
    else:
        module, _, attribute = item.place.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), item


def test_the_papers_radii_make_every_record_an_outlier_on_z_scored_data() -> None:
    for name, radius, share in (("ionosphere", 0.3, 0.043), ("wdbc", 1.3, 0.027)):
        sample = sample_of(name, seed=0)
        assert accuracy(sample, radius) == pytest.approx(share, abs=0.001)
        best = best_radius(sample)
        assert accuracy(sample, (best.low + best.high) / 2) == pytest.approx(best.accuracy)
        assert best.accuracy > 0.97


def test_the_first_rungs_on_wdbc_are_those_of_an_independent_program() -> None:
    dataset = load_wdbc()
    bad = (dataset.target == "malignant").to_numpy()
    values = dataset.data.to_numpy(dtype=float)
    chosen = np.random.default_rng(0).choice(np.flatnonzero(bad), 10, replace=False)
    points = np.vstack([values[~bad], values[chosen]])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    bands = Bands(points, k=5, radius=9.0, rungs=7)
    cover = Cover("degeneracy", points[bands.gained[: bands.gained_ends[-1]]], 9.0)
    assert bands.count == 9
    assert [rungs_of(bands, cover, cap=367, relation="replace-one", rung=t) for t in range(7)] == [2, 6, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0])
def test_the_default_has_fifty_times_less_noise_than_theorem_2_on_the_same_bound(name: str, epsilon: float) -> None:
    sample = sample_of(name, seed=0)
    points, radius = sample.points, sample.best.middle
    inverse, beta = theorem_two(epsilon=epsilon, delta=1e-6)
    exact = Fraction(str(epsilon))
    law = PowerTail(epsilon=exact, beta=exact / 5)
    _, bound = measure(points, k=5, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
    assert inverse * smooth_bound(points, k=5, radius=radius, beta=beta) >= 50 * law.deviation(float(bound))
