from __future__ import annotations

import math

import pytest

from sabun.keyvalue.reproduction import ITEMS, measure, paper, reproduce
from sabun.keyvalue.reproduction.claims import example, gain
from sabun.keyvalue.reproduction.measured import theory
from sabun.reproduction import unmade
from sabun.telling.reproduction import Reproduction

# MSE of frequencies (x 1e-4) and of means, measured independently of this code with 60 trials each.
REFERENCE = {
    ("gaussian", 2.0): {
        "PrivKV": (5.27, 0.123),
        "PrivKVM (c=3)": (5.21, 0.144),
        "EM": (5.01, 0.075),
        "PrivKV + exact MLE": (4.92, 0.042),
        "PrivKV + posterior": (4.91, 0.049),
        "KV3 + exact MLE": (2.04, 0.0097),
        "KV3 + posterior": (2.04, 0.0103),
    },
    ("power", 0.5): {"PrivKV": (79.92, 0.531), "EM": (58.41, 0.537), "KV3 + exact MLE": (29.27, 0.601)},
    ("linear", 5.0): {"PrivKV": (1.32, 0.0407), "EM": (1.31, 0.0065), "KV3 + exact MLE": (0.88, 0.0014)},
}


@pytest.mark.parametrize(("shape", "epsilon"), REFERENCE)
def test_sixty_trials_agree_with_an_independent_prototype(shape: str, epsilon: float) -> None:
    found = measure(shape, epsilon, 100_000, 60)
    for name, (frequency, mean) in REFERENCE[(shape, epsilon)].items():
        assert 1e4 * found[name].frequency == pytest.approx(frequency, rel=0.12), name
        assert found[name].mean == pytest.approx(mean, rel=0.2), name


@pytest.mark.parametrize("shape", ["gaussian", "power", "linear"])
def test_privkv_has_the_variance_of_thetheory(shape: str) -> None:
    found = measure(shape, 1.0, 100_000, 60)["PrivKV"]
    assert abs(found.frequency - theory(shape, 1.0, 100_000)) < 4 * found.frequency_error


def test_the_papers_columns_are_thousands_of_people() -> None:
    """Theory at n in thousands is within a few percent of what the paper prints; in tens of thousands it is ten times off."""
    printed = paper.BY_SIZE["gaussian"]["PrivKV"][:7]
    expected = [1e4 * theory("gaussian", 2.0, n) for n in paper.SIZES[:7]]
    assert printed == pytest.approx(expected, rel=0.15)
    assert paper.BY_SIZE["gaussian"]["PrivKV"][6] == pytest.approx(paper.BY_EPSILON["gaussian"]["PrivKV"][3], rel=0.001)
    assert paper.BY_SIZE["gaussian"]["PrivKV"][7] > 2 * 1e4 * theory("gaussian", 2.0, 500_000)


@pytest.mark.parametrize(("shape", "means"), [("gaussian", 0.2), ("linear", 0.3), ("power", 0.5)])
def test_the_default_beats_the_papers_method(shape: str, means: float) -> None:
    found = measure(shape, 2.0, 100_000, 60)
    assert found["KV3 + exact MLE"].frequency <= 0.5 * found["EM"].frequency
    assert found["KV3 + exact MLE"].mean <= means * found["EM"].mean


@pytest.fixture(scope="module")
def quick() -> tuple[Reproduction, list[float]]:
    steps: list[float] = []
    return reproduce(quick=True, progress=lambda share, _: steps.append(share)), steps


def test_a_quick_run_has_every_table_and_figure(quick: tuple[Reproduction, list[float]]) -> None:
    found, steps = quick
    assert unmade(found) == []
    numbered = [f"table-{number}" for number in range(2, 8)]
    assert [table.name for table in found.tables] == ["table-1", "example", *numbered, "far-cells", "ours"]
    assert [figure.name for figure in found.figures] == [f"figure-{number}" for number in range(2, 9)]
    assert all(figure.svg.lstrip().startswith("<?xml") for figure in found.figures)
    assert steps == sorted(steps)
    assert max(steps) < 1
    assert len(found.errata) == 13
    first = found.tables[0].rows[0]
    assert first[1] == pytest.approx(first[2], abs=5e-6), "table 1 is met to every printed digit"


def test_the_numerical_example_of_the_paper() -> None:
    """Section 3.2: p1 p2 at epsilon 1 with halves, printed as about 0.387455."""
    shares = [row[2] for row in example().rows]
    assert shares[0] == pytest.approx((1 / (1 + math.exp(-0.5))) ** 2, abs=1e-12)
    assert shares[0] == pytest.approx(paper.EXAMPLE, abs=1e-6)
    assert sum(shares) == pytest.approx(1)  # type: ignore[arg-type]


def test_the_headline_gains_are_computed_from_the_run(quick: tuple[Reproduction, list[float]]) -> None:
    found, _ = quick
    said = {claim.text: claim for claim in found.claims}
    assert len(said) == len(found.claims) == 18
    headline = said["at n = 10^4 and epsilon 5 means improve by 85.2 % on average of the three sets"]
    for n, words in ((paper.CONCLUSION, "{} in this run"), (paper.PEOPLE, "at n = 100,000, as in figures 2 to 4, {}.")):
        cells = {(shape, 5.0, n): measure(shape, 5.0, n, 6) for shape in paper.TABLE_1}
        measured = sum(gain(cells, shape, 5, n, what="mean") for shape in paper.TABLE_1) / 3
        assert words.format(f"{100 * measured:.1f} %") in headline.found
    assert measured == pytest.approx(0.851, abs=0.02), "the figure of the conclusion is that of 10^5 people"
    assert said["the numerical example: theta is 0.387455 after one report"].verdict == "holds"


def test_a_gain_is_judged_by_its_own_uncertainty(quick: tuple[Reproduction, list[float]]) -> None:
    """Ten trials of the paper and six of ours do not tell 36.2 % from what is simulated; a fixed half point did."""
    said = {claim.text: claim for claim in quick[0].claims}
    assert said["for the power law and n = 10^4 EM improves frequencies by 36.2 %"].verdict == "holds"
    own = said["at epsilon 0.1 EM improves the frequencies of the linear set by 60.62 % over PrivKV"]
    assert own.verdict == "holds in part", "the paper's own table 4 has another figure"
    average = said["at n = 10^4 and epsilon 0.1 frequencies improve by 69.5 % on average of the three sets"]
    assert average.verdict == "holds in part"
    assert "at n = 100,000" in average.found


def test_the_papers_own_table_against_its_own_words_is_named(quick: tuple[Reproduction, list[float]]) -> None:
    every = next(c for c in quick[0].claims if c.text == "EM has the least error of frequencies at every epsilon")
    assert "table 4 itself has PrivKVM (c=3) 1.279 below EM 1.282 at epsilon 5" in every.found


def test_cells_that_do_not_agree_are_listed_with_a_cause(quick: tuple[Reproduction, list[float]]) -> None:
    found, _ = quick
    far = next(table for table in found.tables if table.name == "far-cells")
    assert all(abs(float(str(row[6]))) > 3 and row[7] for row in far.rows)
    assert sum(row[2] == "n = 500,000" for row in far.rows) >= 6, "the last column of tables 5 to 7 is off for every method"
    assert far.title.startswith(f"Cells that do not agree: {len(far.rows)} of 135")


def test_every_item_of_the_paper_is_said_to_be_somewhere() -> None:
    names = [item.item for item in ITEMS]
    assert len(set(names)) == len(names)
    for number in range(1, 8):
        assert any(f"Table {number}" in name for name in names)
    for number in range(1, 9):
        assert any(f"Figure {number}" in name for name in names)
    for number in range(1, 4):
        assert any(f"Theorem {number}" in name for name in names)
