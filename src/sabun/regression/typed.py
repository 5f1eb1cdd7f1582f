"""What the verbs of `sabun regression` share: reading options, asking, telling."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from sabun.errors import ParameterError
from sabun.telling.terminal.charging import warn_if_large
from sabun.telling.terminal.columns import typed_bounds
from sabun.telling.terminal.output import new_file, print_json, print_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sabun.ledger import Ledger
    from sabun.records import Schema
    from sabun.regression import HomeModel, Plan, PublicModel, Study
    from sabun.release import Release

__all__ = [
    "ask",
    "features_of",
    "given",
    "keys_of",
    "must_be_free",
    "number",
    "own_release",
    "predict_to",
    "private_key_of",
    "quiet_warnings",
    "save_once",
    "signing_key",
    "tell_model",
    "tell_study",
    "terms_of",
]


_UNSPENT = "Nothing was released, nothing was charged."


def features_of(schema: Path | None, bounds: list[str] | None, columns: str | None, target: str | None) -> tuple[Schema, Any]:
    """The declared features, the declared target."""

    from sabun.records import Column, NumberColumn, Schema

    declared = [] if schema is None else list(Schema.load(schema).columns)
    for text in bounds or []:
        name, ends = typed_bounds(text)
        declared = [column for column in declared if column.name != name] + [Column.number(name, bounds=ends)]
    if not declared:
        raise ParameterError(
            "columns must be declared: pass --schema or --bounds name=low:high. Bounds never come from the data."
        )
    known, goal = Schema(columns=tuple(declared)), given(target, "target")
    listed = [name.strip() for name in columns.split(",")] if columns else [name for name in known.names if name != goal]
    for option, name in [("target", goal), *(("columns", name) for name in listed)]:
        if name not in known.names:
            raise ParameterError(
                f"{option} must be declared, one of {', '.join(map(repr, known.names))}; got {name!r}. "
                f"Add --bounds '{name}=low:high'."
            )
    column = known[goal]
    if not isinstance(column, NumberColumn):
        raise ParameterError(f"target must be a number column; got {goal!r}.")
    return known.select(listed), column


def number(text: str, name: str) -> float:
    """A number from the command line."""

    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number; got {text!r:.60}.") from None


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


def private_key_of(path: Path) -> Ed25519PrivateKey:
    """A private key from its file."""

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sabun.release import load_key

    key = load_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(f"key must be the private half; {str(path)!r} is a public key.")
    return key


def signing_key(terms: Study, organisation: str | None, key: Path | None) -> Ed25519PrivateKey | None:
    """The key of a release, if it is one that readers of the study will take; looked at before anything is charged."""
    own = None if key is None else private_key_of(key)
    if not terms.organisations:
        return own
    due = terms.public_key(organisation or "")
    if own is None:
        raise ParameterError(
            f"key must be given: the study takes only what {organisation!r} signed. Pass --key with its private key. {_UNSPENT}"
        )
    if own.public_key().public_bytes_raw() != due.public_bytes_raw():
        raise ParameterError(
            f"key must be the private half of the key that the study holds for {organisation!r}; {str(key)!r} is another. "
            f"Pass the right one. {_UNSPENT}"
        )
    return own


def terms_of(study: Path | None, *rest: Any) -> Study:
    """The study of a fit: from its file, or from options."""

    from sabun.regression import Study

    schema, bounds, columns, target, epsilon, delta, mechanism, relation, unit = rest
    if study is not None:
        said = {"--schema": schema, "--bounds": bounds, "--target": target, "--epsilon": epsilon, "--delta": delta}
        said |= {"--columns": columns, "--mechanism": mechanism, "--relation": relation}
        for name, value in said.items():
            if value is not None and value != []:
                raise ParameterError(f"{name} must be left out with --study, which says it.")
        return Study.load(study)
    features, goal = features_of(schema, bounds, columns, target)
    return Study(
        features=features,
        target=goal,
        epsilon=given(epsilon, "epsilon"),
        delta=delta,
        mechanism=mechanism or "ssp-gauss",
        relation=relation or "replace-one",
        unit=unit,
    )


def ask(plan: Plan, *, yes: bool, quiet: bool) -> None:
    """Shows what to expect before anything is charged; mostly noise needs a yes."""
    if not quiet:
        Console(stderr=True, markup=False, highlight=False).print(str(plan), soft_wrap=True)
    if plan.error_released <= 0.5 or yes:
        return
    if not sys.stdin.isatty() or not typer.confirm("Mostly noise is expected. Release anyway?", err=True):
        raise ParameterError(f"mostly noise is expected. Pass --yes to release anyway. {_UNSPENT}")


def must_be_free(out: Path, request: str | None, book: Ledger | None) -> None:
    """Refuses a file that cannot be written; one that exists may be there from the same request, which then costs nothing."""
    asked_before = book is not None and request is not None and bool(book.with_key(request))
    if not (asked_before and out.is_file()):
        new_file(out)


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


def predict_to(model: HomeModel | PublicModel, source: Path, target: Path) -> None:
    """Writes predictions as CSV, with their intervals where the model knows any."""

    from sabun.release.files import write_whole

    columns, names = [model.predict(source)], ["prediction"]
    if model.error is not None:
        columns, names = [*columns, *model.predict_interval(source).T], [*names, "low", "high"]
    lines = [",".join(names), *(",".join(repr(float(value)) for value in row) for row in zip(*columns, strict=True))]
    write_whole(target, ("\n".join(lines) + "\n").encode())


def tell_study(study: Study, path: Path, *, json: bool) -> None:
    """Shows the terms of a study."""

    if json:
        print_json({"path": str(path), "hash": study.hash, "coefficients": study.width, "study": study.to_dict()})
        return
    from sabun.regression.releasing import guarantee_of

    print_line(
        f"Study {study.name!r} in {str(path)!r}: {study.target.name} from {', '.join(study.features.names)}.", style="bold"
    )
    print_line(f"Organisations: {', '.join(study.organisations) or 'any (no keys)'}. Mechanism: {study.mechanism}.")
    print_line(f"Each release promises: {guarantee_of(study)}")
    warn_if_large(study.epsilon)
    print_line(f"Hash: {study.hash}")


def tell_model(model: HomeModel | PublicModel, *, json: bool, is_home: bool) -> None:
    """Shows a model."""

    if json:
        print_json(model.to_dict() | {"model": "home" if is_home else "public"})
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
