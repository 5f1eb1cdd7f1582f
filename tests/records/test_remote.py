"""Tables behind a URL: read like those on this machine, whole and in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sabun.engine import cut, spread
from sabun.errors import DataError, ParameterError
from sabun.records import Schema, read
from sabun.summaries import Mean

fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
pytest.importorskip("upath", reason="the extra `remote` is not installed")

SCHEMA = Schema.of_bounds({"age": (0, 120)})
FRAMES = [pd.DataFrame({"age": np.arange(n, n + 40.0)}) for n in (0, 40)]


@pytest.fixture
def bucket() -> str:
    store = fsspec.filesystem("memory")
    for number, frame in enumerate(FRAMES):
        with store.open(f"/people/{number}.parquet", "wb") as file:
            frame.to_parquet(file)
        with store.open(f"/lists/{number}.csv.gz", "wb") as file:
            frame.to_csv(file, index=False, compression="gzip")
    return "memory://people"


def test_a_file_a_folder_and_a_packed_file_behind_a_url_are_read(bucket: str) -> None:
    both = [float(age) for age in range(80)]
    assert read(bucket, schema=SCHEMA).ravel().tolist() == both
    assert read(f"{bucket}/1.parquet", schema=SCHEMA).ravel().tolist() == both[40:]
    assert read("memory://lists/0.csv.gz", schema=SCHEMA).ravel().tolist() == both[:40]


def test_pieces_behind_a_url_give_the_answer_of_the_table(bucket: str) -> None:
    pieces = cut(f"{bucket}/*.parquet")
    assert [piece.part.name for piece in pieces] == ["0.parquet", "1.parquet"]
    answers = [
        Mean(column="age", schema=SCHEMA, epsilon=1, random_state=0).fit(source).release_.value
        for source in (bucket, spread(f"{bucket}/*.parquet"))
    ]
    assert answers[0] == answers[1]
    with fsspec.filesystem("memory").open("/people/1.parquet", "wb") as file:
        FRAMES[0].to_parquet(file)
    with pytest.raises(DataError, match=r"1\.parquet \(piece 1\) must stay as it is"):
        pieces[1].must_be_unchanged()


def test_urls_that_workers_of_other_processes_reach(tmp_path: Path) -> None:
    for number, frame in enumerate(FRAMES):
        frame.to_parquet(tmp_path / f"{number}.parquet")
    url = f"local://{tmp_path}"
    assert read(url, schema=SCHEMA).ravel().tolist() == [float(age) for age in range(80)]


def test_a_url_that_nobody_can_read_is_refused() -> None:
    with pytest.raises(ParameterError, match="got 'nowhere'"):
        read("nowhere://bucket/a.parquet", schema=SCHEMA)
    with pytest.raises(DataError, match="there is none of that name"):
        read("memory://nothing/here.parquet", schema=SCHEMA)
