"""Modules and rows that an adversarial reading once broke the torch path with; each is now refused or stays within one."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import InternalError, ParameterError  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.learning.torch_modules.ghost import clipped_gradients  # noqa: E402
from sabun.learning.torch_modules.module_checks import check_module, needs_fallback  # noqa: E402
from sabun.learning.torch_modules.paths import why_written_out  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402

LOSS = nn.CrossEntropyLoss(reduction="none")
FLOAT = 1e-4
"""What kernels may round differently for batches of different size; the mixing below moved sums by tens and hundreds."""


class Capped(nn.Module):
    def __init__(self, *, freeze: bool) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(10, 4, max_norm=0.5), nn.Linear(4, 2)
        self.table.weight.requires_grad_(not freeze)

    def forward(self, x: Any) -> Any:
        return self.out(self.table(x).mean(1))


class Peak(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("peak", torch.zeros(3), persistent=False)
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        if self.training:
            self.peak = torch.maximum(self.peak, x.detach().amax(0))
        return self.out(x)


class Bank(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bank", torch.zeros(2, 3))
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        self.bank[0] = x.detach()[0]
        return self.out(x)


class Batch(nn.modules.batchnorm._BatchNorm):
    def _check_input_dim(self, input: Any) -> None:
        pass


class TrainedMean(nn.Module):
    def forward(self, x: Any) -> Any:
        return x - x.mean(0, keepdim=True) if self.training else x


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normal = nn.LayerNorm(4)
        self.query, self.key, self.value, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        with torch.no_grad():
            self.query.weight.mul_(20)
            self.key.weight.mul_(20)

    def forward(self, x: Any) -> Any:
        h = self.normal(x)
        return self.out(h + torch.softmax(self.query(h) @ self.key(h).T, 1) @ self.value(h))


class FunctionalBatchNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normal, self.inner, self.out = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        h = self.inner(self.normal(x))
        return self.out(torch.relu(h - h.mean(0, keepdim=True)) / (1 + h.std(0, correction=0, keepdim=True)))


class Constant(nn.Module):
    """A layer is called on something that has no batch dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("t", torch.ones(1, 3))
        self.p, self.o = nn.Linear(3, 4), nn.Linear(4, 2)
        self.p.weight.requires_grad_(False)
        with torch.no_grad():
            self.p.weight.zero_(), self.p.bias.zero_(), self.o.bias.zero_()

    def forward(self, x: Any) -> Any:
        return self.o(x + self.p(self.t))


class Positions(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.p, self.o, self.length = nn.Embedding(length, 4), nn.Linear(4, 2), length

    def forward(self, x: Any) -> Any:
        return self.o((x + self.p(torch.arange(self.length))).mean(1))


class Difference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(8, 8), nn.Linear(8, 2)
        with torch.no_grad():
            self.inner.weight.mul_(1e-4)
            self.out.weight.copy_(torch.tensor([[1.0], [-1.0]]).repeat(1, 8) * 0.5)

    def forward(self, x: Any) -> Any:
        h = self.inner(x)
        return self.out(h[:, 0] - h[:, 1])


def zero_head(*layers: nn.Module) -> nn.Module:
    head = nn.Linear(4, 2)
    nn.init.zeros_(head.weight)
    return nn.Sequential(*layers, head)


def size(parts: dict[str, Any]) -> float:
    return float(torch.sqrt(sum(part.double().square().sum() for part in parts.values())))


@pytest.mark.parametrize(
    ("module", "x", "message"),
    [
        (Capped(freeze=True), torch.zeros(5, 2, dtype=torch.long), "max_norm must be None; Embedding at 'table' rewrites"),
        (Capped(freeze=False), torch.zeros(5, 2, dtype=torch.long), "max_norm must be None"),
        (Peak(), torch.zeros(5, 3), "buffers must not change in training; 'peak' does"),
        (Bank(), torch.zeros(5, 3), "buffers must not change in training; 'bank' does"),
        (nn.Sequential(nn.LayerNorm(4), Batch(4, affine=False), nn.Linear(4, 2)), torch.zeros(5, 4), "got Batch at '1'"),
        (nn.Sequential(nn.InstanceNorm1d(3), nn.Flatten(), nn.Linear(9, 2)), torch.zeros(5, 3, 3), "got InstanceNorm1d"),
    ],
)
def test_state_that_would_be_released_without_noise_is_refused(module: nn.Module, x: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        check_module(module, LOSS, x, torch.zeros(5, dtype=torch.long))


@pytest.mark.parametrize("lazy", [nn.LazyInstanceNorm1d, nn.LazyBatchNorm1d, nn.LazyLinear])
def test_modules_that_are_not_built_yet_are_refused(lazy: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that lazy modules are new
        module = nn.Sequential(lazy(2) if lazy is nn.LazyLinear else lazy(track_running_stats=True), nn.Linear(2, 2))
    with pytest.raises(ParameterError, match="module must be fully built; got Lazy"):
        check_module(module, LOSS, torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))


MIXING = {
    "mean in training, given in eval mode": lambda: nn.Sequential(TrainedMean(), nn.Linear(4, 2)).eval(),
    "attention over the batch": Attention,
    "batch statistics after layer norm": FunctionalBatchNorm,
    "mean before a zero head": lambda: zero_head(TrainedMean()),
    "softmax over the batch": lambda: zero_head(nn.LayerNorm(4), nn.Softmax(dim=0)),
    "a layer on a constant": Constant,
}


@pytest.mark.parametrize("name", MIXING)
def test_mixing_modules_are_written_out_and_stay_within_one(name: str) -> None:
    torch.manual_seed(0)
    module = MIXING[name]()
    x, y = 0.01 * torch.randn(100, 4), torch.arange(100) % 2
    check_module(module, LOSS, x, y)
    with pytest.warns(UserWarning, match="written out"):
        assert needs_fallback(module, LOSS)
    before = clipped_gradients(module, LOSS, x, y, clip_norm=1.0)
    for row in (torch.tensor([[1e6, 0.0, 0.0, 0.0]]), 5 * torch.randn(1, 4), torch.zeros(1, 4)):
        for label in (0, 1):
            after = clipped_gradients(module, LOSS, torch.cat([x, row]), torch.cat([y, torch.tensor([label])]), clip_norm=1.0)
            assert size({part: after[part] - before[part] for part in before}) <= 1 + FLOAT


def test_positions_of_as_many_rows_as_places_stay_within_two_when_one_is_replaced() -> None:
    module, x, y = Positions(16), torch.zeros(16, 16, 4), torch.arange(16) % 2
    other = y.clone()
    other[0] = 1
    one, two = (clipped_gradients(module, LOSS, x, labels, clip_norm=1.0) for labels in (y, other))
    assert size({part: one[part] - two[part] for part in one}) <= 2 + FLOAT


@pytest.mark.parametrize(
    ("magnitude", "apart", "clip"), [(1e6, 300.0, 1.0), (1e3, 0.3, 0.1), (255.0, 0.1, 0.01), (1.0, 3e-4, 1e-4)]
)
@pytest.mark.parametrize("ghost", [True, False])
def test_terms_that_cancel_do_not_pass_the_clip_norm(magnitude: float, apart: float, clip: float, ghost: bool) -> None:
    torch.manual_seed(0)
    # Averaging h over places with opposite signs makes gradients of a chain cancel as the difference does.
    chain = nn.Sequential(nn.Linear(8, 8), nn.Flatten(), nn.Linear(16, 2))
    with torch.no_grad():
        chain[0].weight.mul_(1e-4)
        chain[2].weight[:, :8] = 0.5
        chain[2].weight[:, 8:] = -0.5
        chain[2].weight[1] *= -1
        chain[2].weight.requires_grad_(False)
    module = chain if ghost else Difference()
    assert (why_written_out(module, LOSS) is None) is ghost
    worst = 0.0
    for _ in range(60):
        first = torch.randn(1, 1, 8) * magnitude
        x = torch.cat([first, first + torch.randn(1, 1, 8) * apart], 1)
        worst = max(worst, size(clipped_gradients(module, LOSS, x, torch.randint(0, 2, (1,)), clip_norm=clip)))
    assert worst <= 1 + 1e-9


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[0].register_forward_hook(lambda *_: None),
        lambda m: nn.utils.parametrizations.weight_norm(m[0]),
        lambda m: setattr(m[0], "forward", lambda x: x - x.mean(0)),
        lambda m: m.append(m[2]),
        lambda m: m.append(nn.Softmax(dim=0)),
        lambda m: m.append(nn.Flatten(start_dim=0)),
        lambda m: m.append(nn.Dropout()),
        lambda m: m.append(nn.ReLU(inplace=True)),
        lambda m: setattr(m[0], "weight", m[2].weight),
        lambda m: m.register_buffer("extra", torch.zeros(1)),
        lambda m: m.append(type("Mine", (nn.Linear,), {})(4, 4)),
    ],
)
def test_only_known_layers_in_a_chain_are_not_written_out(change: Any) -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Identity()), nn.Linear(4, 4))
    assert why_written_out(module, LOSS) is None
    assert why_written_out(module, lambda out, y: LOSS(out, y)) == "the loss is not the built-in cross entropy"
    change(module)
    assert why_written_out(module, LOSS) is not None


def test_an_input_without_a_batch_dimension_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"the input of Linear must have at least 2 dimensions, examples first; got 1"):
        check_module(nn.Sequential(nn.Linear(3, 3)), LOSS, torch.zeros(3), torch.zeros(3, dtype=torch.long))
    image = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(ParameterError, match=r"the input of Conv2d must have 4 dimensions, examples first; got 3"):
        check_module(image, LOSS, torch.zeros(3, 2, 2), torch.zeros(3, dtype=torch.long))


def test_what_torch_func_cannot_do_is_refused_before_anything_is_paid() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.out(x) if float(x.sum()) > 0 else -self.out(x)

    with pytest.raises(ParameterError, match=r"module must be differentiable example by example with torch\.func"):
        check_module(Branch(), LOSS, torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))


def fitted(module: nn.Module, x: Any, y: Any, **changes: Any) -> TorchTrainer:
    settings = {"epsilon": 8, "delta": 1e-3, "epochs": 1, "sampling_rate": 0.5, "relation": "replace-one"} | changes
    return TorchTrainer(module, **settings).fit(x, y)


def test_rows_with_impossible_targets_or_inputs_count_as_nothing() -> None:
    torch.manual_seed(0)
    start, x, y = nn.Linear(3, 2), torch.randn(50, 3), torch.arange(50) % 2
    for bad_x, bad_y in ((0.0, 77), (0.0, -3), (torch.nan, 0), (torch.inf, 1)):
        rows, labels = x.clone(), y.clone()
        rows[49], labels[49] = bad_x, bad_y
        done = fitted(copy.deepcopy(start), rows, labels)
        assert all(torch.isfinite(p).all() for p in done.module.parameters())
    assert fitted(copy.deepcopy(start), x, y.double() + 0.5).release_.value["n_parameters"] == 8


def test_tokens_beyond_the_table_are_cut_to_it() -> None:
    module = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(8, 2))
    fitted(module, torch.tensor([[1, 2]] * 49 + [[4242, -1]]), torch.arange(50) % 2)
    two = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(8, 2))
    two.append(nn.Sequential())
    two.other = nn.Embedding(3, 2)
    with pytest.raises(ParameterError, match="tokens must be given for a module with embeddings of 2 sizes"):
        fitted(two, torch.zeros(50, 2, dtype=torch.long), torch.arange(50) % 2)


def test_an_error_in_training_tells_nothing_of_a_row(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=20, delta=0.1)

    def loss(output: Any, target: Any) -> Any:
        return LOSS(output, target)

    labels = torch.tensor([0, 1] * 24 + [77, 77])
    with pytest.warns(UserWarning, match="the loss is not the built-in"), pytest.raises(InternalError) as caught:
        fitted(nn.Linear(3, 2), torch.randn(50, 3), labels, loss=loss, ledger=book, sampling_rate=1.0)
    assert "77" not in str(caught.value)
    assert "the reason is not shown" in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert book.spent.epsilon == 8


def test_rows_leave_no_trace_in_a_module_that_is_written_out() -> None:
    class Sly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out, self.seen = nn.Linear(3, 2), [0.0]

        def forward(self, x: Any) -> Any:
            self.seen.append(x.shape)
            return self.out(x)

    module = Sly()
    with pytest.warns(UserWarning, match="Sly at '' is not among the layers with a proof"):
        fitted(module, torch.randn(50, 3), torch.arange(50) % 2)
    assert module.seen == [0.0]


def test_a_module_changed_after_the_release_cannot_be_saved(tmp_path: Path) -> None:
    done = fitted(nn.Linear(3, 2), torch.randn(50, 3), torch.arange(50) % 2)
    with torch.no_grad():
        done.module.weight += 5
    with pytest.raises(ParameterError, match="the module must be the one that fit released"):
        done.save(tmp_path / "model")


@pytest.mark.parametrize("kind", [torch.bool, torch.int32, torch.uint8, torch.float64])
def test_class_numbers_of_any_type_are_read(kind: Any) -> None:
    assert fitted(nn.Linear(3, 2), torch.randn(50, 3), (torch.arange(50) % 2).to(kind)).guarantee_.epsilon == 8


def test_a_table_of_nothing_but_impossible_rows_trains_on_noise() -> None:
    done = fitted(nn.Linear(3, 2), torch.full((50, 3), torch.nan), torch.arange(50) % 2)
    assert all(torch.isfinite(p).all() for p in done.module.parameters())


@pytest.mark.parametrize(
    ("changes", "message"), [({"input_bound": 0}, "input_bound must be finite"), ({"tokens": 0}, "tokens must")]
)
def test_bad_bounds_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        TorchTrainer(nn.Linear(3, 2), **changes)
