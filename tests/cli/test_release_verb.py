from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.terminal import exit_code, process
from sabun.cli.demo import JOBS
from sabun.ledger import Ledger
from sabun.release import Release, generate_key, save_key


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert exit_code("demo", "--folder", tmp_path / "demo") == 0
    capsys.readouterr()
    return tmp_path / "demo"


def test_show_prints_the_release_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "show", folder / "count.json") == 0
    assert capsys.readouterr().out == str(Release.load(folder / "count.json")) + "\n"


def test_show_json_is_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "show", folder / "count.json", "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "count.json").read_bytes())


def test_verify_accepts_the_signer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "publisher.pub.pem") == 0
    assert "is as it was signed" in capsys.readouterr().out
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "publisher.pub.pem", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_verify_takes_several_keys(folder: Path) -> None:
    save_key(generate_key().public_key(), folder / "other.pem")
    keys = ("--key", folder / "other.pem", "--key", folder / "publisher.pub.pem")
    assert exit_code("release", "verify", folder / "count.json", *keys) == 0
    assert exit_code("release", "verify", folder / "count.json", *keys[:2]) == 4


def test_a_changed_release_is_bad_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "count.json"
    file.write_bytes(file.read_bytes().replace(b"private count", b"Private count", 1))
    assert exit_code("release", "verify", file, "--key", folder / "publisher.pub.pem") == 4
    assert "changed or forged" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_what_is_no_release_is_bad_data(tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    assert exit_code("release", "show", file, "--json") == 4
    assert json.loads(capsys.readouterr().err)["error"]["type"] == "ReleaseError"


def test_a_missing_key_is_bad_data(folder: Path) -> None:
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "none.pem") == 4


# --- the demo


def test_the_demo_charges_its_ledger_and_saves_each_job(folder: Path) -> None:
    ledger = Ledger.open(folder / "clinic.ledger")
    ledger.verify()
    assert len(ledger.entries()) == len(JOBS)
    for job in JOBS:
        release = Release.load(folder / f"{job.name}.json")
        assert release.provenance.receipt is not None
        assert not release.guarantee.simulated


def test_the_demo_says_where_things_are_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("demo", "--folder", tmp_path / "d") == 0
    out = capsys.readouterr().out
    assert f"Everything is in '{tmp_path / 'd'}'" in out
    assert "has epsilon 2.5 of 3 left" in out
    assert JOBS[0].question in out


def test_the_demo_json_names_the_files(tmp_path: Path) -> None:
    result = process("demo", "--folder", "d", "--json", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    record = json.loads(result.stdout)
    assert [(tmp_path / job["file"]).exists() for job in record["jobs"]] == [True] * len(JOBS)
    assert record["remaining"]["epsilon"] == "5/2"


def test_the_demo_does_not_write_into_a_used_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert exit_code("demo", "--folder", tmp_path) == 2
    assert "folder must be new or empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_two_demos_draw_different_noise(tmp_path: Path) -> None:
    counts = set()
    for number in range(12):
        assert exit_code("demo", "--folder", tmp_path / str(number), "--json") == 0
        counts.add(Release.load(tmp_path / str(number) / "count.json")["count"])
    assert len(counts) > 1
