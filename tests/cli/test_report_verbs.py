from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from cli.terminal import exit_code, process
from reports.html_checks import problems
from reports.report_samples import evil_release, release_of
from sabun.ledger import Ledger
from sabun.release import generate_key, save_key


@pytest.fixture
def file(tmp_path: Path) -> Path:
    key = generate_key()
    save_key(key.public_key(), tmp_path / "key.pem")
    release_of({"count": 42, "interval": [30, 54]}).sign(key).save(tmp_path / "count.json")
    return tmp_path / "count.json"


def test_the_page_lies_beside_the_release(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("report", file) == 0
    page = file.with_name("count.html")
    assert capsys.readouterr().out == f"The report is '{page}'.\n"
    assert problems(page.read_text(encoding="utf-8")) == []


def test_json_names_the_page_and_the_signer(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("report", file, "--out", file.with_name("x.html"), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["out"] == record["page"] == str(file.with_name("x.html"))
    assert record["kind"] == "private count"
    assert record["signed_by"]


def test_an_existing_page_is_kept(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("report", file) == 0
    before = file.with_name("count.html").read_bytes()
    assert exit_code("report", file) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert file.with_name("count.html").read_bytes() == before
    assert exit_code("report", file, "--overwrite") == 0


def test_the_release_is_never_overwritten(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = file.read_bytes()
    assert exit_code("report", file, "--out", file, "--overwrite") == 2
    assert "out must be another file than the release" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_trusted_keys_are_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("report", file, "--trusted-key", file.with_name("key.pem")) == 0
    assert "Signed by the trusted key" in file.with_name("count.html").read_text(encoding="utf-8")
    save_key(generate_key(), file.with_name("other.pem"))
    assert exit_code("report", file, "--key", file.with_name("other.pem"), "--overwrite") == 4
    assert "must be signed by a trusted key" in capsys.readouterr().err


def test_a_changed_release_gets_no_page(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(file.read_bytes().replace(b'"count":42', b'"count":43'))
    assert exit_code("report", file) == 4
    assert "changed or forged" in capsys.readouterr().err
    assert not file.with_name("count.html").exists()


def test_a_hostile_release_becomes_a_harmless_page(tmp_path: Path) -> None:
    evil_release().save(tmp_path / "x.json")
    assert exit_code("report", tmp_path / "x.json") == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert problems(page) == []
    assert "<script" not in page


def test_the_browser_is_opened_only_on_request(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert exit_code("report", file) == 0
    assert opened == []
    assert exit_code("report", file, "--overwrite", "--open") == 0
    assert opened == [file.with_name("count.html").resolve().as_uri()]


def test_a_missing_file_is_bad_data(tmp_path: Path) -> None:
    result = process("report", "none.json", "--json", folder=tmp_path)
    assert result.returncode == 4
    assert json.loads(result.stderr)["error"]["type"] == "ReleaseError"


def test_who_names_what_a_release_belongs_to_is_led_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model").mkdir()
    assert exit_code("report", "model") == 4
    assert "model must be a released file; it is a folder. Name a file in it." in capsys.readouterr().err
    for release, named in (("model/release.json", "model"), ("weighted.csv.release.json", "weighted.csv")):
        Path(release).touch()
        for verb in (("report",), ("release", "show")):
            assert exit_code(*verb, named) == 4
            assert f"Name the release: {release}" in capsys.readouterr().err


def test_the_page_of_a_model_lies_beside_its_folder(tmp_path: Path) -> None:
    """A model's folder must hold the files on its list and no other."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "card.json").touch()
    release_of({"weights": [1.0]}).save(tmp_path / "model" / "release.json")
    assert exit_code("report", tmp_path / "model" / "release.json") == 0
    assert (tmp_path / "model.html").is_file()
    assert not (tmp_path / "model" / "release.html").exists()


@pytest.mark.parametrize("name", ["page.pdf", "page.docx", "page"])
def test_a_page_is_called_nothing_but_a_page(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("report", file, "--out", file.with_name(name)) == 2
    assert "out must be a name that ends in .html" in capsys.readouterr().err
    assert not file.with_name(name).exists()


def test_who_wants_a_page_of_a_ledger_is_told_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1)
    assert exit_code("report", tmp_path / "a.ledger") == 4
    assert "sabun ledger show" in capsys.readouterr().err
