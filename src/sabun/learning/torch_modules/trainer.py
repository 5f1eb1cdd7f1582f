"""Any torch module, trained privately with the house's accountant, ledger and release."""

from __future__ import annotations

import contextlib
import hashlib
import os
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from sabun import checks
from sabun.errors import InternalError, MissingExtra, ParameterError
from sabun.learning.accounting import Target, halved, noise_multiplier, training_events
from sabun.learning.card import Card
from sabun.learning.folder import software
from sabun.learning.poisson import PoissonPlan
from sabun.learning.torch_modules.ghost import Loss, check_module, needs_fallback
from sabun.learning.torch_modules.loop import Loop
from sabun.learning.torch_modules.rows import Rows
from sabun.learning.training import Progress, unheard
from sabun.ledger import Ledger
from sabun.privacy import Guarantee, exact_positive
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import Coin, coin_for, discrete_laplace
from sabun.release import publish
from sabun.release.files import write_whole

__all__ = ["TorchTrainer"]

_COUNT_SHARE = Fraction(1, 50)
_IDEAL = (
    "gradients and noise are floating-point numbers of torch; the proof is about real numbers",
    "noise comes from torch's generator, seeded by the operating system before each step; it is no cryptographic generator",
    "the module's code leaves no trace of rows outside its own tensors",
)


class TorchTrainer:
    """Trains a torch module with DP-SGD.

    Guarantee: the trained parameters, all together, are (epsilon, delta)-DP under `relation`, for real-number arithmetic.

    Args:
        module: Any nn.Module without layers that keep statistics; it is trained in place. A (nested) nn.Sequential of known
            layers is fast; anything else has each example's gradient written out.
        epsilon: The price, read exactly.
        delta: The same for delta.
        loss: "cross_entropy", or a function of outputs and targets that gives one number for each example.
        relation: None is the ledger's, or add-remove.
        n_public: The number of records, if it is public under add-remove; otherwise a noisy one is paid for.
        sampling_rate: The probability to take part in a step.
        epochs: Expected number of steps each record takes part in.
        clip_norm: To which each example's gradient is cut.
        learning_rate: Of the mean clipped gradient in units of the clip norm.
        momentum: Share of the last update that is kept.
        most_rows: Rows worked on at a time; a matter of memory only.
        input_bound: Public bound on the inputs; what lies beyond is cut to it. Rows with numbers that are not finite, or with
            targets that are no class, count as nothing.
        tokens: Whole-number inputs are cut to 0..tokens-1; None takes it from the module's embedding.
        device: Where to train; None is the module's own.
        ledger: The book to charge, or None.
        progress: Called with the share done and a few words.
        random_state: None for a private result; an int simulates, NOT PRIVATE.

    Attributes:
        guarantee_, release_, card_ after `fit`.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        epsilon: AmountLike = 1.0,
        delta: AmountLike = 1e-5,
        loss: str | Loss = "cross_entropy",
        relation: str | None = None,
        n_public: int | None = None,
        sampling_rate: float = 0.05,
        epochs: int = 10,
        clip_norm: float = 1.0,
        learning_rate: float = 0.5,
        momentum: float = 0.9,
        most_rows: int = 4096,
        input_bound: float = 1e6,
        tokens: int | None = None,
        device: str | torch.device | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
        random_state: int | None = None,
    ) -> None:
        checks.require(isinstance(module, nn.Module), "a torch.nn.Module", module=type(module).__name__)
        checks.require(callable(loss) or loss == "cross_entropy", "'cross_entropy' or a function", loss=loss)
        if relation is not None:
            checks.one_of(("add-remove", "replace-one"), relation=relation)
        if n_public is not None:
            checks.whole(minimum=1, n_public=n_public)
        checks.require(
            checks.is_number(sampling_rate) and 0 < sampling_rate <= 1, "above 0 and at most 1", sampling_rate=sampling_rate
        )
        checks.whole(minimum=1, epochs=epochs, most_rows=most_rows)
        checks.positive(clip_norm=clip_norm, learning_rate=learning_rate, input_bound=input_bound)
        if tokens is not None:
            checks.whole(minimum=1, tokens=tokens)
        checks.probability(momentum=momentum)
        self.epsilon = exact_positive(epsilon, name="epsilon")
        self.delta = exact_positive(delta, name="delta")
        checks.require(self.delta < 1, "below 1", delta=delta)
        self.module, self.loss, self.relation, self.n_public = module, loss, relation, n_public
        self.plan = PoissonPlan.of(sampling_rate=sampling_rate, epochs=epochs)
        self.clip_norm, self.learning_rate, self.momentum, self.most_rows = clip_norm, learning_rate, momentum, most_rows
        self.input_bound, self.tokens = input_bound, tokens
        self.device, self.ledger, self.progress, self.random_state = device, ledger, progress, random_state
        coin_for(random_state)

    def fit(self, X: Any, y: Any) -> Self:
        """Trains once, charges once; a second call is a second release about the same records.

        Args:
            X: Inputs: a tensor or array whose first dimension counts records.
            y: Targets, one for each record.
        """
        coin = coin_for(self.random_state)
        _safetensors(self.module)  # a missing package has to show before the charge
        loss = self._loss()
        rows = Rows.of(
            X,
            y,
            module=self.module,
            loss=loss,
            input_bound=float(self.input_bound),
            tokens=self.tokens,
            device=self._place(),
        )
        rows = rows.fit_for(loss, check_module(self.module, loss, rows.x, rows.y))
        fallback = needs_fallback(self.module, loss)
        relation = self.relation or ("add-remove" if self.ledger is None else self.ledger.relation)
        checks.one_of(("add-remove", "replace-one"), **{"relation of the ledger": relation})
        public = rows.count if relation == "replace-one" else self.n_public
        multiplier, account = self._calibrated(relation, public)
        guarantee = self._guarantee(relation, public)

        def train() -> dict[str, Any]:
            loop = Loop(
                threshold=self.plan.threshold,
                steps=self.plan.steps,
                multiplier=float(multiplier),
                clip_norm=float(self.clip_norm),
                divisor=float(self.plan.probability) * self._size(rows.count, public, relation, coin),
                learning_rate=float(self.learning_rate),
                momentum=float(self.momentum),
                most_rows=self.most_rows,
                fallback=fallback,
            )
            heard, fixed = self.progress or unheard, _fixed(self.module)
            self.module.train()
            try:
                for step in loop.run(self.module, loss, rows.x, rows.y, words=lambda count: _words(coin, count)):
                    heard(step / loop.steps, f"step {step} of {loop.steps}")
            finally:
                _put_back(self.module, fixed)  # proof: put-back
            return {"model_sha256": hashlib.sha256(_safetensors(self.module)).hexdigest(), "n_parameters": _count(self.module)}

        def draw() -> dict[str, Any]:
            found: dict[str, Any] | None = None
            with contextlib.suppress(Exception):  # proof: silent
                found = train()
            if found is None:
                raise InternalError(
                    "training stopped halfway; the reason is not shown, for it may speak of a row. The charge stays. "
                    "If memory was short, lower most_rows."
                )
            return found

        facts = self._facts(multiplier, public)
        self.release_ = publish(
            kind="learning.torch-module",
            guarantee=guarantee,
            parameters=facts | {"account": account},
            draw=draw,
            ledger=self.ledger,
            coin=coin,
        )
        self.guarantee_ = self.release_.guarantee
        self._account, self._facts_written = account, {name: str(value) for name, value in facts.items()}
        return self

    def _place(self) -> torch.device:
        device = self.device or next((p.device for p in self.module.parameters()), torch.device("cpu"))
        self.module.to(device)
        return torch.device(device)

    def _loss(self) -> Loss:
        chosen: Loss = self.loss if callable(self.loss) else nn.CrossEntropyLoss(reduction="none")
        return chosen

    def _calibrated(self, relation: str, public: int | None) -> tuple[Fraction, dict[str, Any]]:
        target = (
            Target(epsilon=self.epsilon, delta=self.delta) if relation == "add-remove" else halved(self.epsilon, self.delta)
        )
        count = Fraction(0) if public is not None else _COUNT_SHARE * target.epsilon
        multiplier = noise_multiplier(self.plan, target, count)
        events = [event.to_dict() for event in training_events(self.plan, multiplier, count)]
        return multiplier, {"rule": "sampled-gaussian", "relation": relation, "events": events, "delta": str(self.delta)}

    def _size(self, n_rows: int, public: int | None, relation: str, coin: Coin) -> int:
        if public is not None:
            return public
        share = _COUNT_SHARE * self.epsilon
        return max(1, n_rows + discrete_laplace(1 / share, coin=coin))  # proof: noisy-count

    def _guarantee(self, relation: str, public: int | None) -> Guarantee:
        unit = "record" if self.ledger is None else self.ledger.unit
        words = [
            f"each {unit} has at most one row",
            "the module and all settings were chosen without looking at the data",
            *_IDEAL,
        ]
        if public is not None:
            words.append("the number of records is public")
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=relation,
            unit=unit,
            mechanism="DP-SGD on a torch module (Poisson sampling, floating-point Gaussian noise)",
            assumptions=tuple(words),
        )

    def _facts(self, multiplier: Fraction, public: int | None) -> dict[str, Any]:
        return {
            "module": type(self.module).__name__,
            "sampling_probability": self.plan.probability,
            "steps": self.plan.steps,
            "noise_multiplier": multiplier,
            "clip_norm": self.clip_norm,
            "input_bound": self.input_bound,
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "n_public": public,
            "torch": torch.__version__,
        }

    def save(self, path: str | os.PathLike[str], *, example: Tensor | None = None, overwrite: bool = False) -> None:
        """Writes a folder with model.safetensors, state_dict.pt, card.json, release.json, and model.onnx given an example.

        Args:
            path: The folder.
            example: A made-up input row with a batch dimension, to trace the module for ONNX.
            overwrite: Replace files that are there.

        Raises:
            ParameterError: `fit` was not called, or the module was changed since.
            SimulatedError: The module was trained with a seeded coin.
            MissingExtra: safetensors or onnx is not installed.
        """
        if not hasattr(self, "release_"):
            raise ParameterError("the trainer must be fitted before it is saved; it is not. Call fit(X, y).")
        content, folder = self.release_.to_json(), Path(path)
        raw = _safetensors(self.module)
        if hashlib.sha256(raw).hexdigest() != self.release_.value["model_sha256"]:
            raise ParameterError("the module must be the one that fit released; it was changed since. Call fit(X, y) again.")
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "model.safetensors", raw, overwrite=overwrite)
        write_whole(folder / "release.json", content, overwrite=overwrite)
        torch.save(self.module.state_dict(), folder / "state_dict.pt")
        if example is not None:
            _onnx(self.module, example, folder / "model.onnx")
        self.card_ = Card(
            guarantee=self.guarantee_,
            account=self._account,
            model={
                "sizes": [],
                "classes": [],
                "features": {},
                "module": type(self.module).__name__,
                "parameters": _count(self.module),
            },
            parameters=self._facts_written,
            sha256=hashlib.sha256(raw).hexdigest(),
            software=software() | {"torch": str(torch.__version__)},
            randomness="batches: operating system; noise: torch's generator, seeded by the operating system before each step",
        )
        write_whole(folder / "card.json", self.card_.to_json(), overwrite=overwrite)


def _words(coin: Coin, count: int) -> np.ndarray:
    return coin.words(-(-count // 2)).astype("<u8", copy=False).view("<u4")[:count]


def _fixed(module: nn.Module) -> dict[str, Tensor]:
    """Copies of everything that training must not change."""
    frozen = {name: p.detach().clone() for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | {name: buffer.detach().clone() for name, buffer in module.named_buffers()}


def _put_back(module: nn.Module, fixed: dict[str, Tensor]) -> None:
    """Writes the copies back, which changes nothing for a module that passed the checks."""
    now = dict(module.named_parameters()) | dict(module.named_buffers())
    changed = [name for name, value in fixed.items() if not torch.equal(value.nan_to_num(), now[name].detach().nan_to_num())]
    with torch.no_grad():
        for name, value in fixed.items():
            now[name].copy_(value)
    if changed:
        raise InternalError("a buffer or frozen parameter changed in training.")


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _safetensors(module: nn.Module) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise MissingExtra(job="writing a model file", package="safetensors", extra="learning") from None
    return bytes(save({name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}))


def _onnx(module: nn.Module, example: Tensor, path: Path) -> None:
    try:
        import onnx  # noqa: F401 (torch's exporter needs it and fails late without)
    except ImportError:
        raise MissingExtra(job="writing ONNX", package="onnx", extra="learning") from None
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    module.eval()
    torch.onnx.export(
        module,
        (example.to(device),),
        str(path),
        dynamo=False,
        input_names=["rows"],
        output_names=["scores"],
        dynamic_axes={"rows": {0: "n"}},
    )
