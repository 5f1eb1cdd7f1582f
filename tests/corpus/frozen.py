"""What a version's folder of frozen files says was asked, and how to ask it again; for `write.py` and the test.

A request is plain JSON in the words below. Where a public name changes, the table of words is the one place to follow it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sabun.density
import sabun.learning
import sabun.outliers
import sabun.regression
from sabun import Ledger, Schema

HERE = Path(__file__).parent
GOLDEN = "golden.json"
PUBLISHER = "publisher.pub.pem"

CLASSES: dict[str, Callable[..., Any]] = {
    "DensityRatio": sabun.density.DensityRatio,
    "OutlierCount": sabun.outliers.OutlierCount,
    "PrivateClassifier": sabun.learning.PrivateClassifier,
    "PrivateRidge": sabun.regression.PrivateRidge,
    "RegionCount": sabun.outliers.RegionCount,
    "SubspaceChoice": sabun.outliers.SubspaceChoice,
}
WORDS: dict[str, dict[str, str]] = {name: {"retry_key": "key"} for name in ("OutlierCount", "RegionCount", "SubspaceChoice")}
"""How a class spells a word of a request, where it spells it otherwise."""

READERS: dict[str, Callable[[Path, Any], Any]] = {
    "schema": lambda folder, name: Schema.load(folder / name),
    "study": lambda folder, name: sabun.regression.Study.load(folder / name),
    # The text of a region stands in the facts of its release, and pairs are written as tuples there.
    "regions": lambda _, regions: {name: {c: tuple(ends) for c, ends in region.items()} for name, region in regions.items()},
}
"""Parameters that JSON cannot hold as they are."""

SAME: dict[str, Any] = {
    "sys.version": "3.12.0 (main, Jan  1 2026, 00:00:00) [GCC 13.2.0]",
    "platform.platform": lambda: "Linux-frozen",
    "platform.machine": lambda: "frozen",
    "os.cpu_count": lambda: 2,
    "numpy.__version__": "2.0.0",
    "numpy.show_config": lambda mode="stdout": {},
    "threadpoolctl.threadpool_info": list,
}
"""A checkpoint goes on only where it began: these are the surroundings in which frozen ones did."""

SAME_TORCH: dict[str, Any] = {
    "torch.__version__": "2.0.0",
    "torch.__config__.show": lambda: "",
    "torch.get_num_threads": lambda: 1,
}


def golden(version: Path) -> dict[str, Any]:
    """What the files of a version must say."""
    return dict(json.loads((version / GOLDEN).read_text(encoding="utf-8")))


def pack(file: Path) -> None:
    """Puts a file away small: databases are mostly empty pages."""
    file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()


def unpacked(version: Path, place: Path) -> Path:
    """A copy of a version's files to work on."""
    shutil.copytree(version, place)
    for small in place.rglob("*.gz"):
        small.with_suffix("").write_bytes(gzip.decompress(small.read_bytes()))
        small.unlink()
    return place


def table(folder: Path, words: Mapping[str, Any]) -> Any:
    """A table of a request: some columns of a CSV file in the folder, in one of the forms that people pass."""
    path = folder / words["file"]
    if words["as"] == "file":
        return path
    frame = pd.read_csv(path)[words["columns"]]
    return frame if words["as"] == "frame" else frame.to_numpy()


def parameters_of(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The arguments of the class."""
    spelled = WORDS.get(request["class"], {})
    given = {spelled.get(name, name): value for name, value in request["parameters"].items()}
    return {name: READERS[name](folder, value) if name in READERS else value for name, value in given.items()}


def ask(request: Mapping[str, Any], folder: Path, ledger: Ledger, **more: Any) -> Any:
    """Fits the class of a request on its tables, charging that ledger."""
    made = CLASSES[request["class"]](ledger=ledger, **parameters_of(request, folder), **more)
    return made.fit(**{name: table(folder, words) for name, words in request["fit"].items()})


def network() -> Any:
    """The torch module of every frozen model and run."""
    from torch import nn

    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def trainer(request: Mapping[str, Any], ledger: Ledger, **more: Any) -> Any:
    """A torch trainer; `train` is its fit."""
    from sabun.learning.torch_modules import TorchTrainer

    return TorchTrainer(network(), ledger=ledger, **request["parameters"], **more)


def train(made: Any, request: Mapping[str, Any], folder: Path) -> Any:
    """Fits a torch trainer on the tables of a request."""
    rows, targets = (table(folder, request["fit"][name]) for name in ("X", "y"))
    return made.fit(rows.astype(np.float32), (targets == "yes").astype(np.int64))


def carry_on(request: Mapping[str, Any], folder: Path, ledger: Ledger, **more: Any) -> Any:
    """Begins or resumes the run of a request in its checkpoint folder."""
    if request["class"] == "TorchTrainer":
        return train(trainer(request, ledger, **more), request, folder)
    return ask(request, folder, ledger, **more)


def processor() -> str:
    """A digest of what decides how floating-point numbers are rounded here, in training as in pricing."""
    from threadpoolctl import threadpool_info

    libraries = {str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"}
    versions = [f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "dp-accounting")]
    facts = [platform.system(), platform.machine(), *versions, *sorted(libraries)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def same_surroundings(patch: pytest.MonkeyPatch, *, torch: bool) -> None:
    """Makes this machine look like the one of every frozen checkpoint."""
    for name in [name for name in os.environ if name.startswith(("OMP_", "OPENBLAS_", "MKL_", "NPY_"))]:
        patch.delenv(name)
    for name, value in (SAME | SAME_TORCH if torch else SAME).items():
        patch.setattr(name, value)
