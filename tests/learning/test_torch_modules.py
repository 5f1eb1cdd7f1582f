from __future__ import annotations

import dataclasses
import shutil
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import DataError, ParameterError, ReleaseError, SimulatedError  # noqa: E402
from sabun.learning import sign_model, verify  # noqa: E402
from sabun.learning.clipping import ClippedSum  # noqa: E402
from sabun.learning.network import Network  # noqa: E402
from sabun.learning.poisson import PoissonPlan  # noqa: E402
from sabun.learning.stream import Stream  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.learning.torch_modules.ghost import clipped_gradients  # noqa: E402
from sabun.learning.torch_modules.loop import Loop, Training, plain_step  # noqa: E402
from sabun.learning.torch_modules.module_checks import check_module, needs_fallback  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402
from sabun.release import generate_key  # noqa: E402

LOSS = nn.CrossEntropyLoss(reduction="none")
KEY = generate_key()


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.inner(torch.relu(self.inner(x))))


def cases() -> dict[str, tuple[nn.Module, Any]]:
    torch.manual_seed(0)
    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(12, 4)),
        "sequence": (nn.Sequential(nn.Linear(4, 6, bias=False), nn.Flatten(), nn.Linear(30, 3)), torch.randn(12, 5, 4)),
        "long sequence": (nn.Sequential(nn.Linear(2, 2), nn.Flatten(), nn.Linear(60, 3)), torch.randn(12, 30, 2)),
        "convolution": (
            nn.Sequential(
                nn.Conv2d(2, 6, 3, padding=1, stride=2),
                nn.GroupNorm(2, 6),
                nn.ReLU(),
                nn.Conv2d(6, 4, 3, padding="same", groups=2),
                nn.Flatten(),
                nn.Linear(64, 3),
            ),
            torch.randn(12, 2, 8, 8),
        ),
        "reader": (
            nn.Sequential(
                nn.Embedding(11, 6, padding_idx=0),
                nn.Linear(6, 5),
                nn.LayerNorm(5),
                nn.ReLU(),
                nn.AdaptiveAvgPool1d(2),
                nn.Flatten(),
                nn.Linear(18, 3),
            ),
            torch.randint(0, 11, (12, 9)),
        ),
    }


@pytest.mark.parametrize("name", ["mlp", "sequence", "long sequence", "convolution", "reader"])
def test_ghosts_equal_written_out_gradients(name: str) -> None:
    module, x = cases()[name]
    y = torch.arange(12) % 3
    check_module(module, LOSS, x, y)
    assert not needs_fallback(module, LOSS)
    ghosts = clipped_gradients(module, LOSS, x, y, clip_norm=0.3)
    written = clipped_gradients(module, LOSS, x, y, clip_norm=0.3, fallback=True)
    assert set(ghosts) == set(written) == {name for name, _ in module.named_parameters()}
    for part, value in written.items():
        torch.testing.assert_close(ghosts[part], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "convolution", "reader"])
@pytest.mark.parametrize("clip", [1e-3, 0.5, 100.0])
def test_removing_an_example_changes_the_sum_by_at_most_one(name: str, clip: float) -> None:
    module, x = cases()[name]
    y = torch.arange(12) % 3
    whole = clipped_gradients(module, LOSS, x, y, clip_norm=clip)
    less = clipped_gradients(module, LOSS, x[1:], y[1:], clip_norm=clip)
    assert sum(float((whole[part] - less[part]).square().sum()) for part in whole) ** 0.5 <= 1 + 1e-5


def test_the_torch_path_equals_the_numpy_core() -> None:
    module, x = cases()["mlp"]
    y = torch.arange(12) % 3
    network = Network(sizes=(4, 8, 3))
    weights = np.concatenate([part.detach().numpy().astype(np.float64).T.ravel() for part in module.parameters()])
    ours = ClippedSum(network, clip_norm=0.3)(weights, x.numpy().astype(np.float64), y.numpy())
    theirs = clipped_gradients(module, LOSS, x, y, clip_norm=0.3)
    flat = np.concatenate([theirs[name].numpy().T.ravel() for name, _ in module.named_parameters()])
    np.testing.assert_allclose(ours, flat, atol=1e-5)


def test_an_example_that_overflows_counts_as_nothing() -> None:
    module, x = cases()["mlp"]
    y = torch.arange(12) % 3
    x[3] = torch.inf
    found = clipped_gradients(module, LOSS, x, y, clip_norm=1.0)
    rest = clipped_gradients(module, LOSS, torch.cat([x[:3], x[4:]]), torch.cat([y[:3], y[4:]]), clip_norm=1.0)
    for part, value in rest.items():
        torch.testing.assert_close(found[part], value, rtol=1e-4, atol=1e-5)


def test_frozen_parameters_stay_out() -> None:
    module, x = cases()["mlp"]
    module[0].weight.requires_grad_(False)
    found = clipped_gradients(module, LOSS, x, torch.arange(12) % 3, clip_norm=1.0)
    assert set(found) == {"0.bias", "2.weight", "2.bias"}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), "got BatchNorm1d at '1', which mixes the examples"),
        (nn.Sequential(nn.ReLU()), "module must have parameters that require gradients"),
    ],
)
def test_modules_that_mix_examples_are_refused(module: nn.Module, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        check_module(module, LOSS, torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))


def test_a_loss_over_the_whole_batch_is_refused() -> None:
    module, x = cases()["mlp"]
    with pytest.raises(ParameterError, match="loss must give one number for each example"):
        check_module(module, nn.CrossEntropyLoss(), x, torch.arange(12) % 3)


def test_other_layers_are_written_out_with_a_notice() -> None:
    with pytest.warns(UserWarning, match="Twice at '' is not among the layers with a proof: per-example gradients are"):
        assert needs_fallback(Twice(), LOSS)
    odd = nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(9, 3))
    with pytest.warns(UserWarning, match="Conv1d at '0' is not among the layers with a proof"):
        assert needs_fallback(odd, LOSS)
    found = clipped_gradients(odd, LOSS, torch.randn(6, 2, 4), torch.arange(6) % 3, clip_norm=1.0, fallback=True)
    assert set(found) == {name for name, _ in odd.named_parameters()}


def table(count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(count, 4))
    return rows, (rows[:, 0] > 0).astype(np.int64)


def trainer(**changes: Any) -> TorchTrainer:
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return TorchTrainer(module, **({"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.2, "epochs": 3} | changes))


def test_a_module_is_trained_saved_and_verified(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=3, delta=0.1)
    done = trainer(ledger=book).fit(*table())
    assert book.spent.epsilon == 2
    assert done.guarantee_.relation == "replace-one"
    done.save(tmp_path / "model")
    assert "not above the promise" in verify(tmp_path / "model")
    state = torch.load(tmp_path / "model" / "state_dict.pt")
    assert set(state) == {"0.weight", "0.bias", "2.weight", "2.bias"}


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> tuple[TorchTrainer, Path]:
    done, place = trainer().fit(*table()), tmp_path_factory.mktemp("signed") / "model"
    done.save(place)
    sign_model(place, KEY)
    return done, place


def test_every_file_of_a_signed_module_is_covered(handed_over: tuple[TorchTrainer, Path], tmp_path: Path) -> None:
    done, place = handed_over
    assert "every file is signed by the trusted key" in verify(place, public_key=KEY.public_key())
    with pytest.raises(DataError, match="exists already"):
        done.save(place)
    for name in ("state_dict.pt", "model.safetensors", "model.onnx"):
        forged = Path(shutil.copytree(place, tmp_path / name))
        (forged / name).write_bytes(b"junk")
        with pytest.raises(ReleaseError):
            verify(forged)


def test_a_module_signed_before_there_were_lists_says_what_its_signature_covers(
    handed_over: tuple[TorchTrainer, Path], tmp_path: Path
) -> None:
    release, older = handed_over[0].release_, Path(shutil.copytree(handed_over[1], tmp_path / "older"))
    value = {name: release.value[name] for name in ("model_sha256", "n_parameters")}
    dataclasses.replace(release, value=value).sign(KEY).save(older / "release.json", overwrite=True)
    (older / "files.json").unlink()
    found = verify(older, public_key=KEY.public_key())
    assert "which covers the promise, model.safetensors, but not the words of the card, state_dict.pt" in found
    (older / "model.safetensors").write_bytes(b"junk")
    with pytest.raises(ReleaseError, match="SHA-256 differs"):
        verify(older, public_key=KEY.public_key())


def test_onnx_gives_the_same_answers(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra: pip install 'sabun[learning]'")
    done = trainer().fit(*table())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates its own exporter
        done.save(tmp_path / "model", example=torch.zeros(2, 4))
    rows = table()[0][:5].astype(np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "model" / "model.onnx"))
    np.testing.assert_allclose(
        session.run(None, {"rows": rows})[0], done.module(torch.from_numpy(rows)).detach().numpy(), atol=1e-5
    )


def test_a_seeded_module_cannot_be_saved(tmp_path: Path) -> None:
    done = trainer(random_state=1).fit(*table())
    with pytest.raises(SimulatedError):
        done.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="the trainer must be fitted before it is saved"):
        trainer().save(tmp_path / "model")


def test_training_is_in_pieces_of_any_size() -> None:
    results = []
    for most in (7, 4096):
        torch.manual_seed(3)
        done = trainer(random_state=5, most_rows=most, relation="replace-one").fit(*table())
        results.append(torch.cat([p.detach().flatten() for p in done.module.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must be finite and > 0"),
        ({"delta": 0}, "delta must be finite and > 0"),
        ({"loss": "mse"}, "loss must be 'cross_entropy' or a function"),
        ({"sampling_rate": 0}, "sampling_rate must be above 0 and at most 1"),
        ({"relation": "local"}, "relation must be one of"),
        ({"momentum": 1}, "momentum must be at least 0 and below 1"),
    ],
)
def test_bad_settings_are_refused_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        trainer(**changes)
    with pytest.raises(ParameterError, match=r"module must be a torch.nn.Module"):
        TorchTrainer("net")


def test_tables_of_different_length_are_refused() -> None:
    rows, labels = table()
    with pytest.raises(DataError, match="X and y must have as many rows as each other"):
        trainer().fit(rows, labels[:-1])


@pytest.mark.parametrize("noise", ["certified", "torch"])
def test_an_empty_batch_is_a_step_of_noise(noise: str) -> None:
    module, x = cases()["mlp"]
    before = torch.cat([p.detach().flatten() for p in module.parameters()]).clone()
    loop = Loop(plan=PoissonPlan(threshold=1, steps=1), multiplier=Fraction(1), clip_norm=1.0, learning_rate=1.0, noise=noise)
    Training(loop, module, LOSS, x[:0], (torch.arange(12) % 3)[:0], stream=Stream(bytes(32)), divisor=10.0).advance()
    after = torch.cat([p.detach().flatten() for p in module.parameters()])
    assert float((after - before).std()) == pytest.approx(0.1, rel=0.4)


def test_a_plain_step_lowers_the_loss() -> None:
    module, x = cases()["mlp"]
    y = torch.arange(12) % 3
    before = float(LOSS(module(x), y).mean().detach())
    plain_step(module, LOSS, x, y, learning_rate=0.1)
    assert float(LOSS(module(x), y).mean().detach()) < before
