"""Train a network on personal records, hand the model to a third party.

`PrivateClassifier` is the door in; with `sign_model` its maker stands behind a model; `load_model` and `verify` are for whoever
receives it. What serves one way of training only is in its settings, such as `DpSgdSettings`. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.learning.audit import canary_audit
    from sabun.learning.card import Card
    from sabun.learning.classifier import PrivateClassifier
    from sabun.learning.folder import load_card, load_model, sign_model, verify
    from sabun.learning.membership_attack import membership_inference
    from sabun.learning.model import Model
    from sabun.learning.plain_classifier import PlainClassifier
    from sabun.learning.plan import Plan
    from sabun.learning.settings import (
        AnonymizedLearningSettings,
        AnonymizingFirstSettings,
        DpAdamSettings,
        DpSgdSettings,
        LaplaceSgdSettings,
        LearningFirstSettings,
        NoisyCentroidsSettings,
        ObjectivePerturbationSettings,
    )
    from sabun.learning.synthetic_table import SyntheticTable
    from sabun.learning.torch_modules import TorchTrainer as TorchTrainer  # not for `import *`: it needs the extra

__all__ = [
    "AnonymizedLearningSettings",
    "AnonymizingFirstSettings",
    "Card",
    "DpAdamSettings",
    "DpSgdSettings",
    "LaplaceSgdSettings",
    "LearningFirstSettings",
    "Model",
    "NoisyCentroidsSettings",
    "ObjectivePerturbationSettings",
    "PlainClassifier",
    "Plan",
    "PrivateClassifier",
    "SyntheticTable",
    "canary_audit",
    "load_card",
    "load_model",
    "membership_inference",
    "sign_model",
    "verify",
]

_HOMES = {
    "AnonymizedLearningSettings": "settings",
    "AnonymizingFirstSettings": "settings",
    "DpAdamSettings": "settings",
    "DpSgdSettings": "settings",
    "LaplaceSgdSettings": "settings",
    "LearningFirstSettings": "settings",
    "NoisyCentroidsSettings": "settings",
    "ObjectivePerturbationSettings": "settings",
    "Card": "card",
    "canary_audit": "audit",
    "membership_inference": "membership_attack",
    "Model": "model",
    "PlainClassifier": "plain_classifier",
    "Plan": "plan",
    "PrivateClassifier": "classifier",
    "SyntheticTable": "synthetic_table",
    "load_card": "folder",
    "load_model": "folder",
    "sign_model": "folder",
    "verify": "folder",
    "TorchTrainer": "torch_modules",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
