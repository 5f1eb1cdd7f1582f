"""Files of earlier versions open, verify, and go on: each folder beside this file was written by the version in its name.

Nothing here may be changed to suit a new version, except the words of `frozen.py` where a public name changed: a file that
somebody has does not change either.
"""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.terminal import exit_code
from corpus.frozen import (
    HERE,
    PUBLISHER,
    ask,
    carry_on,
    golden,
    network,
    processor,
    same_surroundings,
    table,
    unpacked,
)
from sabun import Guarantee, Ledger, Release, Schema
from sabun.density import DensityRatio
from sabun.errors import BudgetExceeded, DataError, ReleaseError
from sabun.keyvalue import Study as Collection
from sabun.keyvalue import Tally
from sabun.keyvalue.client import BudgetRefused, unpack
from sabun.learning import load_model, verify
from sabun.regression import PublicModel, Study, combine
from sabun.release import generate_key, load_key
from sabun.reports import report

VERSIONS = sorted(HERE.glob("v*"))
SAID = {version: golden(version) for version in VERSIONS}
CLOSE = 1e-6
OTHERWISE = ("dp-sgd", "laplace-sgd", "torch")
"""Runs whose steps this version computes in other numbers, under a promise that says so: it does not go on with them."""
ROUGH = 0.05
"""Where an estimator may be improved: what it reads off old files must not be anything else."""


def found(section: str, *, named_by: str = "") -> list[Any]:
    """The versions with each thing of a kind that they hold, as parameters."""
    cases = []
    for version in VERSIONS:
        things = SAID[version][section]
        named = things if isinstance(things, dict) else {thing[named_by]: thing for thing in things}
        cases += [pytest.param(version, thing | {"name": name}, id=f"{version.name} {name}") for name, thing in named.items()]
    return cases


@pytest.fixture
def folder(tmp_path: Path, version: Path) -> Path:
    return unpacked(version, tmp_path / version.name)


def publisher(folder: Path) -> Any:
    return load_key(folder / PUBLISHER)


def unsigned(path: Path) -> bytes:
    return dataclasses.replace(Release.load(path), signature=None).to_json()


def same(seen: Any, said: Any, within: float = CLOSE) -> bool:
    return np.allclose(np.array(seen, dtype=float), np.array(said, dtype=float), rtol=within, atol=within, equal_nan=True)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_every_frozen_file_is_spoken_of_and_tells_nothing_of_its_machine(version: Path, folder: Path) -> None:
    said = SAID[version]
    assert {path.name for path in (folder / "ledgers").iterdir()} == set(said["ledgers"])
    assert {path.name for path in (folder / "releases").iterdir()} == set(said["releases"])
    assert {path.name for path in (folder / "models").iterdir()} == set(said["models"])
    assert {path.name for path in (folder / "keyvalue").iterdir() if path.is_dir()} == set(said["keyvalue"])
    assert {f"runs/{path.name}" for path in (folder / "runs").iterdir()} == {run["folder"] for run in said["runs"]}
    paths = (b"/work", b"/tmp", b"/home", b"/root", b"/Users")
    assert [file for file in folder.rglob("*") if file.is_file() and any(path in file.read_bytes() for path in paths)] == []
    assert sum(file.stat().st_size for file in version.rglob("*") if file.is_file()) < 400 * 1024


@pytest.mark.parametrize(("version", "said"), found("ledgers"))
def test_a_ledger_verifies_shows_its_balance_and_takes_a_further_charge(folder: Path, said: dict[str, Any]) -> None:
    book = Ledger.open(folder / "ledgers" / said["name"])
    assert book.verify(expect_head=said["head_hash"]).head_hash == said["head_hash"]
    shown = book.to_dict()
    assert {name: shown[name] for name in ("unit", "relation", "budget", "spent", "remaining")} == {
        name: said[name] for name in ("unit", "relation", "budget", "spent", "remaining")
    }
    seen = [{name: entry[name] for name in kept} for entry, kept in zip(shown["entries"], said["entries"], strict=True)]
    assert seen == said["entries"]
    for entry in said["entries"]:
        book.verify(expect_head=entry["entry_hash"])
    before, promise = book.spent, {"relation": book.relation, "unit": book.unit}
    if book.relation == "local":
        promise |= {"model": "local"}
    with pytest.raises(BudgetExceeded):
        book.charge(Guarantee(epsilon=book.remaining.epsilon + 1, **promise), purpose="too much")
    book.charge(Guarantee(epsilon="1/100", **promise), purpose="one more")
    again = Ledger.open(folder / "ledgers" / said["name"])
    assert again.spent.epsilon == before.epsilon + Fraction(1, 100)
    assert again.verify(expect_head=said["head_hash"]).entries == len(said["entries"]) + 1


@pytest.mark.parametrize(("version", "said"), found("requests", named_by="release"))
def test_a_request_made_again_gets_the_identical_bytes_for_nothing(folder: Path, said: dict[str, Any]) -> None:
    book = Ledger.open(folder / said["ledger"])
    bytes_then, head = unsigned(folder / said["release"]), book.verify().head_hash
    receipt = Release.load(folder / said["release"]).provenance.receipt
    assert receipt is not None
    assert book.kept(receipt.entry) == bytes_then
    if "retry_key" in said["parameters"] or said.get("keyed_by_study"):
        assert ask(said, folder, book).release_.to_json() == bytes_then
        assert book.verify().head_hash == head


@pytest.mark.parametrize(("version", "said"), found("commands", named_by="release"))
def test_a_command_given_again_writes_the_identical_bytes_for_nothing(
    folder: Path, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    head = Ledger.open(said["ledger"]).verify().head_hash
    assert exit_code(*said["arguments"], "--ledger", said["ledger"], "--out", "again.json") == 0
    assert Path("again.json").read_bytes() == Path(said["release"]).read_bytes()
    assert Ledger.open(said["ledger"]).verify().head_hash == head


@pytest.mark.parametrize(("version", "said"), found("unfinished", named_by="ledger"))
def test_a_request_whose_result_never_came_is_paid_again_then_kept(folder: Path, said: dict[str, Any]) -> None:
    book = Ledger.open(folder / said["ledger"])
    before = book.spent.epsilon
    first = ask(said, folder, book)
    assert book.spent.epsilon == before + first.guarantee_.epsilon
    assert ask(said, folder, book).release_.to_json() == first.release_.to_json()
    assert book.spent.epsilon == before + first.guarantee_.epsilon
    purposes = {entry.purpose for entry in book.entries() if entry.key == said["parameters"]["retry_key"]}
    assert len(purposes) == 1


@pytest.mark.parametrize(("version", "said"), found("releases"))
def test_a_release_loads_verifies_and_is_reported(folder: Path, said: dict[str, Any], tmp_path: Path) -> None:
    path = folder / "releases" / said["name"]
    release = Release.load(path)
    assert release.provenance.kind == said["kind"]
    assert (str(release.guarantee.epsilon), str(release.guarantee.delta)) == (said["epsilon"], said["delta"])
    receipt = release.provenance.receipt
    assert (receipt and receipt.ledger_name, receipt and receipt.entry) == (said["ledger"], said["entry"])
    release.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    trusted = publisher(folder) if said["by_publisher"] else None
    if said["signed"]:
        assert release.verify(trusted).trusted is said["by_publisher"]
        with pytest.raises(ReleaseError):
            release.verify(generate_key().public_key())
    page = report(release, trusted=trusted)
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("version", "said"), found("schemas"))
def test_a_schema_has_the_hash_that_releases_name(folder: Path, said: dict[str, Any]) -> None:
    schema = Schema.load(folder / said["name"])
    assert schema.hash == said["hash"]
    schema.save(folder / "again.json")
    assert Schema.load(folder / "again.json") == schema


@pytest.mark.parametrize(("version", "said"), found("densities", named_by="release"))
def test_weights_answer_as_they_did(folder: Path, said: dict[str, Any]) -> None:
    weights = DensityRatio.restore(folder / said["release"], public=table(folder, said["public"]))
    for column, answer in said["answers"].items():
        asked = weights.query(column)
        assert same(asked.estimate, answer)
        assert asked.interval is None or asked.interval[0] <= asked.estimate <= asked.interval[1]


@pytest.mark.parametrize(("version", "said"), found("regressions", named_by="label"))
def test_regression_releases_combine_as_they_did(folder: Path, said: dict[str, Any]) -> None:
    if "model" in said:
        model, within = PublicModel.load(folder / said["model"]), CLOSE
    else:
        paths = [folder / path for path in said["releases"]]
        model, within = combine(paths, study=Study.load(folder / said["study"]), method=said["method"]), ROUGH
    assert same(model.coef_, said["coef"], within)
    assert same(model.intercept_, said["intercept"], within)


@pytest.mark.parametrize(("version", "said"), found("keyvalue"))
def test_reports_and_tallies_of_a_collection_add_up_to_its_estimates(
    folder: Path, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder / "keyvalue" / said["name"])
    study, seed = Collection.load("study.json"), bytes.fromhex(said["seed"])
    assert (study.task_id, str(study.guarantee.epsilon)) == (said["task_id"], said["epsilon"])
    for half in ("first.tally", "second.tally"):
        assert Tally.load(half, study=study, seed=seed).to_bytes() == Path(half).read_bytes()
    whole = Tally.load("first.tally", study=study, seed=seed).merge(Tally.load("second.tally", study=study, seed=seed))
    for name in ("plus", "minus", "total"):
        assert getattr(whole.counts(), name).tolist() == said[name]
    seeded = ("--index-seed", said["seed"]) if seed else ()
    assert exit_code("keyvalue", "tally", "study.json", "reports.bin", "reports.jsonl", *seeded, "--out", "all", "--json") == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["accepted"], outcome["repeated"], outcome["rejected"]) == (said["reports"], said["reports"], [])
    assert Tally.load("all", study=study, seed=seed) == whole
    for method, rows in said["estimates"].items():
        estimates = whole.estimate(method)
        assert same(estimates.frequency, rows["frequency"])
        assert same(estimates.mean, rows["mean"])
    whole.add(study.client(seed=seed).report({"LINE": 0.5}))
    assert whole.n == said["reports"] + 1


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_diary_repeats_its_answer_and_goes_on(version: Path, folder: Path) -> None:
    said = SAID[version]["diary"]
    study = Collection.load(folder / said["study"])
    device = study.client(diary=folder / said["file"])
    spent = Fraction(said["spent"])
    assert device.report({"LINE": 1.0}).hex() == said["report"]
    assert device.spent == spent
    with pytest.raises(BudgetRefused):
        study.client(diary=folder / said["file"], max_epsilon=spent).report(said["held"], round=1)
    later = unpack(study.terms, device.report(said["held"], round=1))
    assert later.symbol == unpack(study.terms, bytes.fromhex(said["report"])).symbol
    assert device.spent == spent + study.guarantee.epsilon


@pytest.mark.parametrize(("version", "said"), found("models"))
def test_a_model_folder_verifies_and_predicts_as_it_did(folder: Path, said: dict[str, Any]) -> None:
    place, key = folder / "models" / said["name"], publisher(folder)
    sentence = verify(place, public_key=key if said["signed"] else None)
    if said["signed"]:
        assert Release.load(place / "release.json").verify(key).fingerprint in sentence
    rows = table(folder, said["rows"])[:8]
    assert same(torch_scores(place, rows) if said["torch"] else load_model(place).predict_proba(rows), said["scores"])
    raw = bytearray((place / "model.safetensors").read_bytes())
    raw[-1] ^= 1
    (place / "model.safetensors").write_bytes(raw)
    with pytest.raises(ReleaseError):
        verify(place)


def torch_scores(place: Path, rows: Any) -> Any:
    torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
    files = pytest.importorskip("safetensors.torch", reason="needs the extra: pip install 'sabun[learning]'")
    module, weights = network(), files.load_file(place / "model.safetensors")
    state = torch.load(place / "state_dict.pt", weights_only=True)
    assert all(torch.equal(state[name], weights[name]) for name in weights)
    module.load_state_dict(weights)
    with torch.no_grad():
        return module.eval()(torch.from_numpy(rows.astype(np.float32))).numpy()


@pytest.mark.parametrize(("version", "said"), found("runs", named_by="folder"))
def test_an_interrupted_run_is_finished_at_no_further_cost(
    version: Path, folder: Path, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = said["class"] == "TorchTrainer"
    if torch:
        pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
    here, book = processor(), Ledger.open(folder / said["ledger"])
    spent, run = book.spent, folder / said["folder"]
    same_surroundings(monkeypatch, torch=torch)
    try:
        done = carry_on(said, folder, book, checkpoint=run)
    except DataError as error:
        told = str(error)
        assert book.spent == spent
        if run.name.startswith(OTHERWISE):
            assert "must go on with the same data, settings, software and machine" in told
            return
        if not said["anywhere"] and here != SAID[version]["processor"]:
            pytest.skip("a step or a price is computed again to the last bit, and other libraries or processors may round it")
        raise
    assert book.spent == spent
    assert done.release_.provenance.receipt.entry_hash in {entry.entry_hash for entry in book.entries()}
    assert not (run / "run.secret").exists()
    book.verify(expect_head=SAID[version]["ledgers"][Path(said["ledger"]).name]["head_hash"])
