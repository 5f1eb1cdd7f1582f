from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import exit_code
from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.batches import read_holdings, read_reports, write_reports


@pytest.mark.parametrize("cell", ['"1\n"', '"1\r0.5"', "1\r0.5", '"1', "0.5\r\r"])
def test_a_file_whose_lines_cannot_be_told_apart_is_refused_as_a_whole(tmp_path: Path, cell: str) -> None:
    """A line break within a cell made one report more."""
    (tmp_path / "t.csv").write_bytes(f"HIV\n0.5\n{cell}\n0.2\n".encode())
    with pytest.raises(DataError, match="must hold one person in each line; at least one cell runs over a line break, or a"):
        next(read_holdings(tmp_path / "t.csv", Study(keys=["HIV"], epsilon=1)))


def test_either_kind_of_line_end_is_one_person(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'HIV\r\n0.5\n"1"\r\n0.25')
    held = list(read_holdings(tmp_path / "t.csv", Study(keys=["HIV"], epsilon=1)))
    assert held == [{"HIV": 0.5}, {"HIV": 1.0}, {"HIV": 0.25}]


def test_every_line_of_a_table_is_a_person(tmp_path: Path) -> None:
    """A blank line was left out, so people who hold nothing fell silent; a long or odd cell stopped everybody."""
    study = Study(keys=["HIV"], epsilon=1)
    (tmp_path / "one.csv").write_text("HIV\n1\n\n0.5\n\n\n")
    assert list(read_holdings(tmp_path / "one.csv", study)) == [{"HIV": 1.0}, {}, {"HIV": 0.5}, {}, {}]
    rows = [b"b,HIV", b"x" * 200_000 + b",1", b"\xff,\xff", b'"a""b,1",x"', b"2", b"2,0.25,9", b"\0,nan"]
    (tmp_path / "two.csv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(rows))
    assert list(read_holdings(tmp_path / "two.csv", study)) == [{"HIV": 1.0}, {}, {}, {}, {"HIV": 0.25}, {}]
    (tmp_path / "three.csv").write_text("HIV,HIV\n1,2\n")
    with pytest.raises(DataError, match="must have a column for every key; 'HIV' has two"):
        list(read_holdings(tmp_path / "three.csv", study))


def test_a_file_of_reports_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def reports() -> Iterator[bytes]:
        yield b"one"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_reports(tmp_path / "r.bin", reports())
    assert list(tmp_path.iterdir()) == []
    assert write_reports(tmp_path / "r.bin", [b"one"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["r.bin"]


def test_a_file_of_reports_is_never_overwritten(tmp_path: Path) -> None:
    write_reports(tmp_path / "r", [b"abc"])
    with pytest.raises(ValueError, match="must be a new file; it exists"):
        write_reports(tmp_path / "r", [b"abc"])
    assert list(read_reports(tmp_path / "r", Study(keys=["a"], epsilon=1.0))) == [b"abc"]


def test_a_table_is_read_in_the_encoding_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("体重,歩数\n0.5,\n,1\n", encoding="cp932")
    study = Study(keys=["体重", "歩数"], epsilon=1)
    assert list(read_holdings(tmp_path / "t.csv", study, encoding="cp932")) == [{"体重": 0.5}, {"歩数": 1.0}]
    with pytest.raises(
        DataError, match=r"'体重' has none. It is not in utf-8: say how it is written, such as --encoding cp932"
    ):
        next(read_holdings(tmp_path / "t.csv", study))
    for name, encoding in (("t.csv", ("--encoding", "cp932")), ("plain.csv", ())):
        (tmp_path / "plain.csv").write_text("体重,歩数\n0.5,\n", encoding="utf-8")
        study.save(tmp_path / f"{name}.json")
        typed = ("keyvalue", "report", tmp_path / f"{name}.json", "--table", tmp_path / name, "--out", tmp_path / f"{name}.bin")
        assert exit_code(*typed, *encoding) == 0
