from __future__ import annotations

import hashlib
import lzma
import subprocess
import sys
from collections.abc import Callable
from importlib import resources

import numpy as np
import pandas as pd
import pytest

from sabun.datasets import Dataset, load_adult, load_ionosphere, load_wdbc
from sabun.records import CategoryColumn, NumberColumn, read

LOADERS = [load_adult, load_ionosphere, load_wdbc]


@pytest.mark.parametrize("load", LOADERS)
def test_a_data_set_fits_its_own_schema(load: Callable[[], Dataset]) -> None:
    dataset = load()
    assert list(dataset.data.columns) == list(dataset.schema.names)
    assert len(dataset) == len(dataset.data) == len(dataset.target)
    matrix = read(dataset.data, schema=dataset.schema)
    for place, column in enumerate(dataset.schema.columns):
        if isinstance(column, NumberColumn):
            assert np.abs(matrix[:, place] - dataset.data[column.name]).max() <= 0.00050001, "bounds cut off rounding at most"
        else:
            missing = dataset.data[column.name].isna().to_numpy()
            assert np.array_equal(matrix[:, place] == -1, missing), "every label is documented"
            assert isinstance(column, CategoryColumn)
    assert set(dataset.target) == set(dataset.label.categories)
    assert np.abs(dataset.schema.design(matrix)).max() <= 1


@pytest.mark.parametrize("load", LOADERS)
def test_a_data_set_says_where_it_comes_from(load: Callable[[], Dataset]) -> None:
    dataset = load()
    assert dataset.licence == "CC BY 4.0"
    assert "https://doi.org/10.24432/" in dataset.source
    with pytest.raises(AttributeError):
        dataset.name = "mine"  # type: ignore[misc]
    assert len(repr(dataset)) < 500


def test_every_file_has_its_licence_beside_it() -> None:
    names = {file.name for file in (resources.files("sabun.datasets") / "data").iterdir()}
    assert {name for name in names if name.endswith(".xz")} == {"adult-train.csv.xz", "ionosphere.csv.xz"}
    assert {name.replace(".csv.xz", ".LICENCE.md") for name in names if name.endswith(".xz")} <= names


def shipped(name: str) -> bytes:
    return lzma.decompress((resources.files("sabun.datasets") / "data" / name).read_bytes())


def test_the_shipped_files_are_the_known_ones() -> None:
    adult = hashlib.sha256(shipped("adult-train.csv.xz")).hexdigest()
    assert adult == "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb"
    ionosphere = hashlib.sha256(shipped("ionosphere.csv.xz").split(b"\n", 1)[1]).hexdigest()
    assert ionosphere == "862517cb1307178fb653c6c0a5834fcb330fe75cae3f1e8a27c843799fe646dd"


def test_ionosphere_is_as_documented() -> None:
    dataset = load_ionosphere()
    assert dataset.data.shape == (351, 33)
    assert dataset.target.value_counts().to_dict() == {"g": 225, "b": 126}
    assert list(dataset.data.columns[:3]) == ["a01", "a03", "a04"]
    assert dataset.data.iloc[0, 1] == 0.995


def test_wdbc_is_as_documented() -> None:
    dataset = load_wdbc()
    assert dataset.data.shape == (569, 30)
    assert dataset.target.value_counts().to_dict() == {"benign": 357, "malignant": 212}
    assert dataset.data["mean radius"].iloc[0] == 17.99
    scaled = dataset.schema.scaled(read(dataset.data, schema=dataset.schema), to=(0, 1))
    assert np.allclose(scaled.min(axis=0), 0, atol=0.02), "documented ranges are min-max scaling"
    assert np.allclose(scaled.max(axis=0), 1, atol=0.02)


def test_adult_is_as_documented() -> None:
    dataset = load_adult()
    assert dataset.data.shape == (32_561, 14)
    assert dataset.target.value_counts().to_dict() == {"<=50K": 24_720, ">50K": 7_841}
    assert dataset.schema.width == 105
    assert pd.api.types.is_integer_dtype(dataset.data["age"])
    assert dataset.data["age"].sum() == 1_256_257
    assert not (dataset.data == "?").to_numpy().any()
    complete = dataset.complete()
    assert len(complete) == len(complete.target) == 30_162
    assert complete.data.index.equals(pd.RangeIndex(30_162))
    assert read(complete.data, schema=complete.schema).min() >= 0, "no label is unknown among complete rows"


def test_importing_the_room_loads_no_heavy_library() -> None:
    probe = "import sys, sabun.datasets; print([n for n in ('pandas', 'polars', 'pyarrow', 'sklearn') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
