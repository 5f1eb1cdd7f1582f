from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from sabun import Column, Guarantee, Release, Schema
from sabun.density import DensityRatio, export
from sabun.density.export import table_of
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


LABELS = ["NA", "null", "None", "nan", "01", "007", "1", "TRUE", "x y"]
"""What readers of tables like to take for something else."""


def test_a_label_is_the_same_text_in_both_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    schema = Schema(columns=[Column.category("code", LABELS)])
    for name, rows, share in (("private", 9000, 0.81), ("public", 900, 0.2)):
        chance = [share, *([(1 - share) / 8] * 8)]
        codes = rng.choice(LABELS, rows, p=chance)
        (tmp_path / f"{name}.csv").write_text("code\n" + "".join(f"{code}\n" for code in codes))
        pd.DataFrame({"code": codes}).to_parquet(tmp_path / f"{name}.parquet")
    for kind in ("csv", "parquet"):
        ratio = DensityRatio(epsilon=1, schema=schema)
        ratio.fit(private=tmp_path / f"private.{kind}", public=tmp_path / f"public.{kind}")
        assert abs(ratio.mean(lambda t: t["code"] == "NA") - 0.81) < 0.03
        assert abs(ratio.mean(lambda t: t["code"] == "007") - 0.19 / 8) < 0.03
        ratio.to_csv(tmp_path / f"{kind}.weighted.csv")
        again = DensityRatio.restore(tmp_path / f"{kind}.weighted.csv.release.json", public=tmp_path / f"{kind}.weighted.csv")
        assert again.mean(lambda t: t["code"] == "NA") == pytest.approx(ratio.mean(lambda t: t["code"] == "NA"))


def test_columns_of_a_file_are_numbers_where_every_cell_is_one(tmp_path: Path) -> None:
    text = "age,half,zip,note,flag,gap,big\n30,0.5,007,NA,True,,1e400\n40, 1.5 ,123,x,False,2,3\n"
    (tmp_path / "t.csv").write_text(text)
    table = table_of(tmp_path / "t.csv")
    assert table["age"].tolist() == [30, 40]
    assert table["age"].dtype.kind == "i"
    assert table["half"].tolist() == [0.5, 1.5]
    assert table["zip"].tolist() == ["007", "123"]
    assert table["note"].tolist() == ["NA", "x"]
    assert table["flag"].tolist() == ["True", "False"]
    assert np.isnan(table["gap"][0])
    assert table["gap"][1] == 2
    assert table["big"].tolist() == [np.inf, 3]
    labelled = table_of(tmp_path / "t.csv", Schema(columns=[Column.category("age", ["30", "40"])]))
    assert labelled["age"].tolist() == ["30", "40"]
    (tmp_path / "empty.csv").write_text("age,half\n")
    assert list(table_of(tmp_path / "empty.csv").columns) == ["age", "half"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_weighted_table_never_stands_without_its_release(
    kind: str, ratio: DensityRatio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = list[str](), export.write_whole

    def stops(path: Any, *given: Any, **how: Any) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(Path(path).name)
        write(path, *given, **how)

    monkeypatch.setattr(export, "write_whole", stops)
    with pytest.raises(KeyboardInterrupt):
        getattr(ratio, f"to_{kind}")(tmp_path / "w")
    assert [file.name for file in tmp_path.iterdir()] == written == ["w.release.json"]
