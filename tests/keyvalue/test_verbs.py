from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from sabun.keyvalue import Study
from sabun.keyvalue.batches import write_reports
from sabun.keyvalue.client import new_seed, to_json
from sabun.release import Release

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sabun(*arguments: str, code: int = 0) -> None:
    assert exit_code("keyvalue", *arguments) == code


def as_json(capsys: Capture, *arguments: str) -> Any:
    capsys.readouterr()
    sabun(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_from_a_study_to_a_table_of_estimates(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "YouTube,LINE", "--epsilon", "4", "--value-range", "0:10")
    with open("people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["YouTube", "LINE"])
        writer.writerows([[8, ""] if number % 2 else ["", "what?"] for number in range(400)])
    found = as_json(capsys, "report", "study.json", "--table", "people.csv", "--out", "reports.bin")
    assert (found["reports"], found["bytes_each"]) == (400, 38)
    found = as_json(capsys, "tally", "study.json", "reports.bin", "--out", "counts.tally")
    assert (found["accepted"], found["repeated"], found["rejected"]) == (400, 0, [])
    found = as_json(
        capsys,
        "estimate",
        "study.json",
        "counts.tally",
        "--plot",
        "means.svg",
        "--out",
        "rows.csv",
        "--release",
        "release.json",
    )
    assert found["rows"]["frequency"][0] == pytest.approx(0.5, abs=0.2)
    assert found["rows"]["frequency"][1] == pytest.approx(0.0, abs=0.15)
    assert found["rows"]["mean"][0] == pytest.approx(8, abs=3.5)
    assert Path("means.svg").read_text().lstrip().startswith("<?xml")
    assert len(Path("rows.csv").read_text().splitlines()) == 3
    assert Release.load("release.json").guarantee.relation == "local"


def test_repeated_and_forged_reports_count_once(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "1")
    study = Study.load("study.json")
    good = study.client().report({"a": 1.0})
    forged = good[:-1] + bytes([(good[-1] + 1) % 3])
    write_reports("one.bin", [good, good, forged, b"junk"])
    Path("two.jsonl").write_text(to_json(study.terms, good) + "\n{}\n" + to_json(study.terms, study.client().report({})) + "\n")
    found = as_json(capsys, "tally", "study.json", "one.bin", "two.jsonl", "--out", "counts.tally")
    assert (found["accepted"], found["repeated"], found["n"]) == (2, 2, 2)
    assert [entry["position"] for entry in found["rejected"]] == [2, 3, 5]
    assert found["rejected"][0]["reason"] == "a person must report once per round; this id came before with another answer."
    sabun("tally", "study.json", "one.bin", "--merge", "counts.tally", "--out", "more.tally")
    told = capsys.readouterr()
    assert "3 reports in all" in told.out
    assert "a report that an earlier run counted counts twice if its file is named again" in told.err


def test_a_device_keeps_its_budget_between_calls(capsys: Capture) -> None:
    sabun("study", "one.json", "--keys", "a,b", "--epsilon", "2")
    sabun("study", "two.json", "--keys", "a,c", "--epsilon", "2")
    sabun("report", "one.json", "--pair", "a=0.5", "--diary", "mine", "--max-epsilon", "3", "--out", "1.bin")
    sabun("report", "one.json", "--pair", "a=-0.5", "--diary", "mine", "--max-epsilon", "3", "--out", "2.bin")
    assert Path("1.bin").read_bytes() == Path("2.bin").read_bytes()
    assert "Wrote 1 report of " in capsys.readouterr().out
    sabun("report", "two.json", "--pair", "a=0.5", "--diary", "mine", "--max-epsilon", "3", "--out", "3.bin", code=2)
    assert "this device has epsilon 1 of 3 left; this report needs 2" in capsys.readouterr().err


def test_a_simulated_attack_shows_its_gain(capsys: Capture) -> None:
    keys = ",".join(f"k{number}" for number in range(50))
    arguments = ("--population", "power", "--n", "100000", "--seed", "1", "--attack", "m2ga", "--target", "k49")
    gains = {}
    for mode in ("assigned", "chosen"):
        sabun("study", f"{mode}.json", "--keys", keys, "--epsilon", "1", "--index-mode", mode)
        gains[mode] = as_json(capsys, "simulate", f"{mode}.json", *arguments)["gains"]["k49"]
    assert gains["chosen"] > 0.4
    assert gains["assigned"] < 0.1


def test_a_simulation_says_that_it_is_one_and_cannot_be_released(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    Path("truth.csv").write_text("key,frequency,mean\nb,0.2,0.5\na,0.6,-0.5\n")
    capsys.readouterr()
    sabun("simulate", "study.json", "--truth", "truth.csv", "--n", "50000", "--seed", "3", "--out", "made-up.tally")
    shown = capsys.readouterr().out
    assert shown.startswith("NOT PRIVATE: simulated.")
    found = as_json(
        capsys, "estimate", "study.json", "made-up.tally", "--truth", "truth.csv", "--plot", "x.svg", "--lang", "ja"
    )
    assert found["rows"]["frequency"] == pytest.approx([0.6, 0.2], abs=0.03)
    assert all(f">{words}<" in Path("x.svg").read_text() for words in ("真の値", "値の平均", "NOT PRIVATE：シミュレーション"))
    sabun("estimate", "study.json", "made-up.tally", "--release", "release.json", code=2)
    assert not Path("release.json").exists()


def test_a_committed_seed_travels_in_hex(capsys: Capture) -> None:
    seed, commitment = new_seed()
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2", "--index-commitment", commitment)
    sabun("report", "study.json", "--pair", "a=0.5", "--index-seed", seed.hex(), "--out", "r.bin")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "s.bin", code=2)
    assert as_json(capsys, "tally", "study.json", "r.bin", "--index-seed", seed.hex(), "--out", "c.tally")["accepted"] == 1
    assert as_json(capsys, "estimate", "study.json", "c.tally")["rows"]["n"] in ([1, 0], [0, 1])


def test_made_up_credentials_are_not_counted(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=0.5", "--credential", "00" * 16, "--diary", "d", "--out", "r.bin")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "s.bin")
    Path("issued.txt").write_text("00" * 16 + "\n" + "11" * 16 + "\n")
    found = as_json(capsys, "tally", "study.json", "r.bin", "s.bin", "--credentials", "issued.txt", "--out", "c.tally")
    assert (found["accepted"], len(found["rejected"])) == (1, 1)


def test_counters_are_merged_once(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "r.bin")
    sabun("tally", "study.json", "r.bin", "--out", "c.tally")
    Path("copy.tally").write_bytes(Path("c.tally").read_bytes())
    for other in ("c.tally", "copy.tally"):
        capsys.readouterr()
        sabun("tally", "study.json", "r.bin", "--merge", "c.tally", "--merge", other, "--out", "d.tally", code=4)
        assert "merge must name different counters; two of the files are the same." in capsys.readouterr().err
        assert not Path("d.tally").exists()


def test_each_round_has_its_own_counters(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2", "--rounds", "2")
    for number in ("0", "1"):
        sabun("report", "study.json", "--pair", "a=0.5", "--diary", "d", "--round", number, "--out", f"{number}.bin")
    found = as_json(capsys, "tally", "study.json", "0.bin", "1.bin", "--out", "0.tally")
    assert (found["accepted"], found["rejected"][0]["position"]) == (1, 1)
    found = as_json(capsys, "tally", "study.json", "0.bin", "1.bin", "--round", "1", "--out", "1.tally")
    assert (found["accepted"], found["rejected"][0]["position"]) == (1, 0)


def test_people_who_hold_nothing_answer_too(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "HIV", "--epsilon", "1")
    Path("t.csv").write_bytes(b"HIV\n1\n\n0.5\n\n\xff\n")
    arguments = ("--table", "t.csv", "--max-epsilon", "1", "--out", "r.bin")
    assert as_json(capsys, "report", "study.json", *arguments)["reports"] == 5


def test_made_up_rows_and_pictures_say_so(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("simulate", "study.json", "--n", "1000", "--seed", "1", "--frequency", "0", "--out", "c.tally")
    sabun("estimate", "study.json", "c.tally", "--out", "rows.csv", "--plot", "x.svg")
    rows = list(csv.DictReader(Path("rows.csv").read_text().splitlines()))
    assert {row["note"] for row in rows} == {"NOT PRIVATE: simulated"}
    assert all(row["mean"] == "" for row in rows if "weak" in row["flags"])
    assert "NOT PRIVATE: simulated" in Path("x.svg").read_text()


def test_the_explanation_names_the_options(capsys: Capture) -> None:
    Path("keys.txt").write_text("\n".join(f"k{number}" for number in range(2000)))
    sabun("study", "study.json", "--keys-file", "keys.txt", "--epsilon", "2", "--keys-per-user", "3")
    found = as_json(capsys, "explain", "study.json")
    assert found["protocol"] == "set"
    assert [option["protocol"] for option in found["options"]] == ["set", "pckv-ue", "pckv-grr+", "kv3"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("study", "s.json", "--epsilon", "1"), 2, "keys must be given once: pass --keys or --keys-file."),
        (("study", "s.json", "--keys", "a,b", "--epsilon", "-1"), 2, "epsilon must be finite and > 0; got '-1'."),
        (
            ("study", "s.json", "--keys", "a,b", "--epsilon", "1", "--value-range", "3"),
            2,
            "--value-range must be low:high; got '3'.",
        ),
        (
            ("study", "study.json", "--keys", "a,b", "--epsilon", "1"),
            2,
            "out must be a new file; 'study.json' exists. Choose another name.",
        ),
        (("report", "study.json", "--pair", "a", "--out", "r"), 2, "pair must be KEY=VALUE; it has no '='."),
        (("report", "study.json", "--table", "t", "--pair", "a=1", "--out", "r"), 2, "--table must stand alone"),
        (("report", "study.json", "--table", "broken.csv", "--out", "r"), 4, "must have a column for every key; 'a' has none."),
        (("report", "study.json", "--max-epsilon", "2", "--out", "r"), 2, "diary must be given with credential or --max"),
        (("report", "study.json", "--index-seed", "x", "--out", "r"), 2, "--index-seed must be hex digits; it is not."),
        (("tally", "study.json", "broken.bin", "--out", "c"), 4, "must hold whole reports, each after its length"),
        (("tally", "study.json", "no.jsonl", "--out", "c"), 4, "must hold reports of this study; none of 2 reports is one."),
        (("estimate", "study.json", "broken.bin"), 4, "a tally must be whole, as it was saved; it is not."),
        (("simulate", "study.json", "--target", "a"), 2, "target must come with --attack; it came alone."),
        (("simulate", "study.json", "--attack", "m2ga", "--target", "x"), 2, "target must be keys of the study; got ['x']."),
        (("simulate", "study.json", "--truth", "broken.csv"), 4, "must have the columns key, frequency, mean"),
        (("explain", "broken.csv"), 4, "a study must be valid JSON; it could not be parsed."),
        (("explain", "nowhere.json"), 4, "No such file"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], code: int, message: str, capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "1")
    Path("broken.bin").write_bytes(b"\0\0\0\x26short")
    Path("broken.csv").write_text("x,y\n1,2\n")
    Path("no.jsonl").write_text('{"library": "north"}\n{"library": "south"}\n')
    capsys.readouterr()
    sabun(*arguments, code=code)
    assert message in capsys.readouterr().err
    assert not Path("c").exists()


def test_the_person_at_the_device_is_told_what_is_not_reported(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "Headache,Fever", "--epsilon", "2")
    capsys.readouterr()
    sabun("report", "study.json", "--pair", "Headake=0.5", "--pair", "Fever=7", "--out", "r.bin")
    said = capsys.readouterr().err
    assert "Warning: key 'Headake' is not in the study: it is reported as if it were not held." in said
    assert "Warning: the value of 'Fever' is not a number in the study's range" in said
    sabun("report", "study.json", "--pair", "Fever=0.5", "--out", "s.bin")
    assert capsys.readouterr().err == ""


def test_the_same_answer_again_costs_nothing_and_says_so(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    for out, words in (("1.bin", "Each cost its person epsilon 2."), ("2.bin", "Already paid: the diary gave the answer")):
        sabun("report", "study.json", "--pair", "a=0.5", "--diary", "mine", "--out", out)
        assert words in capsys.readouterr().out
    assert as_json(capsys, "report", "study.json", "--diary", "mine", "--out", "3.bin")["epsilon"] == "0"


def test_reports_are_counted_before_they_are_estimated(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "r.bin")
    sabun("estimate", "study.json", "r.bin", code=4)
    assert "Reports must be counted into a tally first." in capsys.readouterr().err


def test_a_plan_tells_cost_and_errors_before_anybody_answers(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2", "--value-range", "1:9")
    capsys.readouterr()
    sabun("plan", "study.json", "--n-records", "20000", "--frequency", "0.3")
    told = capsys.readouterr().out
    assert told.startswith("epsilon 2 per person; about 10000 reports per key.")
    assert "each holds the truth with probability 0.95." in told
    found = as_json(capsys, "plan", "study.json", "--records", "20000", "--frequency", "0.3", "--level", "0.99")
    wider = as_json(capsys, "plan", "study.json", "--n-records", "20000", "--frequency", "0.3", "--mean", "5")
    assert (found["n_records"], found["confidence"], found["protocol"]) == (20_000, 0.99, "kv3")
    assert found["mean_error"] == wider["mean_error"], "the middle of the range where no mean is named"
    assert found["frequency_reach"] == pytest.approx(2.5758 * found["frequency_error"], rel=1e-3)
    tried = Study.load("study.json").simulate([0.3] * 2, [5.0] * 2, n=20_000, random_state=0).estimate(level=0.99)
    half = (tried.frequency_interval[:, 1] - tried.frequency_interval[:, 0]) / 2
    assert half == pytest.approx(found["frequency_reach"], rel=0.1)
    half = (tried.mean_interval[:, 1] - tried.mean_interval[:, 0]) / 2
    assert half == pytest.approx(found["mean_reach"], rel=0.2)
    rare = as_json(capsys, "plan", "study.json", "--n-records", "500", "--frequency", "0.01")
    assert (rare["mean_is_weak"], rare["mean_reach"]) == (True, 4.0)


def test_a_truth_that_nobody_would_draw_or_find_is_refused_before_anything_is_written(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("simulate", "study.json", "--n", "500", "--seed", "0", "--out", "t.tally")
    asked = ("estimate", "study.json", "t.tally", "--truth", "nope.csv", "--out", "rows.csv")
    for more, message in (
        ((), "truth must be left out without a plot"),
        (("--plot", "x.svg"), "there is none called 'nope.csv'"),
    ):
        sabun(*asked, *more, code=2)
        assert message in capsys.readouterr().err
    assert not Path("rows.csv").exists()
    assert not Path("x.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--n-records", "0"), "--n-records must be"),
        (("--n-records", "9", "--frequency", "2"), "frequency must be above 0 and at most 1; got 2.0."),
        (("--n-records", "9", "--mean", "5"), "mean must be within the value range; got 5.0."),
        (("--n-records", "9", "--confidence", "1"), "confidence must be above 0 and below 1; got 1.0."),
    ],
)
def test_a_plan_names_what_it_cannot_plan(arguments: tuple[str, ...], message: str, capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    capsys.readouterr()
    sabun("plan", "study.json", *arguments, code=2)
    assert message in capsys.readouterr().err


def test_the_most_frequent_keys_come_with_probabilities(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b,c,d,e", "--epsilon", "2")
    Path("truth.csv").write_text("key,frequency,mean\na,0.1,0\nb,0.8,0.5\nc,0.5,-0.5\nd,0.1,0\ne,0.1,0\n")
    sabun("simulate", "study.json", "--truth", "truth.csv", "--n", "100000", "--seed", "0", "--out", "t.tally")
    capsys.readouterr()
    sabun("estimate", "study.json", "t.tally", "--top", "2")
    assert "among the 2 most frequent with probability\nb                   0." in capsys.readouterr().out
    found = as_json(capsys, "estimate", "study.json", "t.tally", "--top", "2", "--interval", "average")
    assert found["top"]["key"] == ["b", "c"]
    assert found["top"]["probability"] == [1.0, 1.0]
    assert (found["method"], found["interval"]) == ("shrunk", "average")
    sabun("estimate", "study.json", "t.tally", "--top", "6", code=2)
    assert "k must be a whole number from 1 to 5; got 6." in capsys.readouterr().err


@pytest.mark.parametrize("watched", [False, True])
def test_cells_that_no_device_can_use_are_told_at_the_terminal_and_in_no_file(
    watched: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were dropped without a word."""
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2", "--value-range", "0:10")
    Path("t.csv").write_text("a,b\n7,\n11,2\nwhat?,nan\n, \n-1,3\n")
    monkeypatch.setattr("sabun.keyvalue.verbs.on_terminal", lambda: watched)
    capsys.readouterr()
    sabun("report", "study.json", "--table", "t.csv", "--out", "r.bin")
    told = capsys.readouterr()
    assert "A cell that is no number from 0 to 10 counts as not held, as on a device." in told.out
    warned = "Warning: 4 cells of the table are no numbers in the study's range; they count as not held.\n"
    assert told.err == (warned if watched else "")
    sabun("report", "study.json", "--table", "t.csv", "--out", "s.bin", "--json")
    assert set(json.loads(capsys.readouterr().out)) == {"out", "path", "reports", "bytes_each", "epsilon"}
    assert Path("s.bin").stat().st_size == Path("r.bin").stat().st_size == 5 * (4 + 38)


def test_a_mean_too_weak_to_be_used_is_left_out_of_the_release_with_the_reason(capsys: Capture) -> None:
    """It stood there as if it were good; only another list of the file said that it is not."""
    sabun("study", "study.json", "--keys", "common,rare,never", "--epsilon", "4", "--index-mode", "chosen")
    study = Study.load("study.json")
    tally = study.tally()
    tally.add_many([1] * 300 + [2] * 10 + [0] * 200 + [1] * 3 + [0] * 300, [0] * 510 + [1] * 303)
    assert np.isfinite(tally.estimate("unbiased").mean[1])
    tally.save("c.tally")
    found = as_json(capsys, "estimate", "study.json", "c.tally", "--method", "unbiased", "--out", "release.json")
    release = Release.load("release.json")
    for rows in (found["rows"], release.value):
        assert [mean is None for mean in rows["mean"]] == [False, True, True]
        reasons = [None, "the frequency is within noise of 0", "no reports about this key"]
        assert list(rows["mean_reason"]) == reasons
    assert list(release["flags"])[1] == "weak"
    assert found["out"] == "release.json"


def test_out_is_the_release_or_the_rows_by_its_ending(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "r.bin")
    sabun("tally", "study.json", "r.bin", "--out", "c.tally")
    sabun("estimate", "study.json", "c.tally", "--out", "one.json")
    sabun("estimate", "study.json", "c.tally", "--release", "two.json", "--out", "rows.csv")
    assert Release.load("one.json").value == Release.load("two.json").value
    assert Path("rows.csv").read_text().startswith("key,frequency,")
    capsys.readouterr()
    sabun("estimate", "study.json", "c.tally", "--out", "three.json", "--release", "four.json", code=2)
    assert "release must be named once" in capsys.readouterr().err
    assert not Path("three.json").exists()


def test_what_exists_is_never_overwritten_and_the_code_is_the_same_everywhere(capsys: Capture) -> None:
    sabun("study", "study.json", "--keys", "a,b", "--epsilon", "2")
    sabun("report", "study.json", "--pair", "a=0.5", "--out", "r.bin")
    sabun("tally", "study.json", "r.bin", "--out", "c.tally")
    Path("taken.json").write_text("precious")
    for arguments in (
        ("study", "taken.json", "--keys", "a", "--epsilon", "1"),
        ("report", "study.json", "--pair", "a=1", "--out", "taken.json"),
        ("tally", "study.json", "r.bin", "--out", "taken.json"),
        ("estimate", "study.json", "c.tally", "--out", "taken.json"),
        ("estimate", "study.json", "c.tally", "--release", "taken.json"),
        ("estimate", "study.json", "c.tally", "--plot", "taken.json"),
        ("simulate", "study.json", "--n-records", "9", "--out", "taken.json"),
    ):
        capsys.readouterr()
        sabun(*arguments, code=2)
        assert "must be a new file; 'taken.json' exists" in capsys.readouterr().err
    assert Path("taken.json").read_text() == "precious"


def test_keys_may_be_parted_by_wide_commas(capsys: Capture) -> None:
    sabun("study", "wide.json", "--keys", "駅、市場，公園", "--epsilon", "2", "--value-range", "0:60")
    assert "3 keys" in capsys.readouterr().out


def test_who_pads_to_fewer_keys_than_people_hold_is_warned_before_anybody_is_asked(capsys: Capture) -> None:
    terms = ("--keys", "A,B,C", "--epsilon", "2", "--keys-per-user", "2", "--protocol", "set", "--padding-length")
    for length, warned in (("1", True), ("2", False)):
        capsys.readouterr()
        sabun("study", f"{length}.json", *terms, length)
        told = capsys.readouterr().err
        sabun("explain", f"{length}.json")
        for words in (told, capsys.readouterr().out):
            assert ("people may hold 2 keys, and padding to 1 cuts keys off" in words) is warned


@pytest.mark.parametrize("twice", [("1=1", "1=0.5"), ("b=1", "b=1")])
def test_a_key_that_is_typed_twice_is_refused_before_anything_is_kept(twice: tuple[str, str], capsys: Capture) -> None:
    Study(keys=["1", "b"], epsilon=2).save("study.json")
    arguments = ("report", "study.json", "--diary", "mine", "--out", "r.bin")
    sabun(*arguments, "--pair", twice[0], "--pair", twice[1], code=2)
    told = capsys.readouterr().err
    assert "pair must name each key once; one came twice." in told
    assert not any(pair in told for pair in twice)
    assert not Path("mine").exists()
    assert not Path("r.bin").exists()
