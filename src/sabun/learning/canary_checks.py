"""The canary audit of every way of training by noisy sums: as it is, and with its noise or its clipping taken out.

Claims are refuted by mistake at most once in a million verdicts; what is broken must be refuted, or the audit has no power.
Delta is small, for at a million to one the term of a larger delta would leave the one-run bound nothing to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sabun.asking.evidence import Bench, Checklist, each
from sabun.learning import PrivateClassifier, canary_audit, clipping, dpadam, dpsgd, laplace_sgd
from sabun.learning.audit import CanaryAudit

__all__ = ["CHECKS", "unclipped"]

CHECKS = Checklist()
_RARELY = 1e-6
_TRIES = 4

_COINS = {
    "dp-sgd": (dpsgd, "rounded_gaussian"),
    "dp-adam": (dpadam, "rounded_gaussian"),
    "laplace-sgd": (laplace_sgd, "discrete_laplace"),
}
_SHORT: dict[str, dict[str, Any]] = {
    "dp-sgd": {"delta": 1e-8, "sampling_rate": 0.2, "epochs": 6},
    "dp-adam": {"delta": 1e-8, "epochs": 20},
    "laplace-sgd": {"sampling_rate": 0.2, "epochs": 6},
}


def unclipped(self: Any, activity: Any, lengths: Any, count: int) -> Any:
    """The sum of a piece by someone who forgot to clip, in the place of `ClippedSum._part`."""
    del lengths
    shares = np.zeros(activity.errors[0].shape[1])
    shares[:count] = 1 / self._clip_norm
    return self._passes.summed(activity, shares)


def _no_noise(centre: Any, *_: Any, **how: Any) -> Any:
    """Sums as they are; no Laplace noise where only noise is asked for."""
    return centre if isinstance(centre, np.ndarray) else np.zeros(how.get("size", ()), dtype=np.int64)


def _tried(bench: Bench, run: Callable[[], CanaryAudit], faults: dict[str, tuple[Any, str, Any]]) -> str:
    """Not refuted as it is, refuted with each fault: by bad luck some get away once, so that each has a few tries."""
    honest = run()
    bench.must(not honest.refuted, str(honest))
    told = [f"epsilon >= {honest.epsilon_lower:.2g} of {honest.claimed_epsilon:g}"]
    for name, (home, place, fault) in faults.items():
        bench.replace(home, place, fault)
        tries, found = 1, run()
        while tries < _TRIES and not found.verdicts[0].refuted:
            tries, found = tries + 1, run()
        bench.put_back()
        bench.must(found.verdicts[0].refuted, f"{name}, and the audit did not notice in {tries} tries: {found}")
        told.append(f"{name} >= {found.epsilon_lower:.2g}{f' in try {tries}' if tries > 1 else ''}")
    return ", ".join(told)


@CHECKS("dp-sgd", "dp-adam", "laplace-sgd", shown="lower bound", cases=each("method", [(name,) for name in _COINS]))
def _canaries_do_not_refute_the_claim_and_would_without_noise_or_clipping(bench: Bench, method: str) -> str:
    hidden = () if method == "laplace-sgd" else (8,)
    classifier = PrivateClassifier(
        method=method, epsilon=1, classes=["no", "yes"], n_public=1000, hidden=hidden, **_SHORT[method]
    )
    faults = {
        "without noise": (*_COINS[method], _no_noise),
        "without clipping": (clipping.ClippedSum, "_part", unclipped),
    }
    return _tried(bench, functools.partial(canary_audit, classifier, confidence=1 - _RARELY), faults)


@CHECKS("torch-modules", shown="lower bound", needs="learning")
def _canaries_do_not_refute_a_module_and_would_without_noise_or_clipping(bench: Bench) -> str:
    from torch import nn

    from sabun.learning import TorchTrainer
    from sabun.learning.torch_modules import ghost, loop

    module = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    facts: dict[str, Any] = {"epsilon": 1, "delta": 1e-8, "n_public": 1000, "sampling_rate": 0.2, "epochs": 6}
    trainer = TorchTrainer(module, **facts)

    def whole(self: Any, squares: Any) -> Any:
        return squares.new_full(squares.shape, 1 / self._clip_norm)

    faults = {
        "without noise": (loop, "rounded_gaussian", _no_noise),
        "without clipping": (ghost.Clipper, "_shares", whole),
    }
    return _tried(bench, functools.partial(canary_audit, trainer, confidence=1 - _RARELY), faults)
