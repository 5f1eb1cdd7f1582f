"""A model on disk: a folder with the weights, the privacy card, the release, and a list of its files that can be signed.

The list (`files.json`) is a small release of its own, of cost zero: the SHA-256 of every file in the folder. Folders made
before there was one are read as what they are: a signature on their release covers the release alone, and `verify` says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sabun.asking import renamed
from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.learning.card import LARGEST_CARD, Card
from sabun.learning.features import Features, Labels
from sabun.learning.model import Model
from sabun.learning.network import Network
from sabun.learning.safetensors import tensors_to_bytes
from sabun.privacy import Guarantee, plain
from sabun.release import Release, derived
from sabun.release.files import read_whole, write_whole
from sabun.release.signature import TrustedKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "load_card",
    "load_model",
    "model_bytes",
    "persons_in",
    "save_folder",
    "sign_model",
    "software",
    "verify",
    "write_folder",
]

MODEL, CARD, RELEASE, FILES = "model.safetensors", "card.json", "release.json", "files.json"
STATE_DICT, ONNX = "state_dict.pt", "model.onnx"
_OURS = (MODEL, CARD, RELEASE, FILES, STATE_DICT, ONNX)
_KIND = "learning.folder"
_LARGEST = 1 << 30
_AT_A_TIME = 1 << 20
_ONE_STORY = "card, release and model must tell one story; they differ. One of them was replaced."
_NOT_LISTED = "Move away what does not belong to it, or ask for the folder again."


@final
@dataclass(frozen=True, kw_only=True)
class _Checked:
    """What a folder holds, read and found to fit together.

    Args:
        card: The privacy card.
        release: What the ledger was charged for.
        model: A classifier's; None for a torch module.
        listed: The list of files; None in a folder made before there was one.
        found: What recomputing the promise found, in words.
    """

    card: Card
    release: Release
    model: Model | None
    listed: Release | None
    found: str


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
    """Writes a classifier's folder.

    Raises:
        SimulatedError: The model came from a seeded coin.
        ParameterError: The promise bounds each weight only by itself, and nobody said that this is understood.
        ReleaseError: The weights were changed after they were released.
        DataError: A file exists and `overwrite` is False, or the folder cannot be written.
    """
    release.to_json()  # a simulation is refused before anything else is said about it
    if release.guarantee.scope == "per-parameter" and not allow_per_parameter:
        joint = plain(release.guarantee.cost[0])
        raise ParameterError(
            "allow_per_parameter must be True to hand over a model whose promise bounds each weight only by itself; got False. "
            f"All weights together are bounded by epsilon {joint}: say so to whoever gets the model."
        )
    weights = model_bytes(model)
    if hashlib.sha256(weights).hexdigest() != card.sha256:
        raise ReleaseError("the model must be the one that was released; its weights were changed since. Save a fitted one.")
    write_folder(path, {MODEL: weights}, card=card, release=release, overwrite=overwrite)


def write_folder(
    path: str | os.PathLike[str], files: Mapping[str, bytes], *, card: Card, release: Release, overwrite: bool
) -> None:
    """Writes files with card and release beside them, and last the list of them all.

    Raises:
        SimulatedError: The model came from a seeded coin.
        DataError: A file exists and `overwrite` is False, or the folder cannot be written.
    """
    parts = {**files, RELEASE: release.to_json(), CARD: card.to_json()}
    parts[FILES] = _list_of({name: _digest(content) for name, content in parts.items()}, release).to_json()
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} must be a folder that can be made; the system says: {error.strerror}.") from None
    there = [folder / name for name in dict.fromkeys((*parts, *_OURS)) if (folder / name).exists()]
    if there and not overwrite:
        raise DataError(f"{there[0]} must be a new file; it exists already. Choose another name, or allow overwriting.")
    for file in there:
        if file.name not in parts:  # left over from another model
            file.unlink()
    for name, content in parts.items():
        write_whole(folder / name, content, overwrite=overwrite)


def load_card(path: str | os.PathLike[str]) -> Card:
    """The card in a model's folder, whatever else is there.

    Raises:
        ReleaseError: It is missing, or no card.
    """
    return Card.from_json(read_whole(_plain_file(Path(path) / CARD), max_bytes=LARGEST_CARD))


def persons_in(path: str | os.PathLike[str]) -> Any:
    """How persons were made of rows for the model in a folder, as its release says; None where each row was one.

    Raises:
        ReleaseError: Its release is missing or damaged.
    """
    return Release.load(_plain_file(Path(path) / RELEASE), max_bytes=_LARGEST).provenance.parameters.get("persons")


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model in a folder that `PrivateClassifier.save` wrote, after `verify`; a file more than listed, which decides nothing
    here, is left alone.

    Raises:
        ReleaseError: A file is missing, damaged or does not belong to the others.
    """
    model = _checked(path, strictly=False).model
    if model is None:
        raise ReleaseError("the folder must hold a classifier of Sabun's own; it holds a torch module. Load it with torch.")
    return model


@renamed(public_key="trusted_key")
def verify(path: str | os.PathLike[str], *, trusted_key: TrustedKeys = None) -> str:
    """Recomputes what a model folder promises; returns a sentence, or raises.

    Args:
        path: The folder.
        trusted_key: The key or keys the reader trusts; with them the list of files must be signed by one (`sign_model`), and
            through it every file. Of a folder made before there were lists the release must be signed, and the sentence says
            what that leaves open. Without a key, a folder that somebody replaced as a whole cannot be told from the real one.

    Raises:
        ReleaseError: The files contradict each other, there is one more or one less than the list says, the numbers do not
            support the promise, or no trusted key signed.
    """
    held = _checked(path)
    if trusted_key is None:
        return f"{held.found}; who made it is not checked"
    if held.listed is None:
        name = held.release.verify(trusted_key).fingerprint
        return f"{held.found}; its release is signed by the trusted key {name}, {_covered_before(held, Path(path))}"
    if held.listed.signature is None:
        raise ReleaseError(
            f"the folder must be signed as a whole; {FILES} is not. Ask its publisher to sign it: sabun learning sign."
        )
    return f"{held.found}; every file is signed by the trusted key {held.listed.verify(trusted_key).fingerprint}"


@renamed(private_key="signing_key")
def sign_model(path: str | os.PathLike[str], signing_key: Ed25519PrivateKey) -> str:
    """Signs the list of a folder's files, and through it every file; returns the short name of the key.

    A folder made before there were lists gets one. What `verify` refuses is not signed.

    Raises:
        ReleaseError: The files contradict each other or are not those on the list.
        ParameterError: The key is not a private Ed25519 key.
        DataError: The list cannot be written.
    """
    folder, held = Path(path), _checked(path)
    listed = held.listed
    if listed is None:
        digests = {name: _digest_of(folder / name, held.release) for name in sorted(_names(folder))}
        listed = _list_of(digests, held.release)
    signed = listed.sign(signing_key)
    signed.save(folder / FILES, overwrite=True)
    return signed.verify().fingerprint


def _checked(path: str | os.PathLike[str], *, strictly: bool = True) -> _Checked:
    """The parts of a folder, once they tell one story; strictly: and there is no file that is not on the list."""
    folder = Path(path)
    raw = read_whole(_plain_file(folder / MODEL), max_bytes=_LARGEST)
    card = load_card(folder)
    release = Release.load(_plain_file(folder / RELEASE), max_bytes=_LARGEST)
    found = card.check(raw)
    _must_agree(card, release)
    model = _model(card, release, raw) if release.provenance.kind == "learning.classifier" else None
    listed = _list_in(folder, release, strictly=strictly)
    return _Checked(card=card, release=release, model=model, listed=listed, found=found)


def _must_agree(card: Card, release: Release) -> None:
    """Refuses a card that says something else than the release, wherever both speak."""
    if release.guarantee != card.guarantee or release.value.get("model_sha256", card.sha256) != card.sha256:
        raise ReleaseError(_ONE_STORY)
    facts = release.provenance.parameters
    told = {"account": card.account, "classes": card.model.get("classes"), **card.parameters}
    if facts.get("n_public") is None:
        told.pop("n_public", None)  # a card says "private" there
    same = all(_plain(facts[name]) == _plain(fact) for name, fact in told.items() if name in facts)
    if not same or _plain(release.value.get("model", card.model)) != _plain(card.model):
        raise ReleaseError(_ONE_STORY)


def _model(card: Card, release: Release, raw: bytes) -> Model:
    """The classifier that card and release describe, if the model file is this one to the last byte.

    Nothing is read out of the model file: the release has the weights, so a file with something more in it is another file.
    """
    try:
        network, weights = Network(sizes=tuple(card.model["sizes"])), release.value["weights"]
        if weights.dtype != np.float64 or weights.shape != (network.n_weights,):
            raise ValueError
        features = Features.from_dict(card.model["features"])
        classes = Labels(classes=tuple(card.model["classes"]), declared=True).classes
        if (features.width, len(classes)) != (network.sizes[0], network.sizes[-1]):
            raise ValueError
        model = Model(network=network, weights=np.array(weights), features=features, classes=classes)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ReleaseError("the card must describe the model; it does not fit it. Ask for the files again.") from None
    schema_hash = None if features.schema is None else features.schema.hash
    covered = (schema_hash, list(features.names), model.to_dict())
    columns = _plain(release.provenance.parameters.get("columns"))
    if covered != (release.provenance.schema_hash, columns, card.model) or model_bytes(model) != raw:
        raise ReleaseError(_ONE_STORY)
    return model


def _list_of(digests: Mapping[str, str], release: Release) -> Release:
    """A list of files, not signed yet."""
    whose, nothing = release.guarantee, "none: digests of files that are released already"
    free = Guarantee(epsilon=0, relation=whose.relation, unit=whose.unit, mechanism=nothing)
    return derived({"files": dict(digests)}, kind=_KIND, promise=free, facts={})


def _list_in(folder: Path, release: Release, *, strictly: bool) -> Release | None:
    """The folder's list, once every entry was found in the folder and, strictly, every file on it.

    Raises:
        ReleaseError: There is a file more or less, a file is another one, or there is no list though the release is of a
            version that always wrote one.
    """
    if not (folder / FILES).exists():
        if "model" in release.value:  # or the list could be taken away, to have the folder pass for an older one
            raise ReleaseError(f"the folder must hold {FILES}, the list of its files; it does not. Ask for the folder again.")
        return None
    listed = Release.load(_plain_file(folder / FILES))
    entries, there = listed.value.get("files"), _names(folder)
    if listed.provenance.kind != _KIND or not isinstance(entries, Mapping):
        raise ReleaseError(f"{FILES} must be the list of a model folder's files; it is something else. {_NOT_LISTED}")
    for name in sorted(set(entries) - there):
        raise ReleaseError(f"the folder must hold every file on its list; {name!r} is missing. Ask for the folder again.")
    for name in sorted(there - set(entries)) if strictly else ():
        raise ReleaseError(f"the folder must hold the files on its list and no other; {name!r} is not on it. {_NOT_LISTED}")
    for name, digest in entries.items():
        if digest != _digest_of(folder / name, release):
            raise ReleaseError(f"{name} must be the file on the folder's list; it was changed or replaced. {_NOT_LISTED}")
    return listed


def _names(folder: Path) -> set[str]:
    """What is in a folder beside the list."""
    return {file.name for file in folder.iterdir()} - {FILES}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(file: Path, release: Release) -> str:
    """The SHA-256 of a file; that of the release leaves its signature out, which may be added later."""
    if file.name == RELEASE:
        return _digest(dataclasses.replace(release, signature=None).to_json())
    digest = hashlib.sha256()
    try:
        with open(_plain_file(file), "rb") as opened:
            while part := opened.read(_AT_A_TIME):
                digest.update(part)
    except OSError as error:
        raise ReleaseError(f"{file} must be a readable file; the system says: {error.strerror}.") from None
    return digest.hexdigest()


def _plain_file(file: Path) -> Path:
    """The same, unless it is a pipe, a device or a folder: reading a pipe that came with a folder would wait for ever."""
    if file.exists() and not file.is_file():
        raise ReleaseError(f"a model folder must hold plain files only; {file.name!r} is something else. {_NOT_LISTED}")
    return file


def _covered_before(held: _Checked, folder: Path) -> str:
    """What the signature on a release covers in a folder without a list, in words."""
    covers, open_to_change = ["the promise"], ["the words of the card"]
    if held.model is None:
        covers += [MODEL]
    else:
        covers += ["the weights", "the columns with their bounds and categories"]
        named = "classes" in held.release.provenance.parameters
        (covers if named else open_to_change).append("the classes in their order")
    open_to_change += sorted(_names(folder) - {MODEL, CARD, RELEASE})
    return f"which covers {', '.join(covers)}, but not {', '.join(open_to_change)}: it was made before folders had a list"


def _plain(fact: Any) -> Any:
    """A fact in JSON types, whichever file it came from."""
    if isinstance(fact, Mapping):
        return {str(name): _plain(part) for name, part in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(part) for part in fact]
    return fact if isinstance(fact, int | float | None) else str(fact)
