from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from cli.terminal import exit_code
from sabun import Schema
from sabun.datasets import load_ionosphere


def test_a_data_set_becomes_a_file_that_fits_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, schema = tmp_path / "radar.csv", tmp_path / "radar.json"
    assert exit_code("datasets", "save", "ionosphere", table, "--schema", schema, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 351
    frame = pandas.read_csv(table)
    assert frame.shape == (351, 34)
    original = load_ionosphere()
    assert (Schema.load(schema).encode(frame) == original.schema.encode(original.data)).all()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "radar.csv"
    table.write_text("mine")
    assert exit_code("datasets", "save", "ionosphere", table) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert table.read_text() == "mine"


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("datasets", "save", "iris", tmp_path / "x.csv") == 2
    assert "name must be one of 'adult', 'ionosphere', 'wdbc'; got 'iris'" in capsys.readouterr().err


def test_the_list_names_sizes_and_licences(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("datasets", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["adult", "32561"], ["ionosphere", "351"], ["wdbc", "569"]]
    assert all("CC BY 4.0" in line for line in lines)


def test_a_table_can_be_split_into_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("datasets", "save", "wdbc", tmp_path / "a.csv", "--rows", "0:300") == 0
    assert exit_code("datasets", "save", "wdbc", tmp_path / "b.csv", "--rows", "300:569") == 0
    parts = [pandas.read_csv(tmp_path / name) for name in ("a.csv", "b.csv")]
    assert [len(part) for part in parts] == [300, 269]
    for wrong in ("300", "5:5", "-3:4", "a:b"):
        assert exit_code("datasets", "save", "wdbc", tmp_path / "c.csv", f"--rows={wrong}") == 2
        assert "rows must look like START:STOP, such as 0:300" in capsys.readouterr().err
    assert not (tmp_path / "c.csv").exists()
