from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from sabun import Guarantee, Release
from sabun.density import DensityRatio
from sabun.errors import DataError


@pytest.fixture(scope="module")
def ratio() -> DensityRatio:
    rng = np.random.default_rng(0)
    public = pd.DataFrame({"age": rng.normal(40, 10, 60), "note": ['x, "y"'] * 60})
    return DensityRatio(epsilon=1, columns=["age"]).fit(private=pd.DataFrame({"age": rng.normal(45, 10, 900)}), public=public)


def test_a_csv_file_has_its_release_beside_it(ratio: DensityRatio, tmp_path: Path) -> None:
    ratio.to_csv(tmp_path / "w.csv")
    found = pd.read_csv(tmp_path / "w.csv")
    assert list(found.columns) == ["age", "note", "weight"]
    assert np.array_equal(found.weight, ratio.weights_)
    assert found.note[0] == 'x, "y"'
    assert Release.load(tmp_path / "w.csv.release.json") == ratio.release_


def test_a_parquet_file_carries_its_guarantee(ratio: DensityRatio, tmp_path: Path) -> None:
    ratio.to_parquet(tmp_path / "w.parquet")
    metadata = parquet.read_schema(tmp_path / "w.parquet").metadata
    assert Guarantee.from_json(metadata[b"sabun.guarantee"].decode()) == ratio.guarantee_
    assert np.array_equal(pd.read_parquet(tmp_path / "w.parquet").weight, ratio.weights_)
    assert Release.load(tmp_path / "w.parquet.release.json") == ratio.release_


def test_files_are_not_overwritten_unasked(ratio: DensityRatio, tmp_path: Path) -> None:
    ratio.to_csv(tmp_path / "w.csv")
    with pytest.raises(DataError, match="must be a new file"):
        ratio.to_csv(tmp_path / "w.csv")
    ratio.to_csv(tmp_path / "w.csv", overwrite=True)


def test_a_column_called_weight_is_not_replaced() -> None:
    rng = np.random.default_rng(1)
    public = pd.DataFrame({"weight": rng.normal(size=50)})
    ratio = DensityRatio(epsilon=1).fit(private=pd.DataFrame({"weight": rng.normal(size=400)}), public=public)
    with pytest.raises(DataError, match="must not have a column 'weight' of its own"):
        ratio.to_frame()


def test_files_can_be_read_as_tables(ratio: DensityRatio, tmp_path: Path) -> None:
    frame = ratio.to_frame()
    frame[["age"]].to_csv(tmp_path / "e.csv", index=False)
    frame[["age"]].to_parquet(tmp_path / "e.parquet")
    (tmp_path / "broken.parquet").write_text("no")
    for name in ("e.csv", "e.parquet"):
        again = DensityRatio(epsilon=1).fit(private=tmp_path / name, public=tmp_path / name)
        assert len(again.weights_) == 60
    with pytest.raises(DataError, match=r"broken.parquet must be a Parquet file; it cannot be read"):
        DensityRatio(epsilon=1).set_public(tmp_path / "broken.parquet")
