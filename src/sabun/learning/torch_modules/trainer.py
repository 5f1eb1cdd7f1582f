"""Any torch module, trained privately with the house's accountant, ledger and release."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, final

import torch
from torch import Tensor, nn

from sabun import checks
from sabun.asking import Ask, Question
from sabun.asking.settings import grouped
from sabun.errors import ParameterError
from sabun.learning import Plan
from sabun.learning.accounting import Target, halved, noise_multiplier, price_in
from sabun.learning.card import Card, surely, warn_of_delta, warnings_for
from sabun.learning.choices import delta_for
from sabun.learning.crew import crew_of, must_travel
from sabun.learning.folder import MODEL, ONNX, STATE_DICT, software, write_folder
from sabun.learning.shards import shards_for
from sabun.learning.stream import Stream
from sabun.learning.torch_modules.export import described, onnx_files, state_dict_bytes, written
from sabun.learning.torch_modules.ghost import Clipper, rows_stand_alone
from sabun.learning.torch_modules.identity import identified
from sabun.learning.torch_modules.loop import MOST_ROWS, Loop
from sabun.learning.torch_modules.module_checks import check_module, must_end_in_classes, needs_fallback
from sabun.learning.torch_modules.paths import Loss, rounds_by_row
from sabun.learning.torch_modules.rows import Rows
from sabun.learning.torch_modules.run import ModuleRun
from sabun.learning.torch_modules.settings import Descent, Runtime
from sabun.learning.training import KEYSTREAM, NOISY_COUNT, Progress, unheard
from sabun.ledger import Ledger
from sabun.privacy import Guarantee, exact_positive, plain
from sabun.privacy.amounts import AmountLike
from sabun.release import Release

__all__ = ["TorchTrainer"]

_KIND = "learning.torch-module"
_COUNT_SHARE = Fraction(1, 50)
_SUMS = {
    "chain": "clipped gradients are summed in 64-bit floating point; the rounding of sums stays below one part in a million "
    "of the clip norm for batches of up to a million rows, provided that whatever torch, or compiled code and NumPy in its "
    "place, compute of a row before rows are added up comes out the same wherever the row stands in a batch of one size, "
    "whatever the other rows hold",
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
_DESCENT, _RUNTIME = Descent(), Runtime()
_RANDOMNESS = {
    "certified": "operating system entropy, 256-bit key for each run",
    "torch": "batches: operating system entropy, 256-bit key for each run; noise: torch's generator, seeded from it",
}


@final
@dataclass(frozen=True, kw_only=True)
class _Price:
    """What the terms come to for a table of some size; all public.

    Args:
        n_public: The number of records where it is public.
        delta: Of the promise.
        target: The add-remove promise behind it.
        count: What a noisy number of records costs; 0 where that number is public.
        multiplier: Standard deviation of the noise in units of the clip norm.
    """

    n_public: int | None
    delta: Fraction
    target: Target
    count: Fraction
    multiplier: Fraction


@grouped(descent=Descent, runtime=Runtime)
class TorchTrainer(Question):
    """Trains a torch module with DP-SGD.

    Guarantee: the trained parameters, all together, are (epsilon, delta)-DP under `relation`, as `guarantee_` states it.

    What `Descent` and `Runtime` hold can be given by its own name: `TorchTrainer(module, epochs=20, device="cuda")`. There is
    no retry key: a release has the digest of a module, not the module. What lets a run go on is a `checkpoint`.

    Args:
        module: Any nn.Module without layers that keep statistics or draw random numbers; it is trained in place. A (nested)
            nn.Sequential of known layers is fast; anything else has each example's gradient written out.
        epsilon: The price, read exactly.
        delta: The same for delta; None is 1e-5, less where a public number of records asks for less.
        loss: "cross_entropy", or a function of outputs and targets that gives one number for each example. With a `checkpoint`
            it must be something that another process finds again: a function or class of a module, no lambda.
        relation: None is the ledger's, or add-remove.
        n_public: The number of records, if it is public under add-remove; otherwise a noisy one is paid for.
        descent: How it is trained; see `Descent`.
        runtime: Where it is computed, and in which arithmetic; see `Runtime`.
        input_bound: Public bound on the inputs; what lies beyond is cut to it. Rows with numbers that are not finite, or with
            targets that are no class, count as nothing.
        tokens: Whole-number inputs are cut to 0..tokens-1 and to the largest embedding; None takes it from that.
        checkpoint: Folder to resume from after a crash, with "certified" noise; it holds a secret key, see `LIMITS.md`.
        ledger: The book to charge, or None.
        progress: Called with the share done and a few words.
        random_state: None for a private result; an int simulates, NOT PRIVATE.

    Attributes:
        guarantee_, release_, card_ after `fit`.
    """

    relations = ("add-remove", "replace-one")

    _least: int | None = None  # how many records there surely are; a fitted trainer of an earlier version does not know

    def __init__(
        self,
        module: nn.Module,
        *,
        epsilon: AmountLike = 1.0,
        delta: AmountLike | None = None,
        loss: str | Loss = "cross_entropy",
        relation: str | None = None,
        n_public: int | None = None,
        descent: Descent = _DESCENT,
        runtime: Runtime = _RUNTIME,
        input_bound: float = 1e6,
        tokens: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
        random_state: int | None = None,
    ) -> None:
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.relation = relation
        self.n_public = n_public
        self.descent = descent
        self.runtime = runtime
        self.input_bound = input_bound
        self.tokens = tokens
        self.checkpoint = checkpoint
        self.ledger = ledger
        self.progress = progress
        self.random_state = random_state
        self._checked()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what an earlier version pickled, too: it held who takes part in which step, not the two numbers behind that."""
        rest = {name: value for name, value in state.items() if name != "plan"}
        super().__setstate__(rest | {"descent": rest["descent"].following(state["plan"])} if "plan" in state else rest)

    def _checked(self) -> Ask:
        checks.require(isinstance(self.module, nn.Module), "a torch.nn.Module", module=type(self.module).__name__)
        checks.require(callable(self.loss) or self.loss == "cross_entropy", "'cross_entropy' or a function", loss=self.loss)
        checks.require(isinstance(self.descent, Descent), "a Descent", descent=self.descent)
        checks.require(isinstance(self.runtime, Runtime), "a Runtime", runtime=self.runtime)
        checks.require(self.progress is None or callable(self.progress), "a function or None", progress=self.progress)
        for name in ("n_public", "tokens"):
            if getattr(self, name) is not None:
                checks.whole(minimum=1, **{name: getattr(self, name)})
        checks.positive(input_bound=self.input_bound)
        if self.delta is not None:
            exact_positive(self.delta, name="delta")
        ask = self._ask()
        if self.checkpoint is not None:
            checks.require(isinstance(self.checkpoint, str | os.PathLike), "the name of a folder", checkpoint=self.checkpoint)
            noise = self.runtime.noise
            checks.require(noise == "certified", "'certified' when there is a checkpoint", noise=noise)
            checks.require(ask.coin.private, "None when there is a checkpoint", random_state=self.random_state)
        return ask

    def plan(self, *, n_records: int) -> Plan:
        """What `fit` would cost and how large its noise would be, from public numbers alone.

        Args:
            n_records: How many records one expects.

        Raises:
            ParameterError: A parameter breaks its rule, or the module ends in one output, from which cross entropy learns
                nothing.
        """
        checks.whole(minimum=1, n_records=n_records)
        ask, steps = self._checked(), self.descent.plan
        must_end_in_classes(self.module, self._loss())
        price = self._price(ask, int(n_records))
        noise = float(price.multiplier)
        return Plan(
            method="dp-sgd",
            n_weights=sum(p.numel() for p in self.module.parameters() if p.requires_grad),
            joint_epsilon=plain(ask.epsilon),
            scope="joint",
            delta=plain(price.delta),
            relation=ask.relation,
            steps=steps.steps,
            noise_multiplier=noise,
            noise_to_signal=noise / (float(steps.probability) * int(n_records)),
            warnings=warnings_for(self._guarantee(ask, price, chain=False), int(n_records)),
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Trains once, charges once; a second call is a second release about the same records.

        With a `checkpoint` that holds an interrupted run, goes on with that run instead.

        Args:
            X: Inputs: a tensor or array of numbers whose first dimension counts records, or a frame of numbers.
            y: Targets, one for each record: numbers of classes from 0 on, or what the loss takes.

        Raises:
            ParameterError: A parameter breaks its rule, or the module cannot be trained privately, or learns nothing.
            DataError: X or y holds something else than numbers, or they differ in length.
            BudgetExceeded: The ledger refuses; nothing was trained.
        """
        ask = self._checked()
        ask.must_be_payable()
        run = self._run(ask, X, y)
        written(self.module)  # a missing package has to show before the charge
        with crew_of(self.runtime.processes, device=run.rows.x.device.type) as crew:
            self._learned(self._released(ask, replace(run, crew=crew)))
        self._account, self._n_public = run.account, run.n_public
        self._settings = {name: value if isinstance(value, int | float) else str(value) for name, value in run.settings.items()}
        self._least = surely(self.release_.value.get(NOISY_COUNT), run.count_epsilon)
        warn_of_delta(self.guarantee_, self._least, n_public=run.n_public)  # last: a warning may be made to raise
        return self

    def _run(self, ask: Ask, X: Any, y: Any) -> ModuleRun:
        """Everything that has to be right before the charge."""
        loss = self._loss()
        if self.checkpoint is not None:
            for _ in identified(loss, name="loss"):
                pass  # what cannot be identified is refused here, before the charge
        if self.runtime.processes > 1:
            must_travel(self.module, loss)
        rows = Rows.of(
            X,
            y,
            module=self.module,
            loss=loss,
            input_bound=float(self.input_bound),
            tokens=None if self.tokens is None else int(self.tokens),
            device=self._place(),
        )
        rows = rows.fit_for(loss, check_module(self.module, loss, rows.x, rows.y))
        fallback = needs_fallback(self.module, loss)
        price = self._price(ask, rows.count)
        loop = self._loop(price.multiplier, fallback=fallback)
        clipper = Clipper(self.module, loss, clip_norm=loop.clip_norm, precision=loop.precision)
        alone = rounds_by_row(self.module, loss, dimensions=rows.x.dim())
        alone = alone and rows_stand_alone(clipper, rows.x, rows.y, most=loop.most_rows or MOST_ROWS)  # proof: tried
        return ModuleRun(
            module=self.module,
            loss=loss,
            rows=rows,
            loop=loop,
            guarantee=self._guarantee(ask, price, chain=alone),
            target=price.target,
            count_epsilon=price.count,
            n_public=price.n_public,
            settings=self._facts(price),
        )

    def _released(self, ask: Ask, run: ModuleRun) -> Release:
        heard = self.progress or unheard
        if self.checkpoint is not None:
            from sabun.learning.checkpoint import train_resumably

            return train_resumably(self.checkpoint, kind=_KIND, run=run, ledger=ask.ledger, progress=heard, schema_hash=None)
        return ask.answer(
            lambda: run.train(Stream.fresh(ask.coin), heard),
            kind=_KIND,
            promise=run.guarantee,
            facts=run.facts,
            price=price_in(run.account),
        )

    def _place(self) -> torch.device:
        device = self.runtime.device or next((p.device for p in self.module.parameters()), torch.device("cpu"))
        self.module.to(device)
        return torch.device(device)

    def _loss(self) -> Loss:
        chosen: Loss = self.loss if callable(self.loss) else nn.CrossEntropyLoss(reduction="none")
        return chosen

    def _price(self, ask: Ask, n_records: int) -> _Price:
        """The number of records is public under replace-one, by definition; under add-remove if the caller says what it is."""
        stated = None if self.n_public is None else int(self.n_public)
        public = n_records if ask.relation == "replace-one" else stated
        delta = delta_for(ask.delta, public)
        target = _target(ask, delta)
        count = Fraction(0) if public is not None else _COUNT_SHARE * target.epsilon
        multiplier = noise_multiplier(self.descent.plan, target, count)
        return _Price(n_public=public, delta=delta, target=target, count=count, multiplier=multiplier)

    def _loop(self, multiplier: Fraction, *, fallback: bool) -> Loop:
        descent, runtime = self.descent, self.runtime
        return Loop(
            plan=descent.plan,
            multiplier=multiplier,
            clip_norm=float(descent.clip_norm),
            learning_rate=float(descent.learning_rate),
            momentum=float(descent.momentum),
            most_rows=runtime.most_rows,
            precision=runtime.precision,
            noise=runtime.noise,
            fallback=fallback,
            shards=shards_for(runtime),
        )

    def _guarantee(self, ask: Ask, price: _Price, *, chain: bool) -> Guarantee:
        words = [
            f"each {ask.unit} has at most one row",
            "the module and all settings were chosen without looking at the data",
            _SUMS["single" if self.runtime.precision == "single" else "chain" if chain else "module"],
            _NOISE[self.runtime.noise],
            "the module's code draws no random numbers, and leaves no trace of rows outside its own tensors",
        ]
        if price.n_public is not None:
            words.append("the number of records is public")
        return ask.guarantee(_MECHANISM[self.runtime.noise], assumptions=words, delta=price.delta)

    def _facts(self, price: _Price) -> dict[str, Any]:
        descent, runtime = self.descent, self.runtime
        return {
            "module": type(self.module).__name__,
            "sampling_probability": descent.plan.probability,
            "steps": descent.plan.steps,
            "noise_multiplier": price.multiplier,
            "noise": runtime.noise,
            "precision": runtime.precision,
            "clip_norm": descent.clip_norm,
            "input_bound": self.input_bound,
            "learning_rate": descent.learning_rate,
            "momentum": descent.momentum,
            "n_public": price.n_public,
            "torch": str(torch.__version__),
            **({"shards": shards_for(runtime)} if shards_for(runtime) > 1 else {}),
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
        self.card_ = Card(
            guarantee=self.guarantee_,
            account=self._account,
            model=described(self.module),
            parameters=self._settings,
            sha256=hashlib.sha256(raw).hexdigest(),
            software=software() | {"torch": str(torch.__version__)},
            randomness=_RANDOMNESS[self.runtime.noise],
            warnings=warnings_for(self.guarantee_, self._least or self._n_public, noisy=self._least is not None),
        )
        write_folder(path, files, card=self.card_, release=self.release_, overwrite=overwrite)


def _target(ask: Ask, delta: Fraction) -> Target:
    """The add-remove promise behind the stated one."""
    if ask.relation == "add-remove":
        return Target(epsilon=ask.epsilon, delta=delta)
    return halved(ask.epsilon, delta)  # proof: restated
