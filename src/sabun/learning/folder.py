"""A model on disk: a folder with the weights, the privacy card, the release."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, final

import numpy as np

from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.learning.card import Card
from sabun.learning.model import Model
from sabun.learning.safetensors import tensors_from_bytes, tensors_to_bytes
from sabun.privacy import plain
from sabun.release import Release
from sabun.release.files import read_whole, write_whole

__all__ = ["Folder", "load_model", "save_folder", "software", "verify"]

MODEL, CARD, RELEASE = "model.safetensors", "card.json", "release.json"
_LARGEST = 1 << 30
_MUCH = 10
_ONE_STORY = "card, release and model must tell one story; they differ. One of them was replaced."


@final
@dataclass(frozen=True, kw_only=True)
class Folder:
    """What a folder holds, read and checked to fit together."""

    model: Model
    card: Card
    release: Release


def software() -> dict[str, str]:
    """The versions a card names."""
    found = {"numpy": np.__version__}
    for name in ("sabun", "dp-accounting"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def model_bytes(model: Model) -> bytes:
    """The weights as a safetensors file."""
    return tensors_to_bytes(model.tensors(), {"format": "pt", "made_by": "sabun"})


def save_folder(
    path: str | os.PathLike[str],
    *,
    model: Model,
    card: Card,
    release: Release,
    overwrite: bool,
    allow_per_parameter: bool,
) -> None:
    """Writes the three files.

    Raises:
        SimulatedError: The model came from a seeded coin.
        ParameterError: The promise bounds each weight only by itself, and nobody said that this is understood.
        ReleaseError: The weights were changed after they were released.
        DataError: A file exists and `overwrite` is False, or the folder cannot be written.
    """
    content = release.to_json()
    if release.guarantee.scope == "per-parameter" and not allow_per_parameter:
        joint = plain(release.guarantee.cost[0])
        raise ParameterError(
            "allow_per_parameter must be True to hand over a model whose promise bounds each weight only by itself; got False. "
            f"All weights together are bounded by epsilon {joint}: say so to whoever gets the model."
        )
    weights = model_bytes(model)
    if hashlib.sha256(weights).hexdigest() != card.sha256:
        raise ReleaseError("the model must be the one that was released; its weights were changed since. Save a fitted one.")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} must be a folder that can be made; the system says: {error.strerror}.") from None
    for name in (MODEL, CARD, RELEASE):
        if not overwrite and (folder / name).exists():
            raise DataError(
                f"{folder / name} must be a new file; it exists already. Choose another name, or pass overwrite=True."
            )
    write_whole(folder / MODEL, weights, overwrite=overwrite)
    write_whole(folder / RELEASE, content, overwrite=overwrite)
    write_whole(folder / CARD, card.to_json(), overwrite=overwrite)


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Reads a folder that `PrivateClassifier.save` wrote, after `verify`.

    Raises:
        ReleaseError: A file is missing or damaged, or they contradict each other.
    """
    card, release, raw, _ = _checked(path)
    try:
        model = Model.from_parts(dict(card.model), tensors_from_bytes(raw)[0])
    except (ParameterError, KeyError, TypeError, AttributeError):
        raise ReleaseError("the card must describe the model; it does not fit it. Ask for the files again.") from None
    weights: Any = release.value.get("weights")
    if not np.array_equal(np.asarray(weights), model.weights):
        raise ReleaseError(_ONE_STORY)
    return Folder(model=model, card=card, release=release)


def _checked(path: str | os.PathLike[str]) -> tuple[Card, Release, bytes, str]:
    """The parts of a folder with what recomputing found."""
    folder = Path(path)
    raw = read_whole(folder / MODEL, max_bytes=_LARGEST)
    card = Card.from_json(read_whole(folder / CARD, max_bytes=_LARGEST))
    release = Release.load(folder / RELEASE, max_bytes=_LARGEST)
    found = card.check(raw)
    if release.guarantee != card.guarantee or release.value.get("model_sha256", card.sha256) != card.sha256:
        raise ReleaseError(_ONE_STORY)
    return card, release, raw, found


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model in a folder that `PrivateClassifier.save` wrote, after `verify`.

    Raises:
        ReleaseError: A file is missing, damaged or does not belong to the others.
    """
    return open_folder(path).model


def verify(path: str | os.PathLike[str]) -> str:
    """Recomputes what a model folder promises; returns a sentence, or raises.

    Raises:
        ReleaseError: Something was changed, or the numbers do not support the promise.
    """
    card, _, _, found = _checked(path)
    if "module" not in card.model:
        open_folder(path)
    return found


def warnings_for(epsilon: float) -> tuple[str, ...]:
    """What a reader of a card with that joint epsilon must be told."""
    if epsilon <= _MUCH:
        return ()
    return (f"joint epsilon {plain(epsilon)} is above {_MUCH}: such a promise means little to a single person",)
