"""`--engine` on the command line: the same question of a pattern of files, with a bar that tells pieces and no rows."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cli.terminal import exit_code
from sabun.records import FilePart
from sabun.release import Release
from sabun.telling.terminal.asked import asked_table

BOUNDS = ["--bounds", "a=0:1", "--bounds", "y=-1:1"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("people").mkdir()
    for number in range(3):
        a = rng.uniform(size=100)
        parquet.write_table(pa.table({"a": a, "y": a / 2}), f"people/{number}.parquet")
    a = rng.uniform(size=80)
    parquet.write_table(pa.table({"a": a, "y": a / 2}), "public.parquet")
    return tmp_path


def parameters(name: str) -> Any:
    return Release.load(name).provenance.parameters


def test_regression_takes_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    for source, more, out in (("people", [], "plain.json"), ("people/*.parquet", ["--engine", "serial"], "pieces.json")):
        asked = ["regression", "fit", source, "--target", "y", *BOUNDS, "--epsilon", "5", "--yes", "--json", "--out", out]
        assert exit_code(*asked, *more) == 0, capsys.readouterr().err
    assert parameters("pieces.json") == parameters("plain.json")


def test_density_takes_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["density", "weights", "--public", "public.parquet", *BOUNDS, "--epsilon", "5", "--yes", "--json"]
    plain = [*asked, "--private", "people", "--out", "plain.csv"]
    assert exit_code(*plain) == 0, capsys.readouterr().err
    pieces = [*asked, "--private", "people/*.parquet", "--engine", "serial", "--out", "pieces.csv"]
    assert exit_code(*pieces) == 0, capsys.readouterr().err
    assert parameters("pieces.csv.release.json") == parameters("plain.csv.release.json")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--private", "*.parquet"], "private and public must be two files"),
        (["--private", "people/*.csv"], "must match at least one file"),
        (["--private", "people", "--owner-only", "--plot", "p.svg"], "--engine must be left out with --owner-only"),
        (["--private", "people/0.parquet", "--columns", "other"], "has no column 'other'"),
    ],
)
def test_density_refuses_pieces_that_cannot_be_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    bounds = [] if "--columns" in more else BOUNDS
    asked = ["density", "weights", "--public", "public.parquet", *bounds, "--epsilon", "5", "--out", "w.csv"]
    assert exit_code(*asked, *more, "--engine", "serial") in (2, 4)
    assert words in " ".join(capsys.readouterr().err.split())
    assert not Path("w.csv").exists()


def test_the_bar_tells_pieces_and_goes_with_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    from sabun.records import Schema
    from sabun.summaries import Mean

    with asked_table(FilePart.of("people"), engine="serial") as asked:
        for _ in range(2):
            Mean(column="a", schema=Schema.of_bounds({"a": (0, 1)}), epsilon=1, random_state=1).fit(asked)
            shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
            assert "3 of 3" in shown
            assert "300" not in shown
            assert "100 of" not in shown
