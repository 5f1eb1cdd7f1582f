"""A model on disk: a folder with the weights, the privacy card, the release."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, final

import numpy as np

from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.learning.card import Card
from sabun.learning.model import Model
from sabun.learning.safetensors import tensors_from_bytes, tensors_to_bytes
from sabun.privacy import Guarantee, plain
from sabun.privacy.guarantee import LARGE_EPSILON
from sabun.release import Release
from sabun.release.files import read_whole, write_whole
from sabun.release.signature import TrustedKeys

__all__ = ["Folder", "load_model", "save_folder", "software", "verify"]

MODEL, CARD, RELEASE = "model.safetensors", "card.json", "release.json"
_LARGEST = 1 << 30
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
                f"{folder / name} must be a new file; it exists already. Choose another name, or allow overwriting."
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
    if not np.array_equal(np.asarray(weights), model.weights, equal_nan=True):
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
    facts = release.provenance.parameters
    told = {"account": card.account, "classes": card.model.get("classes"), **card.parameters}
    if facts.get("n_public") is None:
        told.pop("n_public", None)  # a card says "private" there
    if any(name in facts and _plain(facts[name]) != _plain(fact) for name, fact in told.items()):  # what a signature covers
        raise ReleaseError(_ONE_STORY)
    return card, release, raw, found


def _plain(fact: Any) -> Any:
    """A fact in JSON types, whichever file it came from."""
    if isinstance(fact, Mapping):
        return {str(name): _plain(part) for name, part in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(part) for part in fact]
    return fact if isinstance(fact, int | float | None) else str(fact)


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model in a folder that `PrivateClassifier.save` wrote, after `verify`.

    Raises:
        ReleaseError: A file is missing, damaged or does not belong to the others.
    """
    return open_folder(path).model


def verify(path: str | os.PathLike[str], *, public_key: TrustedKeys = None) -> str:
    """Recomputes what a model folder promises; returns a sentence, or raises.

    Args:
        path: The folder.
        public_key: The key or keys the reader trusts; with them the release must be signed by one. Without, a folder that
            somebody replaced as a whole cannot be told from the real one, and the sentence says so.

    Raises:
        ReleaseError: The files contradict each other, the numbers do not support the promise, or no trusted key signed the
            release. The card's warnings are its own words: a signature covers the release alone.
    """
    card, release, _, found = _checked(path)
    if "module" not in card.model:
        open_folder(path)
    if public_key is None:
        return f"{found}; who made it is not checked"
    return f"{found}; signed by the trusted key {release.verify(public_key).fingerprint}"


def warnings_for(guarantee: Guarantee, n_public: int | None) -> tuple[str, ...]:
    """What a reader of a card with that promise must be told."""
    epsilon, delta = guarantee.cost
    found = []
    if epsilon > LARGE_EPSILON:
        found.append(f"joint epsilon {plain(epsilon)} is above {LARGE_EPSILON}: such a promise means little to a single person")
    if n_public is not None and delta * 10 * n_public > 1:
        found.append(
            f"delta {plain(delta)} is above a tenth of one over the number of records ({n_public}): "
            "with such a probability a record may be exposed entirely"
        )
    return tuple(found)
