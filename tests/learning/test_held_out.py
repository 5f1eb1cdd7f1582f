"""What is measured on held-out rows, and that it is said whose they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cli.terminal import exit_code
from sabun.errors import DataError
from sabun.learning import Model
from sabun.learning.features import Features
from sabun.learning.held_out import Right, evaluate
from sabun.learning.network import Network

# One input, two classes; the second class is as likely as sigmoid(4 x).
MODEL = Model(
    network=Network(sizes=(1, 2)),
    weights=np.array([0.0, 4.0, 0.0, 0.0]),
    features=Features(schema=None, names=("x0",)),
    classes=("no", "yes"),
)


def test_right_guess_and_groups_are_counted() -> None:
    rows = np.array([[1.0], [1.0], [-1.0], [-1.0], [1.0]])
    found = evaluate(
        MODEL, rows, ["yes", "no", "no", "no", "maybe"], groups=["F", "M", "F", "M", "F"], of_groups=["F", "M", "X"]
    )
    assert (found.overall, found.guess, found.unknown) == (Right(rows=4, right=3), Right(rows=4, right=3), 1)
    assert found.groups == {"F": Right(rows=2, right=2), "M": Right(rows=2, right=1), "X": Right(rows=0, right=0)}
    assert str(found).startswith("NOT PRIVATE: ")
    assert not str(evaluate(MODEL, rows, ["yes"] * 5, private=False)).startswith("NOT PRIVATE")
    with pytest.raises(DataError, match="as many as each other"):
        evaluate(MODEL, rows, ["yes"])


def test_calibration_is_the_distance_of_word_and_deed() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000)
    yes = rng.random(20_000) < 1 / (1 + np.exp(-4 * x))
    honest = evaluate(MODEL, x[:, None], np.where(yes, "yes", "no"))
    assert honest.calibration_error is not None
    assert honest.calibration_error < 0.02  # each tenth of the scale has hundreds of rows: its error is below .02
    boastful = evaluate(MODEL, x[:, None], np.where(rng.random(20_000) < 0.5, "yes", "no"))
    assert boastful.calibration_error is not None
    assert boastful.calibration_error > 0.3


def test_the_interval_of_a_share_holds_it_as_often_as_it_says() -> None:
    """Counted out: at most half of the stated misses on either side, whatever the share is."""
    for rows in (1, 7, 50):
        low, high = np.array([Right(rows=rows, right=right).interval for right in range(rows + 1)]).T
        for share in np.linspace(0.01, 0.99, 99):
            chances = stats.binom.pmf(np.arange(rows + 1), rows, share)
            assert max(chances[low > share].sum(), chances[high < share].sum()) <= 0.025 + 1e-9
    assert Right(rows=0, right=0).interval == (0.0, 1.0)
    assert str(Right(rows=0, right=0)) == "no rows"


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    lines = ["id,age,sex,sick"]
    for number in range(300):
        age = rng.uniform(0, 100)
        lines.append(f"p{number},{age:.1f},{rng.choice(['F', 'M'])},{'yes' if age > 50 else 'no'}")
    Path("t.csv").write_text("\n".join(lines) + "\n")
    shape = ("--bounds", "age=0:100", "--target", "sick", "--classes", "no,yes", "--epsilon", "8")
    assert exit_code("learning", "train", "t.csv", *shape, "--out", "model") == 0
    return tmp_path


def test_a_model_is_evaluated_from_the_command_line(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert exit_code("learning", "evaluate", "model", "t.csv", "--target", "sick", "--by", "sex=F,M") == 0
    said = capsys.readouterr().out
    assert said.startswith("NOT PRIVATE")
    assert "\n  F: " in said
    assert exit_code("learning", "evaluate", "model", "t.csv", "--public", "--json") == 0  # its card says the target
    found = json.loads(capsys.readouterr().out)
    assert found["private"] is False
    assert found["accuracy"]["rows"] == 300
    assert found["accuracy"]["share"] > 0.7


def test_predictions_stand_beside_what_was_kept(trained: Path) -> None:
    assert exit_code("learning", "predict", "model", "t.csv", "--keep", "id", "--out", "p.csv") == 0
    lines = Path("p.csv").read_text().splitlines()
    assert lines[0] == "id,class,probability"
    assert [line.partition(",")[0] for line in lines[1:]] == [f"p{number}" for number in range(300)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--target", "ill"), "the table must have a column 'ill'"),
        (("--target", "sick", "--by", "sex"), "by must list the public labels"),
    ],
)
def test_a_mistake_is_explained(more: tuple[str, ...], words: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("learning", "evaluate", "model", "t.csv", *more) == 2
    assert words in capsys.readouterr().err
