"""Both ends of the carrier: writing the app's folder, checking what arrived."""

from __future__ import annotations

import os
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.regression.contribution import Contribution, read_one
from sabun.regression.study import Study

__all__ = ["received", "write_app"]


def write_app(folder: str | os.PathLike[str]) -> Path:
    """Writes the Flower app into a new folder, to be run with `flwr run FOLDER`.

    The app is two short files without any dependency but Flower; read them before you let them run. A node is told its outbox
    when it starts: `flower-supernode --node-config 'outbox="/srv/outbox"' ...`; the coordinator its inbox when the run starts:
    `flwr run FOLDER --run-config 'inbox="/srv/inbox"'`.

    Raises:
        DataError: The folder exists already.
    """
    target = Path(folder)
    if target.exists():
        raise DataError(f"{target} must be a new folder; it exists already. Choose another name.")
    with as_file(files("sabun.regression.carrier") / "app") as source:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def received(inbox: str | os.PathLike[str], study: Study) -> tuple[tuple[Contribution, ...], tuple[str, ...]]:
    """Checks every file of an inbox against the study: what is good, and a sentence about each file that is not.

    A carrier is not trusted: a file counts only if an organisation of the study signed it, whoever brought it.

    Raises:
        DataError: There is no such folder.
        ParameterError: The study names no organisations, so that no signature could be checked.
    """
    if not study.organisations:
        raise ParameterError("study must name organisations with their keys; got none. What is carried needs a signature.")
    folder = Path(inbox)
    if not folder.is_dir():
        raise DataError(f"{folder} must be a folder; there is none of that name.")
    good, bad = [], []
    for file in sorted(folder.glob("*.json")):
        try:
            good.append(read_one(file, study))
        except ReleaseError as error:
            bad.append(str(error))
    return tuple(good), tuple(bad)
