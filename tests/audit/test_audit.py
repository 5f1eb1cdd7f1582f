"""The audit of the package: its table, its commands, and that it fails where something is broken."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from architecture.test_mutants import TOOL
from sabun.asking import rooms
from sabun.asking.evidence import ROWS, Bench, Check, Checklist, Inapplicable, Refuted, Specimen
from sabun.audit import audit, catalogue, drowning, named, objects, proofs, repeats, replay, running, samplers
from sabun.audit.altered import altered
from sabun.audit.resting import RESTING
from sabun.cli import main
from sabun.errors import ParameterError
from sabun.privacy import noise
from sabun.privacy.noise import discrete_laplace, os_coin
from sabun.records import Schema
from sabun.reports.audits import audit_page
from sabun.summaries import Count, laws
from sabun.summaries.evidence import SPECIMENS, VARIANTS

SQUARE = Schema.of_bounds({"x0": (0, 1), "x1": (0, 1)})
ROOT = Path(__file__).resolve().parents[2]
NAMES = catalogue.catalogue()


def test_nothing_promises_without_evidence() -> None:
    assert catalogue.gaps() == ()
    listed = {(one.room, name) for one in NAMES for name in one.check.mechanisms}
    assert {(room.name, question) for room in rooms() for question in room.questions} <= listed
    assert {"privacy", "release", "ledger", "records"} <= {room for room, _ in listed}


def test_a_mechanism_without_evidence_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    import sabun.summaries.evidence as shown

    monkeypatch.setattr(shown, "PROMISING", (*shown.PROMISING, "a new one"))
    monkeypatch.setattr(shown, "SPECIMENS", ())
    found = {gap.mechanism for gap in catalogue.gaps()}
    assert found == {"a new one", "Count", "Sum", "Mean", "Variance", "Histogram", "Quantiles"}
    assert not audit("a new one").passed
    monkeypatch.setattr(samplers, "CHECKS", Checklist())
    assert "discrete_laplace" in {gap.mechanism for gap in catalogue.gaps()}


def test_a_room_whose_evidence_breaks_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    import sabun.summaries.evidence as shown

    monkeypatch.delattr(shown, "CHECKS")
    assert {"discrete Laplace noise", "exponential mechanism"} <= {gap.mechanism for gap in catalogue.gaps()}


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"nothing to audit called 'nobody'.*discrete_laplace"):
        audit("nobody")


def _told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return int(stop.value.code or 0), capsys.readouterr().out


def test_the_command_prints_a_table_writes_a_page_and_says_when_something_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "audit.html"
    code, told = _told(["audit", "uniform_below", "--workers", "1", "--json", "--html", str(page)], capsys)
    assert code == 0
    record = json.loads(told)
    assert record["passed"]
    assert record["libraries"]["numpy"]
    one, resting = record["findings"]
    assert (one["room"], one["mechanism"], one["passed"]) == ("privacy", "uniform_below", True)
    assert resting["proofs"]
    assert "has no favourite" in page.read_text(encoding="utf-8")
    assert "監査" in audit_page(record, lang="ja")
    monkeypatch.setattr(samplers, "uniform_below", lambda bound, *, coin, size: discrete_laplace(9, coin=coin, size=size) % 7)
    code, told = _told(["audit", "uniform_below", "--workers", "1"], capsys)
    assert code == 1
    assert "2 checks of 4 mechanisms" in told
    assert "1 FAILED" in told
    assert _told(["audit", "nobody"], capsys)[0] == 2
    told = _told(["audit", "--list"], capsys)[1]
    assert "regression\n  classes\n    PrivateRidge\n  mechanisms\n" in told
    assert "    ssp-gauss\n" in told
    listed = json.loads(_told(["audit", "--list", "--json"], capsys)[1])["rooms"]["summaries"]
    assert "Count" in listed["classes"]
    assert "exponential mechanism" in listed["mechanisms"]
    assert listed["other parts"] == ["commands", "proofs"]


def test_a_check_tells_where_it_failed_and_puts_everything_back() -> None:
    checks = Checklist()

    @checks("toy", number=(1, 2, 3))
    def _numbers_are_small(bench: Bench, number: int) -> str:
        bench.replace(Toy, "size", 7)
        bench.replace(Toy, "colour", "red")
        bench.must(
            Toy.size == 7 and number < 3,
            "a number is large.",
        )
        return f"number {number}"

    class Toy:
        size = 1

    [check] = checks
    found = check.run("toy")
    assert found.passed is False
    assert found.evidence.startswith("REFUTED: a number is large. [number=3] (test_audit.py:")
    assert found.evidence.endswith('bench.must( Toy.size == 7 and number < 3, "a number is large.", ))'), "not cut short"
    assert (Toy.size, hasattr(Toy, "colour")) == (1, False)
    fine = Check(mechanisms=("toy",), claim="c", shown="tight", function=check.function, cases=check.cases[:2]).run("toy")
    assert (fine.passed, fine.evidence) == (True, "number 1; number 2; 2 cases")


def test_enough_noise_is_neither_too_little_nor_wasted() -> None:
    with Bench() as bench:
        bench.enough(1.005, 1.0, waste=1.01)
        assert bench.told() == "noise 1.005 times what is needed"
        for found in (0.99, 1.02):
            with pytest.raises(Refuted, match="is needed"):
                bench.enough(found, 1.0, waste=1.01)


COUNT = next(specimen for specimen in SPECIMENS if specimen.question == "Count")


class Leaky:
    """A question as a room has it, with one private fact more than the noise covers."""

    def __init__(self, leak: str, **how: Any) -> None:
        self.leak, self.inner = leak, Count(**(dict(COUNT.make.keywords) | how))  # type: ignore[attr-defined]
        self.epsilon = self.inner.epsilon

    def fit(self, rows: Any) -> Leaky:
        kept = self.inner.fit(rows)
        self.guarantee_, release = kept.guarantee_, kept.release_
        value = dict(release.value)
        if self.leak == "a number":
            value["more"] = float(rows[0, 0])
        if self.leak == "a size":
            value["more"] = [0] * int((rows[:, 0] > 0.5).sum())
        if self.leak == "an error" and not (rows == rows).all():
            raise ValueError("a cell is missing")
        self.release_ = type("Shown", (), {"value": value, "provenance": release.provenance})()
        return self


@pytest.mark.parametrize(
    ("leak", "words"),
    [
        ("a number", "the release is another"),
        ("a size", "another shape"),
        ("an error", "ValueError"),
    ],
)
def test_a_replay_notices_what_goes_past_the_noise(leak: str, words: str) -> None:
    specimen = Specimen(question="Leaky", make=lambda **how: Leaky(leak, **how), fit=lambda model, rows: model.fit(rows))
    with Bench() as bench, pytest.raises(Refuted, match=words):
        replay.replayed(bench, specimen)


def test_a_replay_notices_a_statistic_that_moves_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for half of what a person can change: the loss is what the neighbours' sums say, whatever the room declares."""
    specimen, true = next(one for one in SPECIMENS if one.question == "Sum"), laws.Noise.of
    with Bench() as bench:
        assert "largest loss epsilon 0.48" in replay.replayed(bench, specimen)
    halved = classmethod(lambda cls, ask, change: dataclasses.replace(true(ask, change), size=true(ask, change).size / 2))
    monkeypatch.setattr(laws.Noise, "of", halved)
    with Bench() as bench, pytest.raises(Refuted, match=r"pure noise alone loses epsilon 0\.96\d+ where 0\.5 is promised"):
        replay.replayed(bench, specimen)


def test_neighbours_differ_in_one_row() -> None:
    for relation in ("replace-one", "add-remove"):
        for _, rows in replay.neighbours(relation):
            same = abs(len(ROWS) - len(rows)) if relation == "add-remove" else int((rows != ROWS).any(axis=1).sum())
            assert same == 1


def test_proofs_came_with_the_package_and_a_changed_module_shows(tmp_path: Path) -> None:
    assert len(proofs.proof_files()) > 50
    place = tmp_path / "summaries"
    shutil.copytree(proofs.package() / "summaries", place, ignore=shutil.ignore_patterns("__pycache__"))
    proof = place / "laws.proof.md"
    assert proofs.now(proof) == proofs.listed(proof)
    module = place / "laws.py"
    module.write_text(
        module.read_text(encoding="utf-8").replace("int(value) + int(noise)", "int(value) - int(noise)"), encoding="utf-8"
    )
    assert proofs.now(proof) != proofs.listed(proof)


@pytest.mark.parametrize(
    ("room", "broken", "audited"),
    [
        pytest.param("summaries", "noise for 2 epsilon", "Count", marks=pytest.mark.long),  # it hangs in test_museum, too
        ("ledger", "charge after the draw", "Sum"),
        pytest.param("density", "spherical scale halved", "DensityRatio", marks=pytest.mark.long),
        ("keyvalue", "truth more often than the table", "kv3"),
    ],
)
def test_the_audit_of_a_broken_package_fails(room: str, broken: str, audited: str, tmp_path: Path) -> None:
    """Not by a digest: what fails is what the code does."""
    [mutant] = [one for one in TOOL.MUTANTS if (one.room, one.name) == (room, broken)]
    shutil.copytree(ROOT / "src" / "sabun", tmp_path / "sabun")  # times stay, so that what was compiled still counts
    target = tmp_path / Path(mutant.file).relative_to("src")
    target.write_text(mutant.applied(target.read_text(encoding="utf-8")), encoding="utf-8")
    around = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "sabun", "audit", audited, "--json", "--workers", "1", "--without", "proof"],
        env=around,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    findings = json.loads(done.stdout)["findings"]
    failed = [one for one in findings if one["passed"] is False]
    assert failed
    assert any(audited in one["mechanism"].split(", ") for one in failed)
    left = [one for one in findings if one["passed"] is None]
    assert all("left out: asked for by 'proof'" in one["evidence"] for one in left)


class Sharing:
    """Two sums that are told with one draw between them, or with a draw that only one of them gets."""

    def __init__(self, fault: str, **how: Any) -> None:
        self.fault, self.how, self.epsilon = fault, how, 0.5

    def fit(self, rows: Any) -> Sharing:
        cells = np.nan_to_num(np.clip(rows, 0, 1), nan=0.5)
        exact = [float(cells[:, 0].sum()), float((cells[:, 1] ** 2).sum())]
        noise = [int(laws.discrete_laplace(Fraction(4), coin=os_coin(), size=1)[0]) for _ in exact]
        told = {
            "one draw": [exact[0] + noise[0], exact[1] + noise[0]],
            "none": [exact[0] + noise[0], exact[1]],
            "its own": [exact[0] + noise[0], exact[1] + noise[1]],
        }[self.fault]
        fitted = Count(epsilon=0.5, schema=SQUARE, where={"x1": (0.5, None)}, **self.how).fit(rows)
        self.guarantee_, release = fitted.guarantee_, fitted.release_
        self.release_ = type("Shown", (), {})()
        self.release_.value, self.release_.provenance = {"sums": told}, release.provenance
        return self


@pytest.mark.parametrize(
    ("fault", "words"), [("one draw", "share their noise"), ("none", "has no noise on it"), ("its own", "")]
)
def test_a_flood_notices_a_number_that_stays_dry_and_two_that_share_a_draw(fault: str, words: str) -> None:
    specimen = Specimen(question="Sharing", make=lambda **how: Sharing(fault, **how), fit=lambda model, rows: model.fit(rows))
    with Bench() as bench:
        if not words:
            assert "drowned" in drowning.drowned(bench, specimen)
            return
        with pytest.raises(Refuted, match=words):
            drowning.drowned(bench, specimen)


def test_a_promise_that_is_asked_for_alone_is_told_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A first sentence may leave out the dangerous part: what many rounds lose, and what the proof takes for granted."""
    code, told = _told(["audit", "kv3", "--workers", "1"], capsys)
    assert code == 0
    assert "no bound between others" in " ".join(told.replace("*", "").split())
    assert "one client per person" in told
    device = proofs.package() / "keyvalue" / "client" / "device.proof.md"
    assert proofs.claim(device).endswith(" …")
    assert proofs.section(device, "No such thing") == ""


def test_a_check_can_be_run_by_words_of_its_claim() -> None:
    found = audit("delta alone is enough to refuse")
    assert [one.claim for one in found.findings] == ["delta alone is enough to refuse"]
    assert found.passed
    left = audit("delta alone is enough to refuse", without="delta")
    assert [(one.passed, one.shown, one.absent) for one in left.findings] == [(None, None, "left out")]
    assert left.passed is None, "what was not tried did not pass"
    assert (left.to_dict()["checks"], left.to_dict()["left_out"]) == (0, 1)


def test_what_needs_a_missing_extra_is_counted_apart_and_alone_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for module in (running, named):
        monkeypatch.setattr(module, "installed", lambda extra: not extra)
    page = tmp_path / "audit.html"
    code, told = _told(["audit", "torch-modules", "--workers", "1", "--html", str(page)], capsys)
    assert code == 1
    told = " ".join(told.split())
    assert "0 checks in " in told
    assert "left out (they need sabun[learning]): NOTHING WAS TRIED, which is no pass." in told
    assert "[left out]" in told
    assert "[checked" not in told
    assert "Nothing was tried" in page.read_text(encoding="utf-8")


def test_whoever_asks_for_a_class_asks_for_the_noise_that_it_draws() -> None:
    def asked(name: str) -> set[tuple[str, str]]:
        concerns = named.about(name)
        return {(one.room, one.check.name) for one in NAMES if concerns(one)}

    counted = asked("Count")
    assert {("summaries", "discrete Laplace noise"), ("privacy", "discrete_laplace")} <= counted
    assert ("summaries", "discrete Laplace noise, discrete Gaussian noise") in counted
    assert not [name for _, name in counted if "Sum" in name or "exponential" in name]
    assert {("summaries", "exponential mechanism"), ("privacy", "exponential_choice")} <= asked("quantiles")


def test_each_promise_is_told_with_its_claim_its_proofs_and_what_it_assumes(capsys: pytest.CaptureFixture[str]) -> None:
    found = audit("kv3")
    [one] = found.summaries
    assert one.claim == "One report is c-LDP for everything the person holds, c = `terms.certified`. …"
    assert one.proofs[0] == "keyvalue/client/device.proof.md"
    assert one.assumes == ("the device runs the published code on an honest source of random bits",)
    assert one.tested == {"tight": 1, "checked": 3}
    record = found.to_dict()
    assert record["summaries"][0]["claim"] == one.claim
    page = audit_page(record, lang="en")
    assert page.index("What is promised") < page.index("keyvalue</h2>")
    assert "<details" in page
    told = " ".join(_told(["audit", "randomized response", "--workers", "1"], capsys)[1].split())
    assert "claims " in told
    assert "proved in keyvalue/client/classic.proof.md" in told
    assert "tight: the loss was found exactly" in told


def test_every_mechanism_of_every_room_says_on_which_proofs_it_rests() -> None:
    resting = {(one.room, name) for one in NAMES if one.check.claim == RESTING for name in one.check.mechanisms}
    promised = {(room, name) for room, kinds in named.grouped().items() for name in kinds.get("mechanisms", ())}
    assert promised <= resting
    assert {"privacy", "release", "ledger", "records"} <= {room for room, _ in resting}


@pytest.mark.parametrize(("chooses", "words"), [(True, "it draws numbers"), (False, "")])
def test_a_class_that_is_said_to_choose_must_draw_no_number(chooses: bool, words: str) -> None:
    with Bench() as bench:
        if not words:
            assert "draws of two fits" in repeats.independent(bench, COUNT)
            return
        with pytest.raises(Refuted, match=words):
            repeats.independent(bench, dataclasses.replace(COUNT, chooses=chooses))


def test_a_choice_has_no_draws_to_compare_and_a_sum_without_any_fails() -> None:
    choice = next(one for one in SPECIMENS if one.question == "Quantiles")
    with Bench() as bench, pytest.raises(Inapplicable, match="no numbers"):
        repeats.independent(bench, choice)
    with Bench() as bench, pytest.raises(Refuted, match="no number was drawn"):
        repeats.independent(bench, dataclasses.replace(choice, chooses=False))
    checks = Checklist()
    checks("toy", specimen=(choice,))(lambda bench, specimen: repeats.independent(bench, specimen))
    [found] = [check.run("toy") for check in checks]
    assert (found.passed, found.shown, found.absent) == (None, None, "does not apply")


def test_noise_that_is_the_same_in_fit_after_fit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, **how: discrete_laplace(scale, **how) * 0 + 2)
    monkeypatch.setattr(laws, "discrete_laplace", noise.discrete_laplace)
    with Bench() as bench, pytest.raises(Refuted, match="60 fits drew the same numbers"):
        repeats.independent(bench, COUNT)


def test_a_gaussian_loss_is_told_as_the_epsilon_at_the_promised_delta() -> None:
    specimen = next(one for one in VARIANTS if one.question == "Count" and one.delta)
    with Bench() as bench:
        told = replay.replayed(bench, specimen)
    assert re.search(r"largest loss epsilon 0\.4[5-9]\d+ of epsilon 1/2, at delta 1e-06 \(mu 0\.1", told), told


def test_what_a_mechanism_rests_on_is_told() -> None:
    """Of a question without compiled loops: compiling them under a watch would take half a minute."""
    [listed] = [
        one
        for one in NAMES
        if "Sum" in one.check.mechanisms and "discrete Laplace noise" in one.check.mechanisms and "proofs" in one.check.claim
    ]
    one = listed.check.run(listed.room)
    assert one.passed
    assert "rests on " in one.evidence
    assert "summaries/laws.proof.md" in one.evidence
    assert "assumes: " in one.evidence


def test_what_a_finished_object_holds_is_found_however_deep() -> None:
    class Inner:
        __slots__ = ("kept",)

    inner = Inner()
    inner.kept = np.array([1.0, 2.0])
    secret = 41

    def remembers() -> int:
        return secret

    found = objects.held({"a": [inner, remembers, functools.partial(print, 7)], "b": {3, 4}})
    values = [value for value in found.values() if isinstance(value, int)]
    assert {41, 7, 3, 4} <= set(values)
    assert any(isinstance(value, np.ndarray) for value in found.values())


def test_every_field_of_a_record_is_altered() -> None:
    record = {"a": 1, "b": {"c": "1/10", "d": [True, None]}}
    changed = [one.record for one in altered(record)]
    assert {"a": 2, "b": {"c": "1/10", "d": [True, None]}} in changed
    assert {"a": 1, "b": {"c": "11/10", "d": [True, None]}} in changed
    assert {"a": 1, "b": {"c": "1/10", "d": [False, None]}} in changed
    assert {"b": {"c": "1/10", "d": [True, None]}} in changed
    assert record not in changed


@pytest.mark.parametrize("error", [Refuted, ValueError, ArithmeticError, ZeroDivisionError, KeyError, AssertionError, OSError])
@pytest.mark.parametrize("place", [0, 2])
def test_whatever_a_check_raises_in_whichever_case_is_a_claim_that_does_not_hold(error: type[Exception], place: int) -> None:
    checks = Checklist()

    @checks("toy", number=(0, 1, 2))
    def _numbers_are_tried(bench: Bench, number: int) -> str:
        if number == place:
            raise error("so")
        return f"number {number}"

    [check] = checks
    found = check.run("toy")
    assert found.passed is False
    assert f"[number={place}]" in found.evidence
