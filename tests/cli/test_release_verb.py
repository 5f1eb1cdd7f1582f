from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.terminal import exit_code
from sabun.release import Release, generate_key, save_key


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert exit_code("demo", "--job", "count", "--folder", tmp_path / "demo") == 0
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
