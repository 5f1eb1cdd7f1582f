"""Any torch module, trained privately with the house's accountant, ledger and release."""

from __future__ import annotations

import hashlib
import os
from fractions import Fraction
from typing import Any, Self

import torch
from torch import Tensor, nn

from sabun import checks
from sabun.errors import ParameterError
from sabun.learning.accounting import Target, halved, noise_multiplier
from sabun.learning.card import Card, warn_of_delta, warnings_for
from sabun.learning.folder import MODEL, ONNX, STATE_DICT, software, write_folder
from sabun.learning.poisson import PoissonPlan
from sabun.learning.settings import delta_for
from sabun.learning.stream import Stream
from sabun.learning.torch_modules.export import described, onnx_files, state_dict_bytes, written
from sabun.learning.torch_modules.ghost import check_module, needs_fallback
from sabun.learning.torch_modules.identity import identified
from sabun.learning.torch_modules.loop import MOST_ROWS, Loop
from sabun.learning.torch_modules.rows import Rows
from sabun.learning.torch_modules.run import ModuleRun
from sabun.learning.torch_modules.structure import Loss, rounds_by_row
from sabun.learning.training import KEYSTREAM, NOISY_COUNT, Progress, unheard
from sabun.ledger import Ledger
from sabun.privacy import Guarantee, exact_positive
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import Coin, coin_for
from sabun.release import Release, publish

__all__ = ["TorchTrainer"]

_KIND = "learning.torch-module"
_COUNT_SHARE = Fraction(1, 50)
_SUMS = {
    "chain": "clipped gradients are summed in 64-bit floating point; the rounding of sums stays below one part in a million "
    "of the clip norm for batches of up to a million rows, provided that torch computes a row of a layer the same wherever it "
    "stands in a batch of one size, whatever the other rows hold",
    "module": "clipped gradients are summed in 64-bit floating point; the proof does not cover that torch may round a row "
    "differently beside other rows",
    "single": "clipped gradients are summed in 32-bit floating point; the proof does not cover the rounding of sums",
}
_NOISE = {
    "certified": KEYSTREAM,
    "torch": "noise is floating-point numbers of torch's generator, seeded by the operating system before each step: no "
    "cryptographic generator (on a CPU its seed has 32 bits, so that the noise can be guessed by trying all seeds), and "
    "the proof is about real numbers",
}
_MECHANISM = {
    "certified": "DP-SGD on a torch module (Poisson sampling, Gaussian noise rounded to a grid)",
    "torch": "DP-SGD on a torch module (Poisson sampling, floating-point Gaussian noise)",
}
_RANDOMNESS = {
    "certified": "operating system entropy, 256-bit key for each run",
    "torch": "batches: operating system entropy, 256-bit key for each run; noise: torch's generator, seeded from it",
}


class TorchTrainer:
    """Trains a torch module with DP-SGD.

    Guarantee: the trained parameters, all together, are (epsilon, delta)-DP under `relation`, as `guarantee_` states it.

    Args:
        module: Any nn.Module without layers that keep statistics or draw random numbers; it is trained in place. A (nested)
            nn.Sequential of known layers is fast; anything else has each example's gradient written out.
        epsilon: The price, read exactly.
        delta: The same for delta; None is 1e-5, less where a public number of records asks for less.
        loss: "cross_entropy", or a function of outputs and targets that gives one number for each example. With a `checkpoint`
            it must be something that another process finds again: a function or class of a module, no lambda.
        relation: None is the ledger's, or add-remove.
        n_public: The number of records, if it is public under add-remove; otherwise a noisy one is paid for.
        sampling_rate: The probability to take part in a step.
        epochs: Expected number of steps each record takes part in.
        clip_norm: To which each example's gradient is cut; from 1e-6 to 1e6.
        learning_rate: Of the mean clipped gradient in units of the clip norm.
        momentum: Share of the last update that is kept.
        most_rows: Rows worked on at a time, at most 4096; None chooses. A chain of known layers takes the next multiple of 64.
        precision: Of sums of gradients: "double", which the proof covers, or "single", for processors slow at doubles.
        noise: "certified" is an exact Gaussian rounded to a grid, made from AES keystream on the CPU (some seconds a step for a
            hundred million parameters); "torch" is torch's own, made where the module is, which the proof does not cover.
        input_bound: Public bound on the inputs; what lies beyond is cut to it. Rows with numbers that are not finite, or with
            targets that are no class, count as nothing.
        tokens: Whole-number inputs are cut to 0..tokens-1 and to the largest embedding; None takes it from that.
        device: Where to train; None is the module's own.
        checkpoint: Folder to resume from after a crash, with "certified" noise; it holds a secret key, see `LIMITS.md`.
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
        delta: AmountLike | None = None,
        loss: str | Loss = "cross_entropy",
        relation: str | None = None,
        n_public: int | None = None,
        sampling_rate: float = 0.05,
        epochs: int = 10,
        clip_norm: float = 1.0,
        learning_rate: float = 0.5,
        momentum: float = 0.9,
        most_rows: int | None = None,
        precision: str = "double",
        noise: str = "certified",
        input_bound: float = 1e6,
        tokens: int | None = None,
        device: str | torch.device | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
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
        checks.whole(minimum=1, epochs=epochs, most_rows=1 if most_rows is None else most_rows)
        checks.require(most_rows is None or most_rows <= MOST_ROWS, f"at most {MOST_ROWS}", most_rows=most_rows)
        checks.one_of(("double", "single"), precision=precision)
        checks.one_of(("certified", "torch"), noise=noise)
        if checkpoint is not None:
            checks.require(noise == "certified", "'certified' when there is a checkpoint", noise=noise)
            checks.require(random_state is None, "None when there is a checkpoint", random_state=random_state)
        checks.positive(clip_norm=clip_norm, learning_rate=learning_rate, input_bound=input_bound)
        checks.require(1e-6 <= clip_norm <= 1e6, "between 1e-6 and 1e6", clip_norm=clip_norm)
        if tokens is not None:
            checks.whole(minimum=1, tokens=tokens)
        checks.probability(momentum=momentum)
        self.epsilon = exact_positive(epsilon, name="epsilon")
        self.delta = None if delta is None else exact_positive(delta, name="delta")
        checks.require(self.delta is None or self.delta < 1, "below 1", delta=delta)
        self.module, self.loss, self.relation, self.n_public = module, loss, relation, n_public
        self.plan = PoissonPlan.of(sampling_rate=sampling_rate, epochs=epochs)
        self.clip_norm, self.learning_rate, self.momentum, self.most_rows = clip_norm, learning_rate, momentum, most_rows
        self.precision, self.noise, self.checkpoint = precision, noise, checkpoint
        self.input_bound, self.tokens = input_bound, tokens
        self.device, self.ledger, self.progress, self.random_state = device, ledger, progress, random_state
        coin_for(random_state)

    def fit(self, X: Any, y: Any) -> Self:
        """Trains once, charges once; a second call is a second release about the same records.

        With a `checkpoint` that holds an interrupted run, goes on with that run instead.

        Args:
            X: Inputs: a tensor or array whose first dimension counts records.
            y: Targets, one for each record.
        """
        coin = coin_for(self.random_state)
        run = self._run(X, y)
        written(self.module)  # a missing package has to show before the charge
        self.release_ = self._released(run, coin)
        self.guarantee_ = self.release_.guarantee
        self._account, self._n_public = run.account, run.n_public
        self._settings = {name: value if isinstance(value, int | float) else str(value) for name, value in run.settings.items()}
        warn_of_delta(
            self.guarantee_, self.release_.value.get(NOISY_COUNT), n_public=run.n_public
        )  # last: a warning may be made to raise
        return self

    def _run(self, X: Any, y: Any) -> ModuleRun:
        """Everything that has to be right before the charge."""
        loss = self._loss()
        if self.checkpoint is not None:
            for _ in identified(loss, name="loss"):
                pass  # what cannot be identified is refused here, before the charge
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
        delta = delta_for(self.delta, public)
        target = self._target(relation, delta)
        count = Fraction(0) if public is not None else _COUNT_SHARE * target.epsilon
        loop = Loop(
            plan=self.plan,
            multiplier=noise_multiplier(self.plan, target, count),
            clip_norm=float(self.clip_norm),
            learning_rate=float(self.learning_rate),
            momentum=float(self.momentum),
            most_rows=self.most_rows,
            precision=self.precision,
            noise=self.noise,
            fallback=fallback,
        )
        return ModuleRun(
            module=self.module,
            loss=loss,
            rows=rows,
            loop=loop,
            guarantee=self._guarantee(relation, delta, public, chain=rounds_by_row(self.module, loss, dimensions=rows.x.dim())),
            target=target,
            count_epsilon=count,
            n_public=public,
            settings=self._facts(loop, public),
        )

    def _released(self, run: ModuleRun, coin: Coin) -> Release:
        heard = self.progress or unheard
        if self.checkpoint is not None:
            from sabun.learning.checkpoint import train_resumably

            return train_resumably(self.checkpoint, kind=_KIND, run=run, ledger=self.ledger, progress=heard, schema_hash=None)
        return publish(
            kind=_KIND,
            guarantee=run.guarantee,
            parameters=run.facts,
            draw=lambda: run.train(Stream.fresh(coin), heard),
            ledger=self.ledger,
            coin=coin,
        )

    def _place(self) -> torch.device:
        device = self.device or next((p.device for p in self.module.parameters()), torch.device("cpu"))
        self.module.to(device)
        return torch.device(device)

    def _loss(self) -> Loss:
        chosen: Loss = self.loss if callable(self.loss) else nn.CrossEntropyLoss(reduction="none")
        return chosen

    def _target(self, relation: str, delta: Fraction) -> Target:
        """The add-remove promise behind the stated one."""
        if relation == "add-remove":
            return Target(epsilon=self.epsilon, delta=delta)
        return halved(self.epsilon, delta)  # proof: restated

    def _guarantee(self, relation: str, delta: Fraction, public: int | None, *, chain: bool) -> Guarantee:
        unit = "record" if self.ledger is None else self.ledger.unit
        words = [
            f"each {unit} has at most one row",
            "the module and all settings were chosen without looking at the data",
            _SUMS["single" if self.precision == "single" else "chain" if chain else "module"],
            _NOISE[self.noise],
            "the module's code draws no random numbers, and leaves no trace of rows outside its own tensors",
        ]
        if public is not None:
            words.append("the number of records is public")
        return Guarantee(
            epsilon=self.epsilon,
            delta=delta,
            relation=relation,
            unit=unit,
            mechanism=_MECHANISM[self.noise],
            assumptions=tuple(words),
        )

    def _facts(self, loop: Loop, public: int | None) -> dict[str, Any]:
        return {
            "module": type(self.module).__name__,
            "sampling_probability": self.plan.probability,
            "steps": self.plan.steps,
            "noise_multiplier": loop.multiplier,
            "noise": self.noise,
            "precision": self.precision,
            "clip_norm": self.clip_norm,
            "input_bound": self.input_bound,
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "n_public": public,
            "torch": str(torch.__version__),
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
        self.release_.to_json()  # a simulation is refused before anything else is said about it
        raw = written(self.module)
        if hashlib.sha256(raw).hexdigest() != self.release_.value["model_sha256"]:
            raise ParameterError("the module must be the one that fit released; it was changed since. Call fit(X, y) again.")
        files = {MODEL: raw, STATE_DICT: state_dict_bytes(self.module)}
        if example is not None:
            files |= onnx_files(self.module, example, ONNX)
        count = self.release_.value.get(NOISY_COUNT)
        self.card_ = Card(
            guarantee=self.guarantee_,
            account=self._account,
            model=described(self.module),
            parameters=self._settings,
            sha256=hashlib.sha256(raw).hexdigest(),
            software=software() | {"torch": str(torch.__version__)},
            randomness=_RANDOMNESS[self.noise],
            warnings=warnings_for(self.guarantee_, count or self._n_public, noisy=count is not None),
        )
        write_folder(path, files, card=self.card_, release=self.release_, overwrite=overwrite)
