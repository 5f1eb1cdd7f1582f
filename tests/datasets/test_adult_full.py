from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sabun.datasets import adult_full, load_adult
from sabun.datasets.adult import without
from sabun.datasets.adult_full import arff_rows
from sabun.datasets.dataset import shipped_rows
from sabun.errors import DataError, ParameterError

NAMES, *TRAIN = shipped_rows("adult-train.csv.xz")
EXTRA = [["25", *TRAIN[0][1:]], TRAIN[5], [TRAIN[7][0], "?", *TRAIN[7][2:]]]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small stand-in for the whole table: the training part with three rows more, one of them a repeat."""
    text = "\n".join(sorted(",".join(row) for row in TRAIN + EXTRA))
    monkeypatch.setattr(adult_full, "_DIGEST", hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SABUN_DATA", raising=False)


def written_as_arff(rows: list[list[str]]) -> str:
    names = ["class" if name == "income" else name for name in NAMES]
    head = ["% a comment", "@RELATION adult", *(f"@ATTRIBUTE '{name}' REAL" for name in names), "", "@DATA"]
    return "\n".join([*head, *(", ".join(f"'{cell}'" if "-" in cell else cell for cell in row) for row in rows), ""])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "adult.arff").write_text(written_as_arff(EXTRA + TRAIN[::-1]))
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.usefixtures("known")
def test_the_whole_table_is_downloaded_once(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(adult_full, "_URL", server + "adult.arff")
    first = load_adult("all")
    assert len(first) == 32_564
    assert first.data.iloc[:32_561].equals(load_adult().data), "the training part comes first"
    assert (tmp_path / "cache" / "sabun" / "adult.csv.gz").is_file()
    monkeypatch.setattr(adult_full, "_URL", server + "gone")
    assert load_adult("all").data.equals(first.data)
    test = load_adult("test")
    assert len(test) == 3
    assert sorted(test.data["age"]) == sorted(int(row[0]) for row in EXTRA)


@pytest.mark.usefixtures("known")
def test_a_folder_named_by_the_user_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(adult_full, "_URL", "http://127.0.0.1:1/none")
    lines = [",".join(["part", *NAMES]), *(",".join(["?", *row]) for row in TRAIN + EXTRA)]
    (tmp_path / "adult.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setenv("SABUN_DATA", str(tmp_path))
    assert np.array_equal(load_adult("test").data["age"], [int(row[0]) for row in EXTRA])


@pytest.mark.usefixtures("known")
def test_another_table_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SABUN_DATA", str(tmp_path))
    changed = [",".join(NAMES), *(",".join(row) for row in TRAIN[1:] + EXTRA)]
    for content in (gzip.compress("\n".join(changed).encode()), gzip.compress(b"a,b\n1\n"), b"no gzip", gzip.compress(b"\xff")):
        (tmp_path / "adult.csv.gz").write_bytes(content)
        with pytest.raises(
            DataError, match=r"adult.csv.gz must hold the known Adult table; its SHA-256 differs\. Remove it, or: Put"
        ):
            load_adult("test")


@pytest.mark.usefixtures("known")
def test_an_unreachable_server_is_told_with_a_way_out(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for url in (server + "gone", "nonsense", (tmp_path / "gone").as_uri()):
        monkeypatch.setattr(adult_full, "_URL", url)
        with pytest.raises(DataError) as caught:
            load_adult("all")
        assert str(caught.value) == (
            f"the full Adult table cannot be downloaded from {url}. "
            "Put adult.csv.gz into a folder and name that folder in the environment variable SABUN_DATA."
        )


@pytest.mark.usefixtures("known")
def test_a_cache_that_cannot_be_written_to_is_no_error(server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(adult_full, "_URL", server + "adult.arff")
    assert len(load_adult("test")) == 3


def test_arff_is_read_whatever_its_order_and_spelling() -> None:
    text = "@relation r\n@attribute class {'<=50K','>50K'}\n@ATTRIBUTE\tage\tREAL\n@attribute 'sex' STRING\n@data\n\n% note\n"
    assert arff_rows(text + ">50K., 25.0, 'Fe male'\n<=50K,7,?\n", ["age", "sex", "income"]) == [
        ["25", "Fe male", ">50K"],
        ["7", "?", "<=50K"],
    ]
    assert arff_rows(text + "1,2\n", ["age", "sex", "income"]) == []
    assert arff_rows("<html>", ["age"]) == []


def test_taking_rows_away_respects_repeats() -> None:
    assert without([["a"], ["b"], ["a"], ["c"], ["a"]], [["a"], ["a"], ["b"]]) == [["c"], ["a"]]


def test_parts_have_names() -> None:
    with pytest.raises(ParameterError, match="part must be one of 'train', 'test', 'all'; got 'both'"):
        load_adult("both")


@pytest.mark.skipif(
    not (Path(os.environ.get("SABUN_DATA", "/nonexistent")) / "adult.csv.gz").is_file(),
    reason="needs the full Adult file in $SABUN_DATA",
)
def test_the_real_table_is_as_documented() -> None:
    everybody, test = load_adult("all"), load_adult("test")
    assert (len(everybody), len(test)) == (48_842, 16_281)
    assert everybody.data.iloc[32_561:].reset_index(drop=True).equals(test.data)
    complete = everybody.complete()
    assert complete.target.value_counts().to_dict() == {"<=50K": 34_014, ">50K": 11_208}
    assert complete.data.assign(income=complete.target).duplicated().sum() == 47
