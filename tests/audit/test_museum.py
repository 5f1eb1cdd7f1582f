"""Every mutant of the tests is an exhibit of the museum that comes with the package, which the museum leaves alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import sabun
from cli.terminal import exit_code
from sabun.audit.catalogue import catalogue
from sabun.audit.museum import Caught, Exhibit, exhibits, order_of, tour
from sabun.audit.tour import DIGESTS, RESTING, asked, key_of
from sabun.errors import InternalError, ParameterError

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(sabun.__file__).parent


@pytest.fixture(scope="module")
def gathering() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import museum
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return museum


def test_the_package_holds_every_mutant_of_the_tests(gathering: Any) -> None:
    told = json.loads((PACKAGE / "audit" / "exhibits.json").read_text(encoding="utf-8"))
    assert told == [one.to_dict() for one in gathering.listed()], "run: python tools/museum.py --search"


def test_the_page_tells_what_was_found(gathering: Any) -> None:
    assert (ROOT / "docs" / "museum.md").read_text(encoding="utf-8") == gathering.page(), "run: python tools/museum.py --page"


def test_words_are_about_exhibits_that_are_there(gathering: Any) -> None:
    words = gathering.tomllib.loads(gathering.WORDS.read_text(encoding="utf-8"))
    names = {f"{one.room}: {one.name}" for one in exhibits()}
    assert set(words["history"]) | set(words["test"]) <= names


def test_each_exhibit_fits_and_is_caught_or_explained() -> None:
    for one in exhibits():
        assert one.applied((PACKAGE / one.file).read_text(encoding="utf-8"))
        assert one.line() > 0
        assert one.caught or (one.reason and one.test), f"{one.room}: {one.name}"


def test_the_audit_catches_most_of_them() -> None:
    """Without the digests of proofs, which would notice any change."""
    caught = [one.caught for one in exhibits() if one.caught]
    assert len(caught) >= 80
    assert all(one.mechanism != "proofs" for one in caught)
    assert sum(bool(one.history) for one in exhibits()) >= 30


def test_no_digest_of_a_proof_is_asked() -> None:
    told = {key_of(one) for one in catalogue()} - set(asked())
    assert {claim for _, name, claim in told if name != DIGESTS} >= {RESTING}
    assert not [key for key in asked() if DIGESTS in key or RESTING in key]


def files() -> str:
    whole = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def test_a_fault_is_noticed_in_a_copy_and_a_harmless_change_gets_away() -> None:
    room, mechanism, claim = next(key for key in order_of(exhibits("summaries")[0]) if key[2].startswith("noise of one answer"))
    real = next(one for one in exhibits("summaries") if one.name == "noise for 2 epsilon")
    real = dataclasses.replace(real, caught=Caught(room=room, mechanism=mechanism, claim=claim, seconds=0.0))
    harmless = dataclasses.replace(real, name="nothing wrong", edits=((real.edits[0][0], f"{real.edits[0][0]} "),))
    before = files()
    walk = tour([real, harmless])
    assert files() == before
    assert [sight.caught is not None for sight in walk.sights] == [True, False]
    assert not walk.passed, "what was caught before is not caught any more"
    assert walk.to_dict()["caught"] == 1
    assert walk.not_tried == 0
    assert "REFUTED" in walk.sights[0].evidence


def test_a_check_that_fails_without_a_fault_is_no_catch() -> None:
    """Its name is not in the catalogue, so it fails wherever it is asked."""
    real = exhibits("summaries")[0]
    caught = Caught(room="summaries", mechanism="no such", claim="no such", seconds=0.0)
    with pytest.raises(InternalError, match="the unbroken copy must pass"):
        tour([dataclasses.replace(real, caught=caught)])


def test_a_search_asks_the_room_of_a_fault_its_own_module_first() -> None:
    def of(file: str) -> Exhibit:
        return Exhibit(room="x", name="x", file=file, edits=())

    order = order_of(of("learning/laplace_sgd.py"))
    assert {room for room, _, _ in order} == {"learning"}
    assert "laplace-sgd" in order[0][1]
    assert order_of(of("ledger/row.py"))[0][0] == "ledger"
    assert not [key for key in order_of(of("privacy/renyi.py")) if key[1] == "proofs"]
    assert {key[0] for key in order_of(of("checks.py"))} == {"privacy", "release", "ledger"}, "a module of no part"


def test_a_fault_that_no_check_is_known_to_notice_is_told_as_not_tried() -> None:
    unknown = dataclasses.replace(exhibits("summaries")[0], caught=None, reason="Not searched yet.")
    walk = tour([unknown])
    assert (walk.caught, walk.not_tried, walk.to_dict()["not_tried"]) == (0, 1, 1)


def test_an_exhibit_of_another_version_is_refused() -> None:
    with pytest.raises(InternalError, match="must stand there once"):
        exhibits()[0].applied("another text")


def test_unknown_rooms_and_pages_of_the_museum_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="the museum must be asked for one of"):
        exhibits("kitchen")
    for words in (["kitchen"], ["--html", str(tmp_path / "page.html")]):
        assert exit_code("audit", "--museum", *words) == 2
        assert "must be" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def fresh(gathering: Any) -> Any:
    del gathering  # whose imports it shares
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import faults_fresh
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return faults_fresh


def test_every_fresh_fault_fits_and_the_first_run_is_kept_of_all_of_them(fresh: Any) -> None:
    for run in fresh.kept().values():
        shown = fresh.listed(run["list"])
        assert len(shown) == 60
        for one in shown:
            assert one.applied((PACKAGE / one.file).read_text(encoding="utf-8"))
        assert set(run["faults"]) == {one.name for one in shown}
        by = [one["noticed"] for one in run["faults"].values()]
        assert (run["audit"], run["tests"], run["survived"]) == (by.count("audit"), by.count("tests"), by.count(None))


def test_the_page_about_the_audit_tells_what_became_of_the_fresh_faults(fresh: Any) -> None:
    words = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert words.split() == fresh.page(words).split(), "run: python tools/faults_fresh.py --page"
