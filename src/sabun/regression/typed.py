"""What the verbs of `sabun regression` share: reading options, asking, telling."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from sabun import checks
from sabun.errors import ParameterError
from sabun.telling.terminal.charging import warn_if_large
from sabun.telling.terminal.columns import declared, listed
from sabun.telling.terminal.options import NUMBER_COLUMN
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.releases import private_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sabun.ledger import Ledger
    from sabun.records import FilePart, Schema
    from sabun.regression import HomeModel, PublicModel, Shape, Study
    from sabun.release import Release

__all__ = [
    "Delta",
    "Epsilon",
    "Method",
    "Target",
    "features_of",
    "given",
    "keys_of",
    "must_be_free",
    "number",
    "own_release",
    "predict_to",
    "quiet_warnings",
    "save_once",
    "shape_of",
    "signer_of",
    "tell_model",
    "tell_study",
    "terms_of",
]

Target: TypeAlias = Annotated[
    str | None, typer.Option("--target", metavar=NUMBER_COLUMN, help="The column to predict; the others are features.")
]
Epsilon: TypeAlias = Annotated[
    str | None, typer.Option("--epsilon", help="Privacy of each release, exactly as written: 1, 0.1 or 1/3.")
]
Delta: TypeAlias = Annotated[
    str | None, typer.Option("--delta", help="The same for delta; 1e-6 by default where one is needed.")
]
Method: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--method",
        "--mechanism",
        metavar="staged|rounds|ssp-gauss|ssp-laplace|objpert|auto|paper",
        help="staged (the usual one), rounds, ssp-gauss, ssp-laplace, objpert, auto; or paper: no promise.",
    ),
]

_UNSPENT = "Nothing was released, nothing was charged."


def features_of(schema: Path | None, bounds: list[str] | None, columns: str | None, target: str | None) -> tuple[Schema, Any]:
    """The declared features, the declared target."""
    from sabun.records import NumberColumn

    known, goal = declared(schema, bounds), given(target, "target")
    if goal not in known.names:
        listed(goal, known, option="target")
    column = known[goal]
    numbers = [one.name for one in known.columns if isinstance(one, NumberColumn)]
    checks.require(goal in numbers, "a column of numbers", checks.offered(None, numbers), target=goal)
    chosen = listed(columns, known) or [name for name in known.names if name != goal]
    if not chosen:
        raise ParameterError(f"columns must hold a feature beside the target; got {goal!r} alone. Add --bounds name=low:high.")
    return known.select(chosen), column


def number(text: str, name: str) -> float:
    """A number from the command line."""
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number; got {text!r:.60}.") from None


def shape_of(told: Sequence[str]) -> Shape | None:
    """What tables are like, from KEY=VALUE; None where nothing was told.

    Raises:
        ParameterError: There is no such key, or its value is no number or breaks its rule.
    """
    from sabun.regression import Shape

    keys, found = [field.name for field in fields(Shape)], dict[str, float]()
    for text in told:
        name, _, value = text.partition("=")
        key = name.strip().replace("-", "_")
        if key not in keys:
            raise ParameterError(f"shape must be KEY=VALUE with a key among {', '.join(keys)}; got {text!r:.60}.")
        found[key] = number(value, key)
    return Shape(**found) if found else None


def given(text: str | None, name: str) -> str:
    """An option that must be there."""
    if not text:
        raise ParameterError(f"{name} must be given. Pass --{name}, or a --study that says it.")
    return text


def keys_of(pairs: list[str]) -> dict[str, Any]:
    """Public keys from name=path pairs."""
    from sabun.release import load_key

    found = [pair.partition("=") for pair in pairs]
    if not all(name and path for name, _, path in found):
        raise ParameterError("organisation must be name=public-key.pem. Make a key with: sabun regression keygen NAME")
    return {name: load_key(path) for name, _, path in found}


def signer_of(study: Study | None, organisation: str | None, key: Path | None) -> Ed25519PrivateKey | None:
    """The key of a release, if it is one that readers of the study will take; looked at before anything is charged."""
    own = None if key is None else private_key(key)
    if study is None or not study.organisations:
        return own
    due = study.public_key(organisation or "")
    if own is None:
        raise ParameterError(
            f"signing-key must be given: the study takes only what {organisation!r} signed. "
            f"Pass --signing-key with its private key. {_UNSPENT}"
        )
    if own.public_key().public_bytes_raw() != due.public_bytes_raw():
        raise ParameterError(
            f"signing-key must be the private half of the key that the study holds for {organisation!r}; {str(key)!r} is "
            f"another. Pass the right one. {_UNSPENT}"
        )
    return own


def terms_of(study: Path | None, said: Mapping[str, Any]) -> dict[str, Any]:
    """The terms as `PrivateRidge` takes them: a study from its file, or what the options say.

    Args:
        study: The file.
        said: schema, bounds, columns, target, epsilon, delta, method, relation; those that were left out are None.
    """
    from sabun.regression import Study

    if study is not None:
        for name, value in said.items():
            if value is not None and value != []:
                raise ParameterError(f"--{name} must be left out with --study, which says it.")
        return {"study": Study.load(study)}
    features, goal = features_of(said["schema"], said["bounds"], said["columns"], said["target"])
    terms = {name: said[name] for name in ("delta", "relation")} | {"x_bounds": features, "y_bounds": goal}
    return terms | {"epsilon": given(said["epsilon"], "epsilon"), "method": said["method"] or "staged"}


def must_be_free(out: Path, request: str | None, book: Ledger | None, signer: Ed25519PrivateKey | None) -> None:
    """Refuses a file that cannot be written; one that holds the answer to the same request already is fine, and stays."""
    from sabun.release import Release

    if book is not None and request is not None and out.is_file():
        content = out.read_bytes()
        for entry in book.with_key(request):
            if entry.state == "committed" and content == _signed(Release.from_json(book.kept(entry.entry)), signer).to_json():
                return
    new_file(out)


def _signed(release: Release, signer: Ed25519PrivateKey | None) -> Release:
    return release if signer is None else release.sign(signer)


def save_once(release: Release, out: Path) -> None:
    """A repeated request gives identical bytes, so a file that holds them already is fine."""
    if not (out.is_file() and out.read_bytes() == release.to_json()):
        release.save(out)


def own_release(name: str | None, ledger: str | None) -> str | Ledger | None:
    """Which releases were made of the home table: by a name, by the book that paid."""
    from sabun.ledger import Ledger

    if name is not None and ledger is not None:
        raise ParameterError("--own must be left out with --own-ledger, which says it. Drop one of them.")
    return name if ledger is None else Ledger.open(ledger)


def predict_to(model: HomeModel | PublicModel, source: FilePart, target: Path) -> None:
    """Writes predictions as CSV, with their intervals where the model knows any."""
    from sabun.release.files import write_whole

    names, columns = model.predictions(source)
    lines = [",".join(names), *(",".join(map(repr, row)) for row in columns.tolist())]
    write_whole(target, ("\n".join(lines) + "\n").encode())


def tell_study(study: Study, path: Path, *, json: bool, wrote: bool = False) -> None:
    """Shows the terms of a study."""
    if json:
        facts = {"hash": study.hash, "coefficients": study.width, "study": study.to_dict()}
        print_json({"out" if wrote else "path": str(path)} | facts)
        return
    from sabun.regression.promise import guarantee_of

    print_line(
        f"Study {study.name!r} in {str(path)!r}: {study.target.name} from {', '.join(study.features.names)}.", style="bold"
    )
    print_line(f"Organisations: {', '.join(study.organisations) or 'any (no keys)'}. Method: {study.method}.")
    whose = "Both releases of an organisation together promise" if study.method == "rounds" else "Each release promises"
    print_line(f"{whose}: {guarantee_of(study)}")
    warn_if_large(study.epsilon)
    print_line(f"Hash: {study.hash}")


def tell_model(model: HomeModel | PublicModel, out: Path | None, *, json: bool) -> None:
    """Shows a model."""
    from sabun.regression import HomeModel

    if json:
        kind = "home" if isinstance(model, HomeModel) else "public"
        print_json(model.to_dict() | {"model": kind, "out": None if out is None else str(out)})
        return
    print_line(str(model))
    for row in model.influences:
        print_line(f"  without {row.organisation}: a coefficient moves by {row.largest_shift:.2g} standard errors")


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """The model's findings say the same; a warning would say it twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
