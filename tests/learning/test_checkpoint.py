from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import SCHEMA, people, points, problem
from sabun.errors import BudgetExceeded, DataError, LedgerError
from sabun.learning import PrivateClassifier, checkpoint, training
from sabun.learning.dpadam import DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.features import Features
from sabun.learning.methods import calibrated
from sabun.learning.poisson import PoissonPlan
from sabun.learning.run_files import only_one
from sabun.learning.stream import Stream
from sabun.learning.training import Data, Run, State, unheard
from sabun.ledger import Ledger
from sabun.ledger.reservation import Reservation
from sabun.records import Column, FileFormat, Schema

SETTINGS: dict[str, Any] = {"epsilon": 2, "delta": 1e-3, "sampling_rate": 0.2, "epochs": 3}


@pytest.fixture(autouse=True)
def _unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pricing the steps so far is tested elsewhere."""
    monkeypatch.setattr("sabun.learning.dpsgd.DpSgd.spent_after", lambda self, step: "0")


class Interrupted(Exception):
    pass


def stop_at(step: int) -> Any:
    def listen(share: float, words: str) -> None:
        if words.startswith(f"step {step} "):
            raise Interrupted

    return listen


def interrupt(folder: Path, *, step: int = 8, X: Any = None, y: Any = None, **changes: Any) -> None:
    rows, labels = points()
    with pytest.raises(Interrupted):
        PrivateClassifier(checkpoint=folder, progress=stop_at(step), **(SETTINGS | changes)).fit(
            rows if X is None else X, labels if y is None else y
        )


def saved(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.state").read_text().splitlines()[1]))


def forge(folder: Path, record: dict[str, Any], *, tag: str) -> None:
    """Another state: under the tag of the true one, under a right tag as only who has read the key can make it, or none."""
    file, body = folder / "run.state", json.dumps(record).encode()
    tags = {"stale": file.read_bytes().splitlines()[0], "right": checkpoint._tag(key_of(folder), body)}
    file.write_bytes(body if tag == "none" else tags[tag] + b"\n" + body)


def key_of(folder: Path) -> bytes:
    return (folder / "run.secret").read_bytes()


KINDS: dict[str, dict[str, Any]] = {
    "dp-sgd": SETTINGS,
    "laplace-sgd": {"epsilon": 2, "sampling_rate": 0.2, "epochs": 3},
    "anonymized-learning": {"epsilon": 2, "hidden": (4,), "epochs": 2, "batch_size": 70},
    "learning-first": {"epsilon": 2, "hidden": (4,), "epochs": 6},
    "objective-perturbation": {"epsilon": 2},
    "anonymizing-first": {"epsilon": 2, "schema": SCHEMA, "n_synthetic": 300, "epochs": 6, "hidden": ()},
    "microaggregation": {"epsilon": 2, "schema": SCHEMA, "group_size": 50, "hidden": ()},
}
KINDS["microaggregation"] |= {"method": "anonymizing-first", "synthesis": "microaggregation"}


def settings_of(kind: str) -> dict[str, Any]:
    return {"method": kind, "classes": ["no", "yes"] if "schema" in KINDS[kind] else [0, 1]} | KINDS[kind]


def table_of(kind: str, *, edited: bool = False) -> tuple[Any, Any]:
    """Rows with labels; the last row may be another one."""
    X, y = people(200) if "schema" in KINDS[kind] else points(200)
    if edited and "schema" in KINDS[kind]:
        X.loc[199, "age"] += 0.5
    elif edited:
        X[199, 0] += 0.5
    return X, y


def stop_after(calls: int) -> Any:
    left = [calls]

    def listen(share: float, words: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Interrupted

    return listen


def book_for(folder: Path, kind: str) -> Ledger:
    relation = "add-remove" if kind in ("dp-sgd", "laplace-sgd", "anonymizing-first") else "replace-one"
    return Ledger.create(folder / "book", name="book", relation=relation, epsilon=1000, delta=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_equals_the_uninterrupted_one_and_is_charged_once(kind: str, tmp_path: Path) -> None:
    book, run = book_for(tmp_path, kind), tmp_path / "run"
    calls = {"objective-perturbation": 1}.get(kind, 4)
    with pytest.raises(Interrupted):
        PrivateClassifier(checkpoint=run, ledger=book, progress=stop_after(calls), **settings_of(kind)).fit(*table_of(kind))
    charged, key = book.spent, key_of(run)
    resumed = PrivateClassifier(checkpoint=run, ledger=book, **settings_of(kind)).fit(*table_of(kind))
    assert book.spent == charged
    assert charged.epsilon == resumed.guarantee_.cost[0]
    # The uninterrupted run under the same key, from the beginning.
    clf = PrivateClassifier(**settings_of(kind))
    problem, data = clf._opened(clf._checked(), *table_of(kind))
    method = calibrated(clf._checked(), problem)
    *_, last = method.states(data, Stream(key), progress=unheard, start=method.first())
    whole = method.value(last)
    assert set(whole) <= set(resumed.release_.value)
    assert all(np.array_equal(np.asarray(resumed.release_[name]), whole[name]) for name in whole)


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_tells_what_was_spent_so_far(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.learning.dpsgd.DpSgd.spent_after", lambda self, step: str(step / 15))
    heard: list[tuple[float, str]] = []
    clf = PrivateClassifier(progress=lambda share, words: heard.append((share, words)), **settings_of(kind)).fit(
        *table_of(kind)
    )
    shares = [share for share, _ in heard]
    spent = [float(Fraction(words.rsplit("epsilon so far at most ", 1)[1])) for _, words in heard]
    assert shares == sorted(shares)
    assert spent == sorted(spent)
    assert spent[-1] <= clf.guarantee_.cost[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_row_is_refused_by_every_method(kind: str, tmp_path: Path) -> None:
    calls = {"objective-perturbation": 1}.get(kind, 4)
    with pytest.raises(Interrupted):
        PrivateClassifier(checkpoint=tmp_path, progress=stop_after(calls), **settings_of(kind)).fit(*table_of(kind))
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        PrivateClassifier(checkpoint=tmp_path, **settings_of(kind)).fit(*table_of(kind, edited=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_only_has_to_be_handed_over_is_computed_again_and_compared(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*parts: object) -> None:
        raise Interrupted

    with monkeypatch.context() as dying:
        dying.setattr(checkpoint.Draft, "filled", dies)
        with pytest.raises(Interrupted):
            PrivateClassifier(checkpoint=tmp_path, **settings_of(kind)).fit(*table_of(kind))
    record = saved(tmp_path)
    assert record["now"]["step"] == record["before"]["step"] + 1
    weights = np.frombuffer(base64.b64decode(record["now"]["weights"])).copy()
    forged = weights.copy()
    forged[0] = np.nextafter(forged[0], 9)
    changed = record | {"now": record["now"] | {"weights": base64.b64encode(forged.tobytes()).decode()}}
    forge(tmp_path, changed, tag="right")
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **settings_of(kind)).fit(*table_of(kind))
    forge(tmp_path, record, tag="right")
    clf = PrivateClassifier(checkpoint=tmp_path, **settings_of(kind)).fit(*table_of(kind))
    assert np.array_equal(clf.model_.weights, weights[: clf.model_.weights.size])


def test_one_run_is_charged_once_however_often_it_is_interrupted(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    for step in (3, 7, 12):
        interrupt(tmp_path / "run", step=step, ledger=book)
    clf = PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert book.spent.epsilon == 2
    assert clf.release_.provenance.receipt is not None
    assert clf.release_.provenance.receipt.entry == 1
    book.verify()


def test_an_uninterrupted_run_commits_its_result(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert [entry.state for entry in book.entries()] == ["committed"]


def test_the_key_is_for_the_owner_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    interrupt(tmp_path)
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "run.secret").stat().st_mode) == 0o600
    key = key_of(tmp_path).hex()
    clf = PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())
    assert not (tmp_path / "run.secret").exists()
    clf.save(tmp_path / "model")
    assert all(key not in (tmp_path / "model" / name).read_text() for name in ("card.json", "release.json"))


def edited() -> tuple[Any, Any]:
    rows, labels = points()
    rows = rows.copy()
    rows[17, 1] += 1e-9
    return rows, labels


def reordered() -> tuple[Any, Any]:
    rows, labels = points()
    order = np.r_[1, 0, 2 : len(rows)]
    return rows[order], labels[order]


def shortened() -> tuple[Any, Any]:
    rows, labels = points()
    return rows[:-1], labels[:-1]


@pytest.mark.parametrize("change", [edited, reordered, shortened])
def test_other_rows_are_refused(change: Any, tmp_path: Path) -> None:
    interrupt(tmp_path)
    with pytest.raises(DataError, match="must go on with the same data, settings, software and machine"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*change())


@pytest.mark.parametrize("change", [{"epsilon": 1}, {"clip_norm": 2.0}, {"learning_rate": 0.5}, {"momentum": 0.5}])
def test_other_settings_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    interrupt(tmp_path)
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **(SETTINGS | change)).fit(*points())


def test_other_threads_or_libraries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(State) if field.name != "step"])
def test_a_step_that_does_not_repeat_bit_for_bit_is_refused(part: str, tmp_path: Path) -> None:
    interrupt(tmp_path)
    record = saved(tmp_path)
    record["now"][part] = record["before"][part]
    forge(tmp_path, record, tag="right")
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


TWICE = '{"receipt": null, "receipt": null}'


@pytest.mark.parametrize("content", ["{}", "[]", "[" * 100_000, "a" * 64, '{"receipt": 5, "before": 1}', TWICE, "NaN"])
def test_a_damaged_file_is_refused(content: str, tmp_path: Path) -> None:
    interrupt(tmp_path)
    (tmp_path / "run.state").write_text(content)
    with pytest.raises(DataError, match="the checkpoint files must be whole; they cannot be read"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


def as_if_finished(folder: Path, *, weight: float) -> dict[str, Any]:
    """A state that claims to be the last one, with weights of the forger's choice."""
    record = saved(folder)
    weights = np.full(np.frombuffer(base64.b64decode(record["now"]["weights"])).shape, weight)
    last = record["now"] | {"step": 15, "weights": base64.b64encode(weights.tobytes()).decode()}
    return record | {"before": last, "now": last}


def test_a_state_that_the_run_did_not_write_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    book = book_for(tmp_path, "dp-sgd")
    interrupt(tmp_path / "run", ledger=book)
    forge(tmp_path / "run", as_if_finished(tmp_path / "run", weight=7.0), tag="stale")
    with pytest.raises(DataError, match=r"run.state must be as this run wrote it; it was changed since.*remove its first line"):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **SETTINGS).fit(*points())
    assert (tmp_path / "run" / "run.secret").exists()


@pytest.mark.parametrize("forged", [False, True])
def test_a_state_of_an_older_version_is_not_believed_but_its_run_goes_on_from_the_first_step(
    forged: bool, tmp_path: Path
) -> None:
    book, run = book_for(tmp_path, "dp-sgd"), tmp_path / "run"
    interrupt(run, ledger=book)
    shutil.copytree(run, tmp_path / "copy")
    shutil.copy(tmp_path / "book", tmp_path / "backup")
    expected = PrivateClassifier(checkpoint=run, ledger=book, **SETTINGS).fit(*points()).model_.weights
    shutil.copy(tmp_path / "backup", tmp_path / "book")
    run, book = tmp_path / "copy", Ledger.open(tmp_path / "book")
    forge(run, as_if_finished(run, weight=7.0) if forged else saved(run), tag="none")
    steps: list[str] = []
    with pytest.raises(DataError, match="must go on with the same data"):
        PrivateClassifier(checkpoint=run, ledger=book, **SETTINGS).fit(*edited())
    clf = PrivateClassifier(checkpoint=run, ledger=book, progress=lambda share, words: steps.append(words), **SETTINGS).fit(
        *points()
    )
    assert steps[0].startswith("step 1 ")
    assert np.array_equal(clf.model_.weights, expected)
    assert book.spent.epsilon == 2


def test_the_ledger_must_be_the_same_and_its_charge_open(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=9, delta=0.1)
    other = Ledger.create(tmp_path / "other", name="other", relation="add-remove", epsilon=9, delta=0.1)
    interrupt(tmp_path / "run", ledger=book)
    with pytest.raises(LedgerError, match="must hold the open charge of this run"):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=other, **SETTINGS).fit(*points())
    with pytest.raises(DataError, match="ledger must be given exactly when the interrupted run had one"):
        PrivateClassifier(checkpoint=tmp_path / "run", **SETTINGS).fit(*points())


@pytest.mark.skipif(os.name != "posix", reason="locks are a matter of POSIX")
def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    with only_one(tmp_path / "run.lock"), pytest.raises(DataError, match="must be used by one run at a time"):
        PrivateClassifier(checkpoint=tmp_path, **SETTINGS).fit(*points())


def test_a_place_where_no_folder_can_be_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    with pytest.raises(DataError, match="must be a folder that can be made; the system says"):
        PrivateClassifier(checkpoint=tmp_path / "file", ledger=book, **SETTINGS).fit(*points())
    assert book.spent.epsilon == 0


@pytest.mark.parametrize("kind", ["anonymized-learning", "learning-first", "anonymizing-first"])
def test_of_two_copies_of_a_folder_one_is_handed_over(kind: str, tmp_path: Path) -> None:
    book = book_for(tmp_path, kind)
    with pytest.raises(Interrupted):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, progress=stop_after(2), **settings_of(kind)).fit(
            *table_of(kind)
        )
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    PrivateClassifier(checkpoint=tmp_path / "run", ledger=book, **settings_of(kind)).fit(*table_of(kind))
    with pytest.raises(LedgerError, match="already handed over"):
        PrivateClassifier(checkpoint=tmp_path / "copy", ledger=book, **settings_of(kind)).fit(*table_of(kind))
    assert not (tmp_path / "copy" / "run.secret").exists()


def test_a_ledger_restored_from_before_the_charge_is_refused(tmp_path: Path) -> None:
    book = book_for(tmp_path, "dp-sgd")
    shutil.copy(tmp_path / "book", tmp_path / "backup")
    interrupt(tmp_path / "run", ledger=book)
    shutil.copy(tmp_path / "backup", tmp_path / "book")
    with pytest.raises(LedgerError, match="must hold the open charge of this run; it does not"):
        PrivateClassifier(checkpoint=tmp_path / "run", ledger=Ledger.open(tmp_path / "book"), **SETTINGS).fit(*points())


def test_a_ledger_restored_from_before_the_end_gives_out_the_same_bits_again(tmp_path: Path) -> None:
    interrupt(tmp_path / "run", ledger=book_for(tmp_path, "dp-sgd"))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    shutil.copy(tmp_path / "book", tmp_path / "backup")
    found = []
    for name in ("run", "copy"):
        clf = PrivateClassifier(checkpoint=tmp_path / name, ledger=Ledger.open(tmp_path / "book"), **SETTINGS).fit(*points())
        found.append(clf.model_.weights)
        shutil.copy(tmp_path / "backup", tmp_path / "book")
    assert np.array_equal(*found)


def dying(monkeypatch: pytest.MonkeyPatch, call: int) -> list[str]:
    """The machine dies before the call-th of the writes that matter; the list fills with what was written until then."""
    done: list[str] = []

    def watched(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def before(*given: Any, **named: Any) -> Any:
            if len(done) == call:
                raise Interrupted
            done.append(name)
            return real(*given, **named)

        monkeypatch.setattr(owner, name, before)

    watched(Ledger, "reserve")
    watched(Reservation, "commit")
    for name in ("_write_key", "write_whole", "_erase"):
        watched(checkpoint, name)
    return done


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("kind", ["laplace-sgd", "learning-first"])
def test_a_crash_between_any_two_writes_releases_at_most_once_for_each_charge(
    kind: str, resumed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in range(20):
        place = tmp_path / str(call)
        place.mkdir()
        book, results = book_for(place, kind), []

        def fit(place: Path = place, book: Ledger = book, results: list[Any] = results, **more: Any) -> None:
            clf = PrivateClassifier(checkpoint=place / "run", ledger=book, **settings_of(kind), **more).fit(*table_of(kind))
            results.append(clf.model_.weights)

        if resumed:
            with pytest.raises(Interrupted):
                fit(progress=stop_after(2))
        with monkeypatch.context() as machine:
            done = dying(machine, call)
            with contextlib.suppress(Interrupted):
                fit()
        if results:  # there were fewer writes than that
            break
        with contextlib.suppress(LedgerError, DataError):  # the result is out, or its key is gone
            fit()
        book.verify()
        assert not (place / "run" / "run.secret").exists()
        charges = sum(entry.epsilon > 0 for entry in book.entries())
        begun = [name for name in done if name != "_erase"]
        half = not resumed and begun in (["reserve"], ["reserve", "_write_key"])
        assert charges == (2 if half else 1)  # no run can go on before its first state is written
        assert len(results) == ("commit" not in done)  # the ledger has it, but nobody got it
    else:
        pytest.fail("not all writes were tried")


def test_another_processor_or_compiler_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        guarantee = "promise"

        def fingerprint(self) -> list[bytes]:
            return [training.makers()]

    def now() -> str:
        return checkpoint._fingerprint(bytes(32), Fake(), "purpose")  # type: ignore[arg-type]

    settings = {"OPENBLAS_CORETYPE": "Prescott", "NUMBA_CPU_NAME": "generic"}
    for name in settings:
        monkeypatch.delenv(name, raising=False)
    plain = now()
    for name, word in settings.items():
        with monkeypatch.context() as context:
            context.setenv(name, word)
            assert now() != plain
    installed = training.metadata.version
    for package in ("sabun", "numba", "llvmlite"):
        with monkeypatch.context() as context:
            context.setattr(training.metadata, "version", lambda name, it=package: "0" if name == it else installed(name))
            assert now() != plain
    assert now() == plain


def _others(value: Any) -> Any:
    """Another value of the same kind; None where nobody could tell which."""
    if isinstance(value, bool | str | None):
        return {True: False, False: True, None: 9}.get(value, f"{value} more")
    return value + 1 if isinstance(value, int | float | Fraction) else None


def test_whatever_makes_a_run_is_part_of_what_it_is_known_by() -> None:
    """The purpose, every setting of the method and of the problem behind it, every cell of every array."""
    given = problem()
    sampled: dict[str, Any] = {"plan": PoissonPlan.of(sampling_rate=0.5, epochs=2), "momentum": 0.9}
    common: dict[str, Any] = {"network": given.network(()), "clip_norm": 1.0, "learning_rate": 1.0}
    adam: dict[str, Any] = {"layered": given.network((3,)), "steps": 4, "standardize": True}
    rows, labels = np.arange(6.0).reshape(2, 3), np.array([0, 1])

    def known(method: Any, problem: Any = given, **parts: Any) -> tuple[bytes, ...]:
        data = Data(**({"rows": rows, "labels": labels, "table": rows} | parts))
        run = Run(name="m", method=dataclasses.replace(method, problem=problem), data=data, problem=problem)
        return tuple(run.fingerprint())

    for method in (DpSgd(problem=given, **common, **sampled), DpAdam(problem=given, **common, **adam)):
        found = [known(method)]
        for part in dataclasses.fields(method):
            value = getattr(method, part.name)
            if (other := _others(value)) is not None:
                found.append(known(dataclasses.replace(method, **{part.name: other})))
            elif dataclasses.is_dataclass(value) and part.name != "problem":
                inner = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
                changed = {
                    name: _others(each) if _others(each) is not None else (*each[:-1], 7) for name, each in inner.items()
                }
                found += [
                    known(dataclasses.replace(method, **{part.name: dataclasses.replace(value, **{name: each})}))
                    for name, each in changed.items()
                ]
        for part in dataclasses.fields(given):
            if (other := _others(getattr(given, part.name))) is not None and part.name != "persons":
                found.append(known(method, dataclasses.replace(given, **{part.name: other})))
        found += [known(method, **{name: array + 1}) for name, array in (("rows", rows), ("labels", labels), ("table", rows))]
        assert len(set(found)) == len(found) > 15
        assert training.makers() in found[0]
    run = Run(name="m", method=method, data=Data(rows=rows, labels=labels), problem=given)
    assert len({checkpoint._fingerprint(bytes(32), run, purpose) for purpose in ("one", "other")}) == 2


def test_a_run_tells_settings_that_came_after_its_version_only_where_they_are_used() -> None:
    """Interrupted runs of earlier versions know a schema by its repr: dates and forms of files must not show in it."""

    def told(schema: Schema) -> list[bytes]:
        given = dataclasses.replace(problem(), features=Features(schema=schema, names=schema.names))
        method = DpSgd(
            problem=given,
            network=given.network(()),
            plan=PoissonPlan.of(sampling_rate=0.5, epochs=1),
            clip_norm=1.0,
            learning_rate=1.0,
            momentum=0.9,
        )
        rows, labels = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
        return list(Run(name="dp-sgd", method=method, data=Data(rows=rows, labels=labels), problem=given).fingerprint())

    number = Column.number("when", lower=0, upper=1)
    plain, dated = Schema(columns=[number]), Schema(columns=[dataclasses.replace(number, dates=True)])
    other = dataclasses.replace(plain, file=FileFormat(separator=";"))
    assert "NumberColumn(name='when', lower=0.0, upper=1.0, missing=0.5, log1p=False)" in repr(dated)
    assert "file" not in repr(other)
    assert len({tuple(told(one)) for one in (plain, dated, other)}) == 3
    assert len(told(plain)) == 8  # the method, what makes its passes, three arrays with their shapes, and nothing else


def test_a_refused_budget_leaves_no_folder_behind(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon="1/100", delta=0.01)
    cheap: dict[str, Any] = {"epsilon": 1, "method": "noisy-centroids", "schema": SCHEMA, "classes": ["no", "yes"]}
    mine = tmp_path / "mine"
    mine.mkdir()
    for folder, stays in ((tmp_path / "new" / "run", False), (mine, True)):
        with pytest.raises(BudgetExceeded):
            PrivateClassifier(checkpoint=folder, ledger=book, **cheap).fit(*people(60))
        assert folder.exists() == stays
    assert not (tmp_path / "new").exists()
    assert not any(name.name.startswith("run.s") for name in mine.iterdir())


def test_a_lock_that_was_taken_away_while_it_was_held_locks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, real = tmp_path / "run.lock", fcntl.flock

    def slow(handle: int, how: int) -> None:
        real(handle, how)
        lock.unlink()
        lock.touch()

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(DataError, match="must be used by one run at a time"), only_one(lock):
        pass


@pytest.mark.parametrize("scaled", [False, True])
def test_a_caller_who_has_numpy_raise_hears_nothing_of_a_cell(scaled: bool, tmp_path: Path) -> None:
    """One cell beside the smallest float: what it is divided by underflowed, which told of it where runs can be continued."""
    rows = np.full((20, 40), 0.5)
    rows[3, 0] = 1e-308
    how = {"schema": Schema.of_bounds([(0, 1)] * 40), "classes": [0, 1], "n_public": 20, "hidden": (), "epochs": 3}
    with np.errstate(all="raise"):
        clf = PrivateClassifier(epsilon=1, delta=1e-5, standardize=scaled, checkpoint=tmp_path / "run", **how)
        clf.fit(rows, np.arange(20) % 2)
    assert clf.release_ is not None
