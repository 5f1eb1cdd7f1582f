"""Ways in which one row once moved more than its own summand, or an error spoke of a row."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import DataError, ParameterError  # noqa: E402
from sabun.learning.poisson import PoissonPlan  # noqa: E402
from sabun.learning.stream import Stream  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.learning.torch_modules.ghost import Clipper  # noqa: E402
from sabun.learning.torch_modules.loop import Loop, Training  # noqa: E402
from sabun.learning.torch_modules.paths import why_written_out  # noqa: E402
from sabun.learning.torch_modules.rows import Rows  # noqa: E402
from sabun.learning.torch_modules.run import ModuleRun  # noqa: E402

LOSS = nn.CrossEntropyLoss(reduction="none")
LABELS = torch.arange(40) % 2


@pytest.fixture(autouse=True)
def cheap_pricing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.learning.torch_modules.trainer.noise_multiplier", lambda *_: Fraction(2))
    monkeypatch.setattr("sabun.learning.torch_modules.run.spent_after", lambda *_: Fraction(1))


def trainer(module: nn.Module, **changes: Any) -> TorchTrainer:
    settings: dict[str, Any] = {"epsilon": 1, "sampling_rate": 0.5, "epochs": 2, "n_public": 40}
    return TorchTrainer(module, **settings | changes)


def run_of(asked: TorchTrainer, x: Any, y: Any) -> ModuleRun:
    return asked._run(asked._ask(), x, y)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.out(x + torch.rand(1))


@pytest.mark.parametrize("module", [nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)), Noisy()])
@pytest.mark.filterwarnings("ignore:.*written out")
def test_a_module_that_draws_random_numbers_is_refused(module: nn.Module) -> None:
    with pytest.raises(ParameterError, match=r"module must not draw random numbers; got .* Leave out dropout"):
        run_of(trainer(module), torch.randn(40, 3), LABELS)


@pytest.mark.parametrize("training", [False, True])
def test_no_random_number_is_drawn_for_a_row(training: bool) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)).train(training)
    clipper = Clipper(module, LOSS, clip_norm=1.0)
    if training:
        with pytest.raises(RuntimeError, match="randomness"):
            clipper(torch.randn(4, 3), LABELS[:4])
    else:
        assert clipper(torch.randn(4, 3), LABELS[:4])


def piece(module: nn.Module, x: Any, *, divisor: float, most: int | None = None) -> int:
    plan = PoissonPlan(threshold=1, steps=1)
    loop = Loop(plan=plan, multiplier=Fraction(1), clip_norm=1.0, learning_rate=1.0, most_rows=most)
    return Training(loop, module, LOSS, x, LABELS, stream=Stream(bytes(32)), divisor=divisor)._piece


@pytest.mark.parametrize("divisor", [1.0, 70.0, 200.0, 1790.0, 5e4, 1e6])
@pytest.mark.parametrize("most", [None, 1, 100, 4096])
def test_pieces_of_a_chain_are_multiples_of_64(divisor: float, most: int | None) -> None:
    wide = nn.Sequential(nn.Conv2d(600, 600, 1), nn.Flatten(), nn.Linear(600, 2))
    for module, x in ((network(), torch.zeros(40, 3)), (wide, torch.zeros(40, 600, 1, 1))):
        rows = piece(module, x, divisor=divisor, most=most)
        assert rows % 64 == 0
        assert 64 <= rows <= 4096


def test_many_pieces_add_up_to_the_sum_over_all_rows() -> None:
    module, x = network(), torch.randn(40, 3)
    plan = PoissonPlan(threshold=1, steps=1)
    loop = Loop(plan=plan, multiplier=Fraction(1), clip_norm=1.0, learning_rate=1.0)
    training = Training(loop, module, LOSS, x, LABELS, stream=Stream(bytes(32)), divisor=10.0)
    batch = np.arange(64 * 300 + 5) % 40
    once = training._sum(np.arange(40))
    rest = training._sum(np.arange(len(batch) % 40))
    torch.testing.assert_close(training._sum(batch), len(batch) // 40 * once + rest, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [
        (nn.Conv2d(1, 2, 1), "_conv_forward", lambda x, w, b: x - x.mean(0)),
        (nn.Tanh(), "_call_impl", lambda x: torch.tanh(x - x.mean(0))),
        (nn.Tanh(), "_compiled_call_impl", lambda x: torch.tanh(x - x.mean(0))),
        (nn.Tanh(), "forward", lambda x: torch.tanh(x - x.mean(0))),
    ],
)
def test_methods_put_on_a_layer_or_loss_are_not_trusted(layer: nn.Module, name: str, value: Any) -> None:
    assert why_written_out(nn.Sequential(layer, nn.Linear(2, 2)), LOSS) is None
    setattr(layer, name, value)
    assert why_written_out(nn.Sequential(layer, nn.Linear(2, 2)), LOSS) is not None
    loss = nn.CrossEntropyLoss(reduction="none")
    if name != "_conv_forward":
        setattr(loss, name, value)
        assert why_written_out(nn.Sequential(nn.Linear(2, 2)), loss) == "the loss is not the built-in cross entropy"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most_rows": 4097}, "most_rows must be at most 4096; got 4097"),
        ({"clip_norm": 1e-7}, "clip_norm must be between 1e-6 and 1e6"),
        ({"clip_norm": 2e6}, "clip_norm must be between 1e-6 and 1e6"),
    ],
)
def test_settings_beyond_the_claim_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        trainer(network(), **changes)


def test_the_guarantee_names_its_largest_batch_and_the_seed_of_torch_noise() -> None:
    x = torch.randn(40, 3)
    assert "up to a million rows" in " / ".join(run_of(trainer(network()), x, LABELS).guarantee.assumptions)
    words = " / ".join(run_of(trainer(network(), noise="torch"), x, LABELS).guarantee.assumptions)
    assert "its seed has 32 bits, so that the noise can be guessed" in words


@pytest.mark.parametrize(
    "other",
    [{"weight": torch.tensor([1.0, 1.0, 1e6])}, {"label_smoothing": 0.5}, {"ignore_index": 2}],
    ids=lambda o: next(iter(o)),
)
def test_a_run_does_not_go_on_with_another_loss(tmp_path: Path, other: dict[str, Any]) -> None:
    x = torch.randn(40, 3)

    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt

    first = nn.CrossEntropyLoss(reduction="none", weight=torch.ones(3))
    with pytest.raises(KeyboardInterrupt):
        trainer(network(), loss=first, checkpoint=tmp_path / "run", progress=stop).fit(x, LABELS)
    second = nn.CrossEntropyLoss(reduction="none", **{"weight": torch.ones(3)} | other)
    with pytest.raises(DataError, match="must go on with the same data"):
        trainer(network(), loss=second, checkpoint=tmp_path / "run").fit(x, LABELS)
    trainer(network(), loss=first, checkpoint=tmp_path / "run").fit(x, LABELS)


def test_tokens_never_pass_the_table() -> None:
    module = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 2))
    x = torch.full((40, 3), 50)
    place = torch.device("cpu")
    for tokens, most in ((100, 9), (5, 4), (None, 9)):
        rows = Rows.of(x, LABELS, module=module, loss=LOSS, input_bound=1.0, tokens=tokens, device=place)
        assert int(rows.x.max()) == most


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("fallback", [False, True])
def test_a_search_for_anomalies_does_not_speak_of_a_row(fallback: bool) -> None:
    module, x = network(), torch.randn(4, 3)
    with torch.no_grad():
        module[0].weight.fill_(9.0)
    x[2] = 3e38
    with torch.autograd.set_detect_anomaly(True):
        found = Clipper(module, LOSS, clip_norm=1.0, fallback=fallback)(x, LABELS[:4])
    assert all(bool(torch.isfinite(value).all()) for value in found.values())


def test_a_number_times_its_share_is_finite_in_single() -> None:
    module = nn.Sequential(nn.Linear(1, 2, bias=False), nn.Linear(2, 2, bias=False))
    module[1].weight.data = torch.tensor([[1e38, 0.0], [0.0, 1.0]])
    module[1].weight.requires_grad_(False)
    x = torch.full((4, 1), 1e-45)
    found = Clipper(module, LOSS, clip_norm=1e-6, precision="single")(x, LABELS[:4])["0.weight"]
    assert math.isfinite(float(found.norm()))


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x: Any) -> Any:
        return self.b(self.a(x))


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 2, dtype=torch.complex64))

    def forward(self, x: Any) -> Any:
        return (x.to(torch.complex64) @ self.w).abs()


class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def __deepcopy__(self, memo: Any) -> Keeping:
        return self

    def forward(self, x: Any) -> Any:
        self.last = x
        return self.out(x)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Tied(), "parameters must not share memory; got 'a.weight' with 'b.weight'"),
        (Complex(), "parameters must be real numbers; got torch.complex64 at 'w'"),
        (Keeping(), "module must be copyable; got Keeping, whose copy shares parts with it"),
        (nn.Sequential(Keeping()), "module must be copyable; got Sequential, whose copy shares parts with it"),
    ],
)
def test_modules_that_cannot_be_kept_apart_are_refused(module: nn.Module, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        trainer(module).fit(torch.randn(40, 3), LABELS)
