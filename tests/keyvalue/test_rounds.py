"""PrivKVM's rounds from the command line: what is published between them, and what all of them cost."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import exit_code
from sabun.errors import ParameterError
from sabun.keyvalue import Diary, Study, Tally

Capture = pytest.CaptureFixture[str]
PRIVKVM = ("--epsilon", "4", "--protocol", "privkvm", "--rounds", "3", "--value-range", "0:10")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sabun(*arguments: str, code: int = 0) -> None:
    assert exit_code("keyvalue", *arguments) == code


def as_json(capsys: Capture, *arguments: str) -> Any:
    capsys.readouterr()
    sabun(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_privkvm_runs_from_round_to_round(capsys: Capture) -> None:
    """The whole loop: report, count, publish, three times; what the last round says is the mean of those who hold the key."""
    sabun("study", "study.json", "--keys", "a,b", *PRIVKVM)
    with open("people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b"])
        writer.writerows([[10, ""] if number % 2 else ["", ""] for number in range(1200)])
    merged: list[str] = []
    published: list[float] = []
    for number in range(3):
        means = ("--means", f"means-{number - 1}.csv") if number else ()
        out = f"round-{number}.bin"
        sabun("report", "study.json", "--table", "people.csv", "--round", str(number), *means, "--out", out)
        merged.append(out)
        found = as_json(capsys, "tally", "study.json", *merged, "--out", f"{number}.tally")
        assert (found["accepted"], found["n"]) == (1200 * (number + 1), 1200)
        if number < 2:
            told = as_json(capsys, "means", "study.json", f"{number}.tally", "--out", f"means-{number}.csv")["means"]
            assert set(told) == {"a", "b"}
            assert all(0 <= mean <= 10 for mean in told.values())
            published.append(told["a"])
    found = as_json(capsys, "estimate", "study.json", "2.tally")
    last = found["rows"]["mean"][0]
    # Expected 9.8, with a standard error of 0.9: the middle, to which people without the key pull, is five of them away.
    assert last > 5
    assert published[0] > 4
    assert Fraction(str(found["guarantee"]["epsilon"])) <= 4
    with pytest.raises(ParameterError, match="no round comes after the last"):
        Tally.load("2.tally", study=Study.load("study.json"), seed=None).published_means()


def test_all_rounds_of_one_device_cost_what_one_participation_costs(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a", *PRIVKVM)
    Path("means.csv").write_text("key,mean\na,5\n")
    for number in range(3):
        means = ("--means", "means.csv") if number else ()
        told = ("--pair", "a=7", "--diary", "mine", "--max-epsilon", "4", "--round", str(number), *means)
        sabun("report", "study.json", *told, "--out", f"{number}.bin")
        assert "All 3 rounds together cost a person epsilon" in capsys.readouterr().out
    certified = Study.load("study.json").terms.certified
    assert Diary("mine").spent == certified <= 4
    again = as_json(capsys, "report", "study.json", "--diary", "mine", "--round", "2", "--means", "means.csv", "--out", "x")
    assert again["epsilon"] == "0"
    assert Path("x").read_bytes() == Path("2.bin").read_bytes(), "asked again, the device gives the bytes it gave"


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        ("key,mean\na,5\nb,5\n", ("--round", "0", "--means", "m.csv"), 2, "means must be left out"),
        ("", ("--round", "1"), 2, "Pass --means FILE, from `sabun keyvalue means`."),
        ("key,mean\na,5\n", ("--round", "1", "--means", "m.csv"), 4, "m.csv must have the columns key, mean with a number"),
        ("key,mean\na,5\nb,\n", ("--round", "1", "--means", "m.csv"), 4, "m.csv must have the columns key, mean with a number"),
        ("key,mean\na,5\nb,nan\n", ("--round", "1", "--means", "m.csv"), 4, "m.csv must hold means from 0 to 10"),
        ("key,mean\na,5\nb,11\n", ("--round", "1", "--means", "m.csv"), 4, "m.csv must hold means from 0 to 10"),
    ],
)
def test_published_means_are_checked_before_anything_is_charged(
    content: str, arguments: tuple[str, ...], code: int, message: str, capsys: Capture
) -> None:
    sabun("study", "study.json", "--keys", "a,b", *PRIVKVM)
    Path("m.csv").write_text(content)
    capsys.readouterr()
    sabun("report", "study.json", "--pair", "a=1", "--diary", "d", *arguments, "--out", "r.bin", code=code)
    assert message in capsys.readouterr().err
    assert not Path("r.bin").exists()
    assert not Path("d").exists()


def test_only_privkvm_publishes_means_between_rounds(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=1", "--out", "r.bin")
    sabun("tally", "study.json", "r.bin", "--out", "t")
    capsys.readouterr()
    sabun("means", "study.json", "t", "--out", "means.csv", code=2)
    assert "protocol must be 'privkvm', whose rounds need the means of the last; got 'kv3'." in capsys.readouterr().err
    assert not Path("means.csv").exists()


def test_a_key_nobody_was_asked_about_is_published_as_the_middle() -> None:
    study = Study(keys=["a", "b"], epsilon=4, protocol="privkvm", value_range=(0, 10))
    tally = study.tally()
    tally.add_many([1] * 50, [0] * 50)
    assert tally.published_means() == {"a": 10.0, "b": 5.0}


def test_em_is_run_as_the_command_line_says(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2", "--protocol", "privkv")
    sabun("simulate", "study.json", "--n", "5000", "--seed", "1", "--out", "t")
    usual = as_json(capsys, "estimate", "study.json", "t", "--method", "em")
    told = ("--iterations", "3", "--eta", "0.001", "--start", "0.4,0.1,0.25,0.25")
    found = as_json(capsys, "estimate", "study.json", "t", "--method", "em", *told)
    assert found["study"]["em_start"] == [0.4, 0.1, 0.25, 0.25]
    assert (found["study"]["em_iterations"], found["study"]["em_eta"]) == (3, 0.001)
    assert found["rows"]["frequency"] != usual["rows"]["frequency"]
    sabun("estimate", "study.json", "t", "--eta", "0.1", code=2)
    assert "method must be one of em, em3" in capsys.readouterr().err
    sabun("estimate", "study.json", "t", "--method", "em", "--start", "a,b", code=2)
    assert "start must be numbers separated by commas; got 'a,b'." in capsys.readouterr().err
