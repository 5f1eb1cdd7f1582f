"""Training runs of torch modules: noise, promises, progress, checkpoints."""

from __future__ import annotations

import copy
import functools
import importlib
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import DataError, LedgerError, ParameterError  # noqa: E402
from sabun.learning.gaussian import grid_exponent  # noqa: E402
from sabun.learning.poisson import PoissonPlan  # noqa: E402
from sabun.learning.stream import Stream  # noqa: E402
from sabun.learning.torch_modules import TorchTrainer  # noqa: E402
from sabun.learning.torch_modules.loop import Loop, Training, flat  # noqa: E402
from sabun.learning.torch_modules.run import ModuleRun  # noqa: E402
from sabun.learning.training import unheard  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402
from sabun.release.tree import Frozen  # noqa: E402

LOSS = nn.CrossEntropyLoss(reduction="none")


@pytest.fixture(autouse=True)
def cheap_pricing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accountant has tests of its own."""
    monkeypatch.setattr("sabun.learning.torch_modules.trainer.noise_multiplier", lambda *_: Fraction(1))

    def share(step: int, events: Any, target: Any, relation: str) -> str:
        return str(target.epsilon * step / events[0].count)

    monkeypatch.setattr("sabun.learning.torch_modules.run.spent_after", share)


def rows(count: int = 60) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(count, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def trainer(module: nn.Module | None = None, **changes: Any) -> TorchTrainer:
    settings = {"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.3, "epochs": 2, "n_public": 60} | changes
    return TorchTrainer(network() if module is None else module, **settings)


def run_of(asked: TorchTrainer, x: Any, y: Any) -> ModuleRun:
    return asked._run(asked._ask(), x, y)


def stop_after(calls: int) -> Callable[[float, str], None]:
    left = [calls]

    def listen(share: float, words: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return listen


def interrupted(folder: Path, **changes: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        trainer(checkpoint=folder, progress=stop_after(4), **changes).fit(*rows())


@pytest.mark.parametrize("n_public", [60, None])
def test_a_resumed_run_equals_the_uninterrupted_one_and_is_charged_once(tmp_path: Path, n_public: int | None) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=10, delta=0.1)
    interrupted(tmp_path / "run", ledger=book, n_public=n_public)
    key = (tmp_path / "run" / "run.secret").read_bytes()
    # In a new process the module starts from other weights; the checkpoint holds the ones that count.
    resumed = trainer(network(seed=7), checkpoint=tmp_path / "run", ledger=book, n_public=n_public).fit(*rows())
    assert book.spent.epsilon == 2
    assert not (tmp_path / "run" / "run.secret").exists()
    whole = run_of(trainer(n_public=n_public), *rows())
    value = whole.train(Stream(key), unheard)
    assert resumed.release_.value == Frozen(value)
    assert np.array_equal(flat(list(resumed.module.parameters())), flat(list(whole.module.parameters())))
    resumed.save(tmp_path / "model")


@pytest.mark.parametrize(
    "change",
    [
        {"clip_norm": 0.5},
        {"learning_rate": 0.4},
        {"momentum": 0.5},
        {"most_rows": 8},
        {"precision": "single"},
        {"module": network().double()},
        {"module": nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))},
        {"row": 5},
        {"target": 5},
        {"order": True},
        {"left out": True},
    ],
    ids=str,
)
def test_a_run_does_not_go_on_with_anything_else(tmp_path: Path, change: dict[str, Any]) -> None:
    interrupted(tmp_path / "run")
    x, y = rows()
    if "row" in change:
        x[change["row"], 0] += 1e-3
    if "target" in change:
        y[change["target"]] = 1 - y[change["target"]]
    if "order" in change:
        x, y = x[::-1].copy(), y[::-1].copy()
    if "left out" in change:
        x, y = np.vstack([x, np.full((1, 4), np.nan, dtype=np.float32)]), np.append(y, 0)
    settings = {name: value for name, value in change.items() if name not in ("row", "target", "order", "left out")}
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        trainer(checkpoint=tmp_path / "run", **settings).fit(x, y)


def test_a_run_on_other_threads_does_not_go_on(tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.raises(DataError, match="must go on with the same data"):
            trainer(checkpoint=tmp_path / "run").fit(*rows())
    finally:
        torch.set_num_threads(threads)
    trainer(checkpoint=tmp_path / "run").fit(*rows())


def test_a_copied_folder_gives_no_second_result(tmp_path: Path) -> None:
    import shutil

    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=10, delta=0.1)
    interrupted(tmp_path / "run", ledger=book)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    trainer(checkpoint=tmp_path / "run", ledger=book).fit(*rows())
    with pytest.raises(LedgerError, match="already handed over"):
        trainer(checkpoint=tmp_path / "copy", ledger=book).fit(*rows())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint": "x", "noise": "torch"}, "noise must be 'certified' when there is a checkpoint"),
        ({"checkpoint": "x", "random_state": 1}, "random_state must be None when there is a checkpoint"),
        ({"noise": "none"}, "noise must be one of"),
        ({"precision": "half"}, "precision must be one of"),
        ({"most_rows": 0}, "most_rows must be"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        trainer(**changes)


def test_progress_tells_steps_and_what_they_cost() -> None:
    heard: list[tuple[float, str]] = []
    done = trainer(progress=lambda share, words: heard.append((share, words))).fit(*rows())
    assert [share for share, _ in heard] == [step / 7 for step in range(1, 8)]
    assert heard[2][1].startswith("step 3 of 7, epsilon so far at most ")
    spent = [float(Fraction(words.rsplit(" ", 1)[1])) for _, words in heard]
    assert spent == sorted(spent)
    assert spent[-1] == done.guarantee_.epsilon


@pytest.mark.parametrize(("noise", "on_grid"), [("certified", True), ("torch", False)])
def test_certified_noise_lies_on_the_public_grid(noise: str, on_grid: bool) -> None:
    x, y = (torch.from_numpy(part) for part in rows())
    sigma = Fraction(3, 2)
    plan = PoissonPlan(threshold=1 << 31, steps=9)
    loop = Loop(plan=plan, multiplier=sigma, clip_norm=1.0, learning_rate=1.0, momentum=0.0, noise=noise)
    training = Training(loop, network(), LOSS, x, y, stream=Stream(bytes(range(32))), divisor=1.0)
    training.advance()
    steps = training.velocity / 2.0 ** grid_exponent(float(sigma))
    assert bool((steps == np.rint(steps)).all()) is on_grid
    assert 0.5 < float(training.velocity.std()) < 3


@pytest.mark.parametrize("noise", ["certified", "torch"])
def test_the_same_stream_gives_the_same_module(noise: str) -> None:
    found = []
    for _ in range(2):
        run = run_of(trainer(noise=noise), *rows())
        found.append(run.train(Stream(bytes(32)), unheard)["model_sha256"])
    other = run_of(trainer(noise=noise), *rows()).train(Stream(bytes([1] * 32)), unheard)["model_sha256"]
    assert found[0] == found[1] != other


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    [
        ({}, ("64-bit floating point; the rounding of sums stays below", "AES-256 keystream"), ("torch's generator", "32-bit")),
        ({"noise": "torch"}, ("torch's generator", "no cryptographic generator"), ("AES-256",)),
        ({"precision": "single"}, ("32-bit floating point; the proof does not cover",), ("stays below",)),
    ],
)
def test_the_guarantee_says_what_it_rests_on(
    changes: dict[str, Any], said: tuple[str, ...], unsaid: tuple[str, ...], tmp_path: Path
) -> None:
    done = trainer(**changes).fit(*rows())
    text = " / ".join(done.guarantee_.assumptions)
    assert all(words in text for words in said)
    assert not any(words in text for words in unsaid)
    done.save(tmp_path / "model")
    assert done.card_.parameters["noise"] == changes.get("noise", "certified")
    assert ("torch's generator" in done.card_.randomness) is ("noise" in changes)


@pytest.mark.parametrize(
    ("module", "covered"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.Flatten(), nn.Linear(3, 2)), True),
        (nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 2, 2), nn.Flatten()), True),
        (nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 2, 2), nn.Flatten()).double(), False),
        (nn.Sequential(nn.Linear(4, 3), nn.Softmax(1), nn.Linear(3, 2)), False),
        (nn.Sequential(nn.Linear(4, 3), nn.SiLU(), nn.Linear(3, 2)), False),
        (nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 2)), False),
        (nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double(), True),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 1), nn.Flatten()).double(), False),
    ],
)
@pytest.mark.filterwarnings("ignore:.*written out")
def test_rounding_by_row_is_promised_only_where_it_was_seen(module: nn.Module, covered: bool) -> None:
    words = " / ".join(run_of(trainer(module), *rows()).guarantee.assumptions)
    assert ("stays below one part in a million" in words) is covered
    assert ("does not cover that torch may round a row differently" in words) is not covered


def test_frozen_parameters_are_part_of_what_must_be_the_same(tmp_path: Path) -> None:
    module = network()
    module[0].weight.requires_grad_(False)
    interrupted(tmp_path / "run", module=copy.deepcopy(module))
    with torch.no_grad():
        module[0].weight[0, 0] += 1
    with pytest.raises(DataError, match="must go on with the same data"):
        trainer(module, checkpoint=tmp_path / "run").fit(*rows())


def test_an_error_in_a_resumable_run_is_silent_and_the_run_can_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, advance = [0], Training.advance

    def failing(self: Training) -> None:
        steps[0] += 1
        if steps[0] == 3:
            raise RuntimeError("row 77 is bad")
        advance(self)

    monkeypatch.setattr(Training, "advance", failing)
    with pytest.raises(Exception, match="training stopped halfway") as caught:
        trainer(checkpoint=tmp_path / "run").fit(*rows())
    assert caught.value.__context__ is None
    monkeypatch.setattr(Training, "advance", advance)
    assert trainer(checkpoint=tmp_path / "run").fit(*rows()).guarantee_.epsilon == 2


LOSSES = """
import functools
from torch import nn
from torch.nn import functional as F

def scores(outputs, targets, scale=1.0):
    return scale * F.cross_entropy(outputs, targets, reduction="none")

class Scaled:
    def __init__(self, scale):
        self.scale, self.inner = scale, {"of": (scores, nn.CrossEntropyLoss(reduction="none"))}

    def __call__(self, outputs, targets):
        return self.scale * scores(outputs, targets)

    def method(self, outputs, targets):
        return self(outputs, targets)

class Module(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale, self.function = scale, scores
        self.register_buffer("kept", __import__("torch").ones(2))

    def forward(self, outputs, targets):
        return self.scale * self.function(outputs, targets)

class Weighed(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.weights = __import__("torch").tensor([1.0, scale])

    def forward(self, outputs, targets):
        return F.cross_entropy(outputs, targets, weight=self.weights, reduction="none")

def made(scale):
    return {
        "function": scores,
        "partial": functools.partial(scores, scale=scale),
        "object": Scaled(scale),
        "method": Scaled(scale).method,
        "module": Module(scale),
        "weighed": Weighed(scale),
        "class": nn.CrossEntropyLoss(reduction="none", label_smoothing=scale / 10),
        "buffered": nn.CrossEntropyLoss(reduction="none", weight=__import__("torch").tensor([1.0, scale])),
    }
"""


@pytest.fixture
def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], dict[str, Any]]:
    """Losses of a module of somebody's own, each time as a new process would find them."""
    (tmp_path / "somebodys_losses.py").write_text(LOSSES)
    monkeypatch.syspath_prepend(str(tmp_path))

    def made(scale: float) -> dict[str, Any]:
        sys.modules.pop("somebodys_losses", None)
        return dict(importlib.import_module("somebodys_losses").made(scale))

    return made


@pytest.mark.filterwarnings("ignore:the loss is not the built-in")
@pytest.mark.parametrize("kind", ["function", "partial", "object", "method", "module", "weighed", "class", "buffered"])
def test_a_loss_is_known_again_by_what_it_is(kind: str, losses: Any) -> None:
    def told(loss: Any) -> list[bytes]:
        return list(run_of(trainer(loss=loss), *rows()).fingerprint())

    first = told(losses(1.0)[kind])
    assert first == told(losses(1.0)[kind])
    assert kind == "function" or first != told(losses(2.0)[kind])


def test_a_run_is_known_by_every_row_and_every_target_whichever_step_they_are_in() -> None:
    x, y = rows()
    found = [tuple(run_of(trainer(), x, y).fingerprint())]
    for place in (0, 30, 59):
        moved, turned = x.copy(), y.copy()
        moved[place, 3] += 1e-3
        turned[place] = 1 - turned[place]
        found += [tuple(run_of(trainer(), *table).fingerprint()) for table in ((moved, y), (x, turned))]
    assert len(set(found)) == 7


@pytest.mark.filterwarnings("ignore:the loss is not the built-in")
def test_a_run_with_a_loss_function_goes_on_in_a_new_process(tmp_path: Path, losses: Any) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    whole = run_of(trainer(loss=losses(1.0)["function"]), *rows())
    interrupted(tmp_path / "run", loss=losses(1.0)["function"], ledger=book)
    key = (tmp_path / "run" / "run.secret").read_bytes()
    resumed = trainer(checkpoint=tmp_path / "run", loss=losses(1.0)["function"], ledger=book).fit(*rows())
    assert book.spent.epsilon == 2
    assert resumed.release_.value == Frozen(whole.train(Stream(key), unheard))


def nameless() -> dict[str, Any]:
    def closed(outputs: Any, targets: Any) -> Any:
        return LOSS(outputs, targets)

    class Local(nn.Module):
        def forward(self, outputs: Any, targets: Any) -> Any:
            return LOSS(outputs, targets)

    patched = nn.CrossEntropyLoss(reduction="none")
    patched.forward = closed  # type: ignore[method-assign]
    circle, builtin = nn.CrossEntropyLoss(reduction="none"), nn.CrossEntropyLoss(reduction="none")
    circle.parts, builtin.part = {"own": [circle]}, torch.Tensor.sub  # type: ignore[assignment]
    return {
        "circle": circle,
        "builtin": builtin,
        "lambda": lambda outputs, targets: LOSS(outputs, targets),
        "closure": closed,
        "partial": functools.partial(closed),
        "class": Local(),
        "patched": patched,
    }


@pytest.mark.filterwarnings("ignore:the loss is not the built-in")
@pytest.mark.parametrize("kind", ["lambda", "closure", "partial", "class", "patched", "circle", "builtin"])
def test_a_loss_that_nobody_could_find_again_is_not_paid_for(kind: str, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    with pytest.raises(ParameterError, match="loss must be known again by another process when there is a checkpoint"):
        trainer(loss=nameless()[kind], checkpoint=tmp_path / "run", ledger=book).fit(*rows())
    assert book.entries() == ()
    assert run_of(trainer(loss=nameless()[kind]), *rows()).guarantee.epsilon == 2  # it will do where nothing is to go on


@pytest.mark.parametrize("changes", [{"n_public": 60}, {"relation": "replace-one"}])
def test_a_delta_that_would_allow_to_publish_a_record_is_not_paid_for(changes: dict[str, Any], tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation=changes.get("relation", "add-remove"), epsilon=3, delta=0.9)
    with pytest.raises(ParameterError, match="delta must be below 1/60, one over the number of records"):
        trainer(delta=0.3, ledger=book, **changes).fit(*rows())
    assert book.entries() == ()


def test_a_noisy_count_warns_of_a_delta_too_large_and_the_card_keeps_it(tmp_path: Path) -> None:
    large = trainer(delta=0.3, n_public=None)
    with pytest.warns(
        UserWarning, match=r"delta 0.3 is not below one over the number of records \(at least \d+, by a noisy count"
    ):
        large.fit(*rows(3000))  # far more than the noise of the count, whose scale is tens
    large.save(tmp_path / "large")
    assert any("to publish a whole record in the clear" in words for words in large.card_.warnings)
    small = trainer(delta="1/1000000", n_public=None).fit(*rows())
    small.save(tmp_path / "small")
    assert small.card_.warnings == ()


def test_delta_is_chosen_by_a_public_number_of_records() -> None:
    assert run_of(trainer(delta=None, n_public=10**6), *rows()).guarantee.delta == Fraction(1, 10**7)
    assert run_of(trainer(delta=None, n_public=None), *rows()).guarantee.delta == Fraction(1, 10**5)


class Unwritable(nn.Linear):
    def extra_repr(self) -> str:
        raise RuntimeError("not to be written down")


@pytest.mark.filterwarnings("ignore:Unwritable at")
def test_a_run_that_cannot_be_described_is_not_paid_for(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    x, y = rows()
    asked = TorchTrainer(Unwritable(x.shape[1], 3), epsilon=2, epochs=1, checkpoint=tmp_path / "run", ledger=book)
    with pytest.raises(RuntimeError):
        asked.fit(x, y)
    assert book.entries() == ()
