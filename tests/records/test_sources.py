from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sabun.errors import DataError, ParameterError
from sabun.records import Column, Schema, chunks, open_source, open_unbounded, read
from sabun.records.csv_files import _is_bare
from sabun.records.files import FilePart
from sabun.records.forms import PLAIN

SCHEMA = Schema(columns=[Column.number("age", lower=0, upper=100, missing=40), Column.category("sex", ["F", "M"])])
FRAME = pd.DataFrame({"sex": ["F", "M", None] * 9, "name": ["Ann, M."] * 27, "age": [*range(0, 260, 10), None]})
MATRIX = SCHEMA.encode(FRAME)


def people(folder: Path, text: str | bytes, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_files_and_frames_give_the_same_matrix(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_csv(tmp_path / "index.csv")
    FRAME.to_csv(tmp_path / "bom.csv", encoding="utf-8-sig", index=False)
    FRAME.to_csv(tmp_path / "a.csv.gz", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    FRAME[:10].to_parquet(tmp_path / "folder" / "1.parquet")
    FRAME[10:].to_parquet(tmp_path / "folder" / "deep" / "2.parquet")
    for name in ("a.csv", "index.csv", "bom.csv", "a.csv.gz", "a.parquet", "folder"):
        assert np.array_equal(read(tmp_path / name, schema=SCHEMA), MATRIX), name
        assert np.array_equal(read(str(tmp_path / name), schema=SCHEMA), MATRIX), name


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_folder_that_names_a_file_twice_is_refused(tmp_path: Path, link: str) -> None:
    FRAME.to_parquet(tmp_path / "1.parquet")
    getattr(tmp_path / "2.parquet", link)(tmp_path / "1.parquet")
    with pytest.raises(DataError, match="must hold each file once; a link names one again"):
        read(tmp_path, schema=SCHEMA)


@pytest.mark.parametrize("rows", [1, 2, 7, 27, 100])
def test_partitions_put_together_are_the_whole(rows: int, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet", row_group_size=5)
    for source in (FRAME, tmp_path / "a.csv", tmp_path / "a.parquet", chunks([FRAME[:4], FRAME[4:4], FRAME[4:]])):
        opened = open_source(source, schema=SCHEMA)
        for _ in range(2):
            pieces = list(opened.partitions(rows=rows))
            assert np.array_equal(np.concatenate(pieces), MATRIX)
            assert {len(piece) for piece in pieces[:-1]} <= {rows}


def test_a_large_csv_file_comes_in_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.records.csv_files._BLOCK_BYTES", 128)
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    assert len(list(FilePart.of(tmp_path / "a.csv").chunks(SCHEMA.names, rows=1))) > 3
    assert np.array_equal(read(tmp_path / "a.csv", schema=SCHEMA), MATRIX)


def test_streams_may_mix_tables_and_files(tmp_path: Path) -> None:
    FRAME[:5].to_csv(tmp_path / "a.csv", index=False)
    FRAME[5:9].to_parquet(tmp_path / "b.parquet")
    mixed = chunks([tmp_path / "a.csv", tmp_path / "b.parquet", FRAME[9:15], chunks([pa.Table.from_pandas(FRAME[15:])])])
    assert np.array_equal(read(mixed, schema=SCHEMA), MATRIX)


def test_a_generator_can_be_read_once_and_says_so() -> None:
    def pieces() -> Iterator[pd.DataFrame]:
        yield FRAME[:20]
        yield FRAME[20:]

    opened = open_source(pieces(), schema=SCHEMA)
    assert np.array_equal(opened.matrix(), MATRIX)
    with pytest.raises(DataError, match=r"a generator can be read once, and it was. To read twice, pass chunks\(function"):
        opened.matrix()
    again = open_source(chunks(pieces), schema=SCHEMA)
    assert np.array_equal(again.matrix(), again.matrix())


def test_a_file_of_one_column_keeps_its_empty_cells(tmp_path: Path) -> None:
    path = people(tmp_path, "age\n1\n\n3\n")
    assert read(path, schema=SCHEMA.select(["age"])).ravel().tolist() == [1, 40, 3]


def test_blank_lines_quotes_and_odd_cells_of_a_file_are_read(tmp_path: Path) -> None:
    path = people(tmp_path, 'age,sex,note\r\n"1","M","a b, ""c"""\r\n\r\n 2 ,F,NULL\r\nNA,NA,NA\r\n1e999,"",')
    assert read(path, schema=SCHEMA).tolist() == [[1, 1], [2, 0], [40, -1], [100, -1]]


ONE_LINE = (
    "people.csv must hold one record in each line; at least one cell runs over a line break, or a quotation mark is never "
    "closed. Mend the file, or keep such text in a Parquet file."
)


@pytest.mark.parametrize("block", [24, 40, 1 << 20])
@pytest.mark.parametrize(
    "lines",
    [
        ["1,F,a", '2,F,"b', "3,M,c", "4,M,d"],
        ["1,F,a", '2,"F,b', "3,M,c", "4,M,d"],
        ["1,F,a", '2,F,"b', "3,M,c", '4,M,d"', "5,F,e"],
        ["1,F,a", '2,F,"b', "3,M,c", '4,M,"d"', "5,F,e"],
        ["1,F,a", '2,F,"b', 'c"', "4,M,d"],
        ["1,F,a", "4,M,d", '5,F,"'],
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quotation_mark_never_swallows_later_records(
    lines: list[str], block: int, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sabun.records.csv_files._BLOCK_BYTES", block)
    path = people(tmp_path, end.join(["age,sex,note", *lines, ""]))
    for schema in (SCHEMA, SCHEMA.select(["age"])):
        with pytest.raises(DataError) as caught:
            read(path, schema=schema)
        assert str(caught.value) == ONE_LINE or "as many fields in each line" in str(caught.value)


@pytest.mark.parametrize("look", [7, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_a_file_without_marks_and_odd_letters_is_read_by_the_wanted_columns_alone(
    look: int, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sabun.records.csv_files._LOOK_BYTES", look)
    age = SCHEMA.select(["age"])
    for cell, bare in (("a", True), ('"a"', False), ("é", False)):
        for head in ("age,sex,note", '"age","sex","note"', "age,sex,年齢"):
            path = people(tmp_path, end.join([head, "1,F,a", f"2,M,{cell}", "3,F,c"]))
            assert _is_bare(path, PLAIN) is (bare and (look > 7 or head == "age,sex,note"))  # a long first line is not skipped
            assert read(path, schema=age).ravel().tolist() == [1, 2, 3]
    (tmp_path / "people.csv").write_bytes(end.join(["age,sex,note", "1,F,a", "2,M,b"]).encode() + b"\xff")
    with pytest.raises(DataError, match="UTF-8 text"):
        read(tmp_path / "people.csv", schema=age)
    with pytest.raises(DataError, match="as many fields in each line"):
        read(people(tmp_path, end.join(["age,sex,note", "1,F,a", "2,M", "3,F,c"])), schema=age)


def test_a_quotation_mark_that_is_never_closed_is_named_as_the_damage(tmp_path: Path) -> None:
    for text in ('age,sex,note\n1,F,"a\n2,M,b\n', 'age,sex,note\n1,F,"a\nb"\n2,M,b\n', 'age\n"1\n2\n3\n'):
        with pytest.raises(DataError) as caught:
            read(people(tmp_path, text), schema=SCHEMA.select(["age"]))
        assert str(caught.value) == ONE_LINE
    with pytest.raises(DataError, match=r"people.csv must hold all column names in its first line; a quotation mark there is"):
        read(people(tmp_path, 'age,"sex\n1,F\n'), schema=SCHEMA)


def test_quotation_marks_inside_a_cell_are_text(tmp_path: Path) -> None:
    path = people(tmp_path, 'age,sex,note\n1,F,a"b\n2,M,"a""b"\n3,F,"a"b\n')
    assert read(path, schema=SCHEMA).tolist() == [[1, 0], [2, 1], [3, 0]]


def test_a_file_with_a_header_only_has_no_records(tmp_path: Path) -> None:
    assert read(people(tmp_path, "age,sex\n"), schema=SCHEMA).shape == (0, 2)
    assert list(open_source(people(tmp_path, "age,sex"), schema=SCHEMA).partitions()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "people.csv must begin with a line of column names; the file is empty."),
        ("\n\n", "people.csv must begin with a line of column names; the file is empty."),
        ("age,sex\n1,F\n2,M,SECRET\n", "people.csv must be UTF-8 text with as many fields in each line as in the first; "
         "at least one line is not. Mend the file, then read it again."),
        ("age,sex\n1,F\nSECRET\n", "people.csv must be UTF-8 text with as many fields in each line as in the first; "
         "at least one line is not. Mend the file, then read it again."),
        (b"age,sex\n1,SECRET\xff\n",
         "people.csv must be a table in UTF-8 text; it cannot be read as one. Save it again as UTF-8, or say how it is "
         "written: encoding, such as cp932 (Shift-JIS), and separator."),
        (b"age,sex\n" + b"1,F\n" * 9999 + b"1,SECRET\xff\n",
         "people.csv must be UTF-8 text with as many fields in each line as "
         "in the first; at least one line is not. Mend the file, then read it again."),
        ("age,sex\n1,F\n".encode("utf-16"),
         "people.csv must be a table in UTF-8 text; it cannot be read as one. Save it again as UTF-8, or say how it is "
         "written: encoding, such as cp932 (Shift-JIS), and separator."),
        ("age;sex\n1;F\n", "people.csv has no column 'age'. Its first line must hold the column names, separated by commas "
         "(say so if they are not: separator)."),
        ("SECRET,77\n1,F\n", "people.csv has no column 'age'. Its first line must hold the column names, separated by commas "
         "(say so if they are not: separator)."),
        ("age,sex,SECRET,SECRET\n",
         "people.csv must have distinct column names; at least one stands twice. Rename or drop it."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_whole_file_is_told_without_a_cell(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = people(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read(path, schema=SCHEMA)
    assert str(caught.value) == message
    assert caught.value.__context__ is None, "the reading library's message quotes cells"


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(("age,sex\n" + "1,F\n" * 5000).encode())
    with pytest.raises(DataError, match=r"cut.csv.gz must be"):
        read(people(tmp_path, whole[:-20], "cut.csv.gz"), schema=SCHEMA)
    with pytest.raises(DataError, match=r"plain.csv.gz must be a table in UTF-8 text; it cannot be read as one"):
        read(people(tmp_path, "age,sex\n", "plain.csv.gz"), schema=SCHEMA)
    with pytest.raises(DataError, match=r"bad.parquet must be a Parquet file; it cannot be read as one"):
        read(people(tmp_path, "age,sex\n", "bad.parquet"), schema=SCHEMA)
    pq.write_table(pa.table({"age": list(range(9000)), "sex": ["F"] * 9000}), tmp_path / "torn.parquet", compression="none")
    bytes_ = bytearray((tmp_path / "torn.parquet").read_bytes())
    bytes_[4:200] = b"\xff" * 196
    with pytest.raises(DataError, match=r"torn.parquet must be a whole Parquet file; it is damaged"):
        read(people(tmp_path, bytes(bytes_), "torn.parquet"), schema=SCHEMA)


def test_absent_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'.*none.csv' must be a file or folder; there is none of that name"):
        open_source(tmp_path / "none.csv", schema=SCHEMA)
    with pytest.raises(
        DataError,
        match=r"people.doc must end in .csv, .tsv, .txt \(also .gz or .zst\), .parquet or a workbook such as",
    ):
        open_source(people(tmp_path, "x", "people.doc"), schema=SCHEMA)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"folder empty must hold .parquet files; got none"):
        open_source(tmp_path / "empty", schema=SCHEMA)
    FRAME[["age"]].to_parquet(tmp_path / "half.parquet")
    with pytest.raises(DataError, match=r"half.parquet has no column 'sex'. Its columns must include every name in the schema"):
        open_source(tmp_path / "half.parquet", schema=SCHEMA)


def test_shapes_are_refused_when_the_source_is_opened() -> None:
    for source in (np.zeros((2, 3)), FRAME[["age"]], 5, {"age": [1]}):
        with pytest.raises(DataError):
            open_source(source, schema=SCHEMA)


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterError, match="schema must be a Schema; got None"):
        open_source(FRAME, schema=None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="rows must be a whole number >= 1; got 0"):
        open_source(FRAME, schema=SCHEMA).partitions(rows=0)
    with pytest.raises(ParameterError, match="chunks must be a stream of tables; got 'str'"):
        chunks("people.csv")
    with pytest.raises(ParameterError, match="columns must be given for a stream of tables; got None"):
        open_unbounded(chunks([FRAME]))
    with pytest.raises(ParameterError, match=r"columns must be distinct names; got \['age', 'age'\]"):
        open_unbounded(FRAME, columns=["age", "age"])


def test_a_source_shows_no_record() -> None:
    assert "260" not in repr(open_source(FRAME, schema=SCHEMA))
    assert "Ann" not in repr(open_source(FRAME, schema=SCHEMA))


def test_unbounded_numbers_keep_nan_and_infinity(tmp_path: Path) -> None:
    path = people(tmp_path, "a,b\n1e999,x\n-5,2\n")
    for source in (path, np.array([[np.inf, np.nan], [-5, 2]]), pd.DataFrame({"a": [np.inf, -5], "b": ["x", 2]})):
        opened = open_unbounded(source)
        assert opened.schema is None
        assert np.array_equal(opened.matrix(), [[np.inf, np.nan], [-5, 2]], equal_nan=True)
    assert open_unbounded(np.zeros((2, 3))).names == ("x0", "x1", "x2")
    assert open_unbounded(path, columns=["b"]).matrix().shape == (2, 1)
    assert open_unbounded(chunks([path, path]), columns=["b"]).matrix().shape == (4, 1)


def test_a_source_can_keep_missing_cells() -> None:
    kept = open_source(FRAME, schema=SCHEMA, keep_missing=True).matrix()
    assert np.isnan(kept).any(axis=1).sum() == 9


def test_a_source_travels_to_another_process(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    for source in (tmp_path / "a.csv", FRAME):
        opened = pickle.loads(pickle.dumps(open_source(source, schema=SCHEMA)))
        assert np.array_equal(opened.matrix(), MATRIX)
