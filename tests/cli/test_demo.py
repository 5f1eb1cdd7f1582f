from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from cli.terminal import exit_code, process
from reports.html_checks import Page
from sabun.cli import demo
from sabun.cli.demo import jobs
from sabun.errors import MissingExtra
from sabun.ledger import Ledger
from sabun.release import Release, load_key
from sabun.service import demo as collector
from sabun.summaries.demo import count_old_patients
from sabun.telling.demo import Bench


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick demo, once."""
    folder = tmp_path_factory.mktemp("whole") / "demo"
    assert exit_code("demo", "--quick", "--folder", folder, "--json") == 0
    return folder


@pytest.mark.long
def test_the_whole_demo_runs_on_all_of_its_data(tmp_path: Path) -> None:
    assert exit_code("demo", "--folder", tmp_path / "demo") == 0
    assert {job.name for job in jobs()} <= {file.stem for file in (tmp_path / "demo").glob("*.json")}


def test_every_job_is_charged_signed_and_saved(whole: Path) -> None:
    key = load_key(whole / "publisher.pub.pem")
    for job in jobs():
        release = Release.load(whole / f"{job.name}.json")
        assert release.verify(key).trusted  # type: ignore[arg-type]
        assert not release.guarantee.simulated
        paid = release.provenance.receipt is not None or "ledger_rows" in release.provenance.parameters
        assert paid or release.guarantee.model == "local"


def test_every_charge_of_the_demo_has_its_release(whole: Path) -> None:
    charged = {(entry.entry_hash) for file in whole.glob("*.ledger") for entry in Ledger.open(file).entries()}
    receipts = [Release.load(file).provenance.receipt for file in whole.glob("*.json") if "study" not in file.name]
    assert {receipt.entry_hash for receipt in receipts if receipt is not None} == charged
    for file in whole.glob("*.ledger"):
        Ledger.open(file).verify()


def test_one_report_tells_all_jobs(whole: Path) -> None:
    page = Page((whole / "index.html").read_text(encoding="utf-8"))
    assert page.problems == []
    assert [words for level, words in page.headings if level == 2] == [
        "In short",
        *(job.question for job in jobs()),
        "What every release passes through",
    ]
    assert [link for link in page.links if not link.startswith("#") and not (whole / link).exists()] == []


def test_the_demo_tells_the_answer_the_promise_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("demo", "--job", "count", "--folder", tmp_path / "my demo") == 0
    out = capsys.readouterr().out
    for words in (
        "1/1  How many of the patients are 65 or older?",
        f"The files of this demo go into '{tmp_path / 'my demo'}'.",
        "± 6 (95 %)",
        "Promise: epsilon 0.5 for one patient (replace-one); a guesser is right at most 62.3 %.",
        "Ledger: charged to 'clinic' as entry 1 (epsilon 0.5).",
        "The ledger 'clinic' has epsilon 2.5 of 3 left.",
        f"Everything is in '{tmp_path / 'my demo'}'",
    ):
        assert words in out, words
    lines = [shlex.split(line) for line in out.splitlines() if line.startswith("  sabun ")]
    assert len(lines) == 3
    for line in lines:
        assert exit_code(*line[1:]) == 0


def test_the_demo_names_a_command_that_the_shell_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["my env/bin/sabun", "demo"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert demo._itself() == "'my env/bin/sabun'"
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert demo._itself() == "sabun"


def test_the_demo_json_names_the_files(tmp_path: Path) -> None:
    result = process("demo", "--job", "count", "--folder", "d", "--json", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    record = json.loads(result.stdout)
    assert (tmp_path / record["page"]).exists()
    assert [job["name"] for job in record["jobs"]] == ["count"]
    assert (tmp_path / record["jobs"][0]["file"]).exists()
    assert record["remaining"]["clinic"]["epsilon"] == "5/2"


def test_a_temporary_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert exit_code("demo", "--job", "count", "--json") == 0
    assert Path(json.loads(capsys.readouterr().out)["folder"]).parent == tmp_path


def test_the_demo_does_not_write_into_a_used_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert exit_code("demo", "--folder", tmp_path) == 2
    assert "folder must be new or empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_job_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("demo", "--job", "cooking", "--folder", tmp_path / "d") == 2
    assert "job must be one of 'count'" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_two_demos_draw_different_noise(tmp_path: Path) -> None:
    counts = set()
    for number in range(12):
        place = tmp_path / str(number)
        place.mkdir()
        outcome = count_old_patients(Bench(folder=place, quick=True, progress=lambda share, doing: None))
        counts.add(outcome.release["counts"]["all"])
    assert len(counts) > 1


def test_the_report_is_opened_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    first = jobs()[:1]
    monkeypatch.setattr(demo, "jobs", lambda: first)
    assert exit_code("demo", "--folder", tmp_path / "d", "--open") == 0
    assert opened == [(tmp_path / "d" / "index.html").resolve().as_uri()]


def test_the_demo_speaks_japanese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("demo", "--job", "count", "--quick", "--folder", tmp_path / "demo", "--lang", "ja") == 0
    assert "この表は架空のものなので確かめられます。正確な件数は" in capsys.readouterr().out
    page = (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
    for words in ('lang="ja"', "患者のうち 65 歳以上は何人か", "約束されていること", "使った予算"):
        assert words in page


def test_without_the_extra_the_demo_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise MissingExtra(job="the collector", package="starlette", extra="service")

    two = [job for job in jobs() if job.name in ("count", "collector")]
    monkeypatch.setattr(demo, "jobs", lambda: two)
    monkeypatch.setattr(demo, "require_extra", missing)
    assert exit_code("demo", "--quick", "--folder", tmp_path / "d") == 0
    assert "Not shown: the collector needs starlette. Install it with: pip install 'sabun[service]'" in capsys.readouterr().out
    assert not (tmp_path / "d" / "collector.json").exists()


def test_the_collector_of_the_demo_shows_its_dashboard_and_is_gone_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("demo", "--quick", "--job", "collector", "--folder", tmp_path / "d") == 0
    out = capsys.readouterr().out
    found = re.search(r"dashboard: (http://127.0.0.1:\d+/)", out)
    assert found is not None
    assert "60 made-up phones enrolled with a ticket each" in out
    assert re.search(r"while the round was open: Messages \d+ %", out)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(found[1], timeout=5)


@pytest.mark.parametrize("goes_on", ["Enter", "an interrupt", "time"])
def test_a_dashboard_is_kept_open_until_somebody_goes_on(goes_on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[int] = []

    def phone() -> None:
        reported.append(len(reported))
        if len(reported) == 6 and goes_on == "Enter":
            os.write(typed, b"\n")
        if len(reported) == 6 and goes_on == "an interrupt":
            raise KeyboardInterrupt

    read, typed = os.pipe()
    with os.fdopen(read) as stdin, os.fdopen(typed, "w"):
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr(collector, "_PAUSE", 0.01)
        monkeypatch.setattr(collector, "_KEPT_OPEN", 0.3 if goes_on == "time" else 600.0)
        more = collector._keep_open(itertools.repeat(phone), lambda share, doing: None)
    assert more == len(reported) - (goes_on == "an interrupt")
    assert len(reported) == 6 or goes_on == "time"
