from __future__ import annotations

import pytest

from sabun.keyvalue.reproduction import _theory, measure, paper, reproduce

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
def test_privkv_has_the_variance_of_the_theory(shape: str) -> None:
    found = measure(shape, 1.0, 100_000, 60)["PrivKV"]
    assert abs(found.frequency - _theory(shape, 1.0, 100_000)) < 4 * found.frequency_error


def test_the_papers_columns_are_thousands_of_people() -> None:
    """Theory at n in thousands is within a few percent of what the paper prints; in tens of thousands it is ten times off."""
    printed = paper.BY_SIZE["gaussian"]["PrivKV"][:7]
    theory = [1e4 * _theory("gaussian", 2.0, n) for n in paper.SIZES[:7]]
    assert printed == pytest.approx(theory, rel=0.15)
    assert paper.BY_SIZE["gaussian"]["PrivKV"][6] == pytest.approx(paper.BY_EPSILON["gaussian"]["PrivKV"][3], rel=0.001)
    assert paper.BY_SIZE["gaussian"]["PrivKV"][7] > 2 * 1e4 * _theory("gaussian", 2.0, 500_000)


@pytest.mark.parametrize(("shape", "means"), [("gaussian", 0.2), ("linear", 0.3), ("power", 0.5)])
def test_the_default_beats_the_papers_method(shape: str, means: float) -> None:
    found = measure(shape, 2.0, 100_000, 60)
    assert found["KV3 + exact MLE"].frequency <= 0.5 * found["EM"].frequency
    assert found["KV3 + exact MLE"].mean <= means * found["EM"].mean


def test_a_quick_run_has_every_table_and_figure() -> None:
    steps: list[float] = []
    found = reproduce(quick=True, progress=lambda share, _: steps.append(share))
    assert [table.name for table in found.tables] == [*(f"table-{number}" for number in range(1, 8)), "ours"]
    assert [figure.name for figure in found.figures] == [f"figure-{number}" for number in range(2, 9)]
    assert all(figure.svg.lstrip().startswith("<?xml") for figure in found.figures)
    assert steps == sorted(steps)
    assert max(steps) < 1
    assert len(found.errata) == 12
    first = found.tables[0].rows[0]
    assert first[1] == pytest.approx(first[2], abs=5e-6), "table 1 is met to every printed digit"
