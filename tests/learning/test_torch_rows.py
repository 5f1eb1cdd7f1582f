"""What a trainer is given, and what it refuses before anything is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import DataError, ParameterError, SabunError  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.learning.torch_modules.rows import Rows  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402

INPUTS = np.random.default_rng(0).random((60, 3))
CLASSES = (INPUTS[:, 0] > 0.5).astype(np.int64)


class OneOutput(nn.Module):
    """No chain, so that its outputs are known from its answer alone."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.out(x)


def refused(tmp_path: Path, module: nn.Module, X: Any, y: Any, **settings: Any) -> SabunError:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=9, delta=0.1)
    with pytest.raises(SabunError) as caught:
        TorchTrainer(module, epsilon=1, delta=1e-3, ledger=book, **settings).fit(X, y)
    assert book.spent.epsilon == 0
    return caught.value


def read(X: Any, y: Any, module: nn.Module | None = None, *, input_bound: float = 10.0) -> Rows:
    loss, place = nn.CrossEntropyLoss(reduction="none"), torch.device("cpu")
    return Rows.of(X, y, module=module or nn.Linear(3, 2), loss=loss, input_bound=input_bound, tokens=None, device=place)


@pytest.mark.filterwarnings("ignore:.*per-example gradients are written out")
@pytest.mark.parametrize("module", [nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), OneOutput()])
@pytest.mark.parametrize("loss", ["cross_entropy", nn.CrossEntropyLoss(reduction="none")])
def test_cross_entropy_over_one_output_is_refused_before_the_charge(tmp_path: Path, module: nn.Module, loss: Any) -> None:
    error = refused(tmp_path, module, INPUTS, CLASSES, loss=loss)
    assert isinstance(error, ParameterError)
    assert "at least two outputs for cross entropy" in str(error)
    assert "binary_cross_entropy_with_logits(outputs[:, 0], y, reduction='none')" in str(error)


def test_a_plan_refuses_one_output_too_where_the_layers_tell_it() -> None:
    with pytest.raises(ParameterError, match="at least two outputs"):
        TorchTrainer(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), delta=1e-3).plan(n_records=100)
    for module in (nn.Linear(3, 2), nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 1), nn.Flatten()), OneOutput()):
        TorchTrainer(module, delta=1e-3).plan(n_records=100)


def binary(outputs: Any, y: Any) -> Any:
    return nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], y, reduction="none")


@pytest.mark.filterwarnings("ignore:.*per-example gradients are written out")
def test_the_loss_that_a_refusal_names_learns_from_one_output() -> None:
    torch.manual_seed(0)
    module = nn.Linear(3, 1)
    rows = torch.rand(2000, 3)
    trainer = TorchTrainer(module, epsilon=1000, delta=1e-5, loss=binary, learning_rate=1.0, random_state=1)
    trainer.fit(rows, (rows[:, 0] > 0.5).float())
    with torch.no_grad():
        assert float(((module(rows)[:, 0] > 0) == (rows[:, 0] > 0.5)).float().mean()) > 0.9


FRAMES = {
    "a frame": (pd.DataFrame(INPUTS, columns=list("abc")), pd.Series(CLASSES, index=range(5, 65))),
    "columns of several types": (pd.DataFrame(INPUTS, columns=list("abc")).assign(b=True), pd.Series(CLASSES).astype("Int8")),
    "an arrow table": (pa.table({name: INPUTS[:, i] for i, name in enumerate("abc")}), pa.chunked_array([CLASSES])),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_numbers_are_read_as_the_arrays_they_hold(name: str) -> None:
    X, y = FRAMES[name]
    found = read(X, y)
    wanted = read(np.array(X, dtype=float) if isinstance(X, pd.DataFrame) else INPUTS, CLASSES)
    assert torch.equal(found.x, wanted.x)
    assert torch.equal(found.y, wanted.y)
    TorchTrainer(nn.Linear(3, 2), epsilon=1, delta=1e-3, epochs=1, random_state=1).fit(X, y)


def test_whole_numbers_stay_whole_for_a_table_and_are_numbers_for_a_product() -> None:
    whole = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    assert read(whole, [0, 1], nn.Sequential(nn.Embedding(9, 2), nn.Flatten(), nn.Linear(6, 2))).x.dtype == torch.int64
    for X in (whole, whole.to_numpy(), torch.tensor(whole.to_numpy())):
        found = read(X, [0, 1])
        assert found.x.dtype == torch.float32
        assert found.x.tolist() == whole.to_numpy().tolist()


LAID_OUT = {
    "rows backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "columns backwards": lambda X: np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    "columns in order": np.asfortranarray,
    "bytes in the other order": lambda X: X.astype(">f8"),
    "long numbers": lambda X: X.astype(np.longdouble),
    "names of every kind": lambda X: pd.DataFrame(X[:, :2]).assign(k=X[:, 2]).astype({0: "float32"}).astype({0: "float64"}),
    "names of every kind, several types": lambda X: pd.DataFrame(X[:, :2]).assign(k=X[:, 2]).astype({0: "Float64"}),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_numbers_are_numbers_however_they_lie_and_are_called(name: str) -> None:
    assert torch.equal(read(LAID_OUT[name](INPUTS), CLASSES[::-1][::-1]).x, read(INPUTS, CLASSES).x)


def test_numbers_of_16_bits_are_taken_though_they_end_below_the_bound() -> None:
    found = read(INPUTS.astype(np.float16), CLASSES, input_bound=1e6)
    assert torch.equal(found.x, torch.tensor(INPUTS.astype(np.float16)).float())


def test_labels_may_be_a_frame_of_one_column() -> None:
    for y in (pd.DataFrame({"y": CLASSES}), pa.table({"y": CLASSES})):
        assert torch.equal(read(INPUTS, y).y, read(INPUTS, CLASSES).y)


def test_names_that_are_there_twice_are_refused_in_our_own_words(tmp_path: Path) -> None:
    twice = pd.DataFrame(INPUTS, columns=["secret", "secret", "b"])
    error = refused(tmp_path, nn.Linear(3, 2), twice.astype({"b": "Float64"}), CLASSES)
    assert isinstance(error, DataError)
    assert "secret" not in str(error)


def test_the_likelihood_of_a_single_class_is_refused_too(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(3, 1), nn.LogSoftmax(dim=1))
    error = refused(tmp_path, module, INPUTS, CLASSES * 0, loss=nn.NLLLoss(reduction="none"))
    assert "at least two outputs" in str(error)


def test_a_missing_cell_of_a_frame_leaves_its_row_out_and_raises_nothing() -> None:
    frame = pd.DataFrame(INPUTS, columns=list("abc")).astype("Float64")
    frame.loc[3, "b"] = pd.NA
    labels = pd.Series(CLASSES).astype("Int64")
    labels[7] = pd.NA
    found = read(frame, labels)
    assert len(found.x) == 58
    assert found.count == 60


STRANGE = {
    "labels of text": (INPUTS, np.array(["secret"] * 60)),
    "labels in a column of text": (INPUTS, pd.Series(["secret"] * 60)),
    "labels in a list of text": (INPUTS, ["secret"] * 60),
    "labels as objects": (INPUTS, CLASSES.astype(object)),
    "labels of dates": (INPUTS, np.array(["2020-01-01"] * 60, dtype="datetime64[D]")),
    "no labels": (INPUTS, None),
    "no inputs": (None, CLASSES),
    "a frame with text": (pd.DataFrame(INPUTS).assign(a="secret"), CLASSES),
    "an array of objects": (INPUTS.astype(object), CLASSES),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_number_is_refused_in_our_own_words(name: str, tmp_path: Path) -> None:
    error = refused(tmp_path, nn.Linear(3, 2), *STRANGE[name])
    assert isinstance(error, DataError)
    assert str(error).startswith("X must be numbers" if "inputs" in name or name.startswith("a") else "y must be numbers")
    assert "secret" not in str(error)
    assert error.__suppress_context__
