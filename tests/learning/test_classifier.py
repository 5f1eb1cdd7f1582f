from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from learning.learning_samples import SCHEMA, people, points
from sabun.errors import BoundsError, BudgetExceeded, DataError, ParameterError, ReleaseError, SimulatedError
from sabun.learning import Card, PlainClassifier, PrivateClassifier, load_model, verify
from sabun.learning.accounting import price_in
from sabun.learning.card import surely, warnings_for
from sabun.ledger import Ledger
from sabun.privacy import Guarantee
from sabun.privacy.noise import discrete_laplace, os_coin
from sabun.privacy.renyi import pure_cost

QUICK: dict[str, Any] = {"sampling_rate": 0.2, "epochs": 3}
EVERY = {
    "dp-sgd": {"delta": 1e-4, **QUICK},
    "laplace-sgd": QUICK,
    "objective-perturbation": {},
    "anonymizing-first": {"n_synthetic": 300, "epochs": 2},
    "learning-first": {"hidden": (4,), "epochs": 1},
    "anonymized-learning": {"hidden": (4,), "batch_size": 100},
}


@pytest.mark.parametrize("method", EVERY)
def test_every_method_goes_from_a_frame_to_a_verified_folder(method: str, tmp_path: Path) -> None:
    frame, label = people()
    clf = PrivateClassifier(method=method, epsilon=1, schema=SCHEMA, classes=["no", "yes"], **EVERY[method]).fit(frame, label)
    assert set(clf.predict(frame)) <= {"no", "yes"}
    np.testing.assert_allclose(clf.predict_proba(frame).sum(axis=1), 1.0)
    assert clf.classes_.tolist() == ["no", "yes"]
    clf.save(tmp_path / "model", allow_per_parameter=True)
    assert "not above the promise" in verify(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert (model.predict(frame) == clf.predict(frame)).all()
    assert model.score(frame, label) == clf.score(frame, label)
    assert clf.guarantee_ == clf.release_.guarantee
    assert clf.guarantee_.cost[0] >= 1


def test_a_private_model_learns() -> None:
    frame, label = people(4000)
    clf = PrivateClassifier(epsilon=4, schema=SCHEMA, delta=1e-5).fit(frame, label)
    assert clf.score(*people(2000, seed=9)) > 0.85


def test_plain_numbers_as_they_come_are_learned() -> None:
    X, y = points(800)
    clf = PrivateClassifier(epsilon=1, delta=1e-4, hidden=(8,), **QUICK).fit(X, y)
    assert clf.classes_.tolist() == [0, 1]
    assert clf.n_features_in_ == 3
    assert any("taken from y" in words for words in clf.guarantee_.assumptions)


def test_a_seeded_model_is_not_private_and_cannot_be_saved(tmp_path: Path) -> None:
    clf = PrivateClassifier(delta=1e-3, random_state=1, **QUICK).fit(*points())
    assert clf.guarantee_.simulated
    assert "NOT PRIVATE" in clf.card_.randomness
    with pytest.raises(SimulatedError):
        clf.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_seeded_run_never_reaches_the_ledger(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", epsilon=3, delta=1e-3)
    with pytest.raises(SimulatedError, match="cannot be charged to a ledger"):
        PrivateClassifier(ledger=book, random_state=1).fit(*points())
    assert book.spent.epsilon == 0


@pytest.mark.parametrize(("relation", "epsilon"), [("replace-one", 2), ("add-remove", 2)])
def test_a_ledger_is_charged_what_was_asked_for_in_its_own_relation(relation: str, epsilon: int, tmp_path: Path) -> None:
    terms: dict[str, Any] = {"unit": "patient", "relation": relation, "epsilon": 3, "delta": 1e-3}
    book = Ledger.create(tmp_path / "book", name="book", accounting="sums", **terms)
    clf = PrivateClassifier(epsilon=epsilon, delta=1e-4, ledger=book, **QUICK).fit(*points())
    assert book.spent == (Fraction(epsilon), Fraction(1, 10**4))
    assert clf.guarantee_.relation == relation
    assert clf.guarantee_.unit == "patient"
    assert "each patient has at most one row" in clf.guarantee_.assumptions
    with pytest.raises(BudgetExceeded):
        PrivateClassifier(epsilon=2, delta=1e-4, ledger=book, **QUICK).fit(*points())
    assert book.spent.epsilon == epsilon


def test_the_charge_is_on_disk_before_the_first_step(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=1e-3)
    seen: list[Fraction] = []

    def listen(share: float, words: str) -> None:
        seen.append(Ledger.open(tmp_path / "book").spent.epsilon)

    PrivateClassifier(epsilon=1, delta=1e-4, ledger=book, progress=listen, **QUICK).fit(*points())
    assert seen
    assert set(seen) == {Fraction(1)}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("resumable", [False, True])
def test_training_states_its_steps_to_a_ledger_with_an_order(relation: str, resumable: bool, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="b", relation=relation, epsilon=3, delta="1e-3")
    checkpoint = tmp_path / "run" if resumable else None
    clf = PrivateClassifier(epsilon=0.5, delta=1e-4, ledger=book, checkpoint=checkpoint, **QUICK).fit(*points())
    [entry] = book.entries()
    assert entry.price == {"events": clf.card_.account["events"], "relation": "add-remove"}
    order = book.to_dict()["standing"]["shares"]["order"]
    owed = price_in(clf.card_.account).cost(order=order, steps=1 if relation == "add-remove" else 2)  # type: ignore[union-attr]
    stated = pure_cost(Fraction(1, 2), order=order)
    assert entry.tau == (stated if owed is None else min(owed.tau, stated))
    assert relation == "replace-one" or entry.form == "curve"
    PrivateClassifier(method="laplace-sgd", epsilon=0.5, ledger=book, **QUICK).fit(*points())
    assert book.entries()[1].price is None
    book.verify()


def test_a_local_ledger_is_refused(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="local", epsilon=3)
    with pytest.raises(ParameterError, match="ledger must be kept for add-remove or replace-one neighbours"):
        PrivateClassifier(ledger=book).fit(*points())


@pytest.mark.parametrize("method", ["objective-perturbation", "learning-first", "anonymized-learning"])
def test_a_ledger_whose_neighbours_the_method_knows_nothing_about_is_refused_at_once(method: str, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3)
    with pytest.raises(ParameterError, match="ledger must be kept for replace-one neighbours, the only ones this promise is"):
        PrivateClassifier(method=method, ledger=book)


def test_a_retry_key_brings_the_same_model_back_whatever_table_is_named(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=1e-3)
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-4, "ledger": book, "retry_key": "monday"} | QUICK
    X, y = points()
    with pytest.warns(UserWarning, match="read off y"):
        first = PrivateClassifier(**asked).fit(X, np.where(y, "yes", "no"))
    with pytest.warns(UserWarning, match="read off y"):  # such labels are no public fact: others have the same key
        again = PrivateClassifier(**asked).fit(-X, np.where(y, "ja", "nein"))
    assert again.release_.to_json() == first.release_.to_json()
    assert again.card_ == first.card_
    assert again.classes_.tolist() == ["no", "yes"]
    assert (again.predict(X) == first.predict(X)).all()
    again.save(tmp_path / "model")
    assert "not above the promise" in verify(tmp_path / "model")
    assert book.spent.epsilon == 1
    with pytest.raises(ParameterError, match="key must be new for another guarantee or purpose"):
        PrivateClassifier(**asked | {"epsilon": 2}).fit(X, y)
    with pytest.raises(ParameterError, match="must be left out when there is no ledger"):
        PrivateClassifier(**asked | {"ledger": None}).fit(X, y)


def test_a_large_delta_is_warned_about_where_there_is_no_noisy_count() -> None:
    frame, label = people(50)
    clf = PrivateClassifier(
        method="anonymizing-first", epsilon=4, delta=0.3, schema=SCHEMA, classes=sorted(set(label)), n_synthetic=50
    )
    with pytest.warns(UserWarning, match=r"delta 0\.3 is not below one over the number of records in a table of 4 or more"):
        clf.fit(frame, label)
    assert any("in a table of 4 or more" in words for words in clf.card_.warnings)


def test_delta_must_be_below_one_over_a_public_number_of_records() -> None:
    X, y = points(200)
    with pytest.raises(ParameterError, match=r"delta must be below 1/200"):
        PrivateClassifier(delta=0.01, relation="replace-one", **QUICK).fit(X, y)
    with pytest.raises(ParameterError, match=r"delta must be below 1/50"):
        PrivateClassifier(delta=0.02, n_public=50, **QUICK).fit(X, y)


def test_a_delta_near_one_over_a_public_number_of_records_is_warned_about_in_the_card() -> None:
    near, far = (
        Guarantee(epsilon=1, delta=delta, relation="add-remove", unit="record", mechanism="m") for delta in ("0.001", "0.0002")
    )
    [words] = warnings_for(near, 400)
    assert words.startswith("delta 0.001 is above a tenth of one over the number of records (400)")
    assert not warnings_for(far, 400)
    assert not warnings_for(near, None)  # nobody may learn a private number of records from a warning
    clf = PrivateClassifier(method="anonymized-learning", hidden=(), delta="1/1000").fit(*points(400))
    assert any(words.startswith("delta 0.001 is above a tenth") for words in clf.card_.warnings)


def test_a_model_that_diverged_says_so_and_can_still_be_read(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"learning_rate": 1e6, "hidden": (8, 8, 8), "n_synthetic": 500}
    frame, label = people(100)
    clf = PrivateClassifier(method="anonymizing-first", schema=SCHEMA, **settings).fit(frame, label)
    assert any("training diverged" in words for words in clf.card_.warnings)
    clf.save(tmp_path / "model")
    assert "not above the promise" in verify(tmp_path / "model")


def test_errors_about_tables_name_no_number_of_rows() -> None:
    X, y = points(50)
    with pytest.raises(DataError, match="X and y must have as many rows as each other; they do not") as found:
        PrivateClassifier(**QUICK).fit(X, y[:-1])
    assert "50" not in str(found.value)
    with pytest.raises(DataError, match="y must have one dimension; got 2"):
        PrivateClassifier(**QUICK).fit(X, np.stack([y, y], axis=1))
    with pytest.raises(DataError, match="y must hold at least two classes"):
        PrivateClassifier(**QUICK).fit(X, np.zeros(50))
    clf = PrivateClassifier(delta=1e-3, **QUICK).fit(X, y)
    with pytest.raises(DataError, match="X has 2 features, but PrivateClassifier is expecting 3 features"):
        clf.predict(X[:, :2])


def test_text_without_a_schema_is_refused() -> None:
    frame, label = people(20)
    with pytest.raises(BoundsError, match="schema must list the categories of columns that hold text"):
        PrivateClassifier(**QUICK).fit(frame, label)
    with pytest.raises(BoundsError, match="schema must be given for 'anonymizing-first'"):
        PrivateClassifier(method="anonymizing-first").fit(*points())


def test_more_than_two_classes_need_another_method() -> None:
    X, _ = points(60)
    with pytest.raises(ParameterError, match=r"number of classes must be 2 for 'objective-perturbation'; got 3. Use"):
        PrivateClassifier(method="objective-perturbation").fit(X, np.arange(60) % 3)
    with pytest.raises(ParameterError, match="regularization must be large enough to leave some epsilon"):
        PrivateClassifier(method="objective-perturbation", regularization=0.01).fit(X, np.arange(60) % 2)


def test_single_precision_learns_as_well_and_says_what_it_costs() -> None:
    X, y = points(2000)
    clf = PrivateClassifier(epsilon=4, delta=1e-4, precision="single", **QUICK).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert any("32-bit" in words for words in clf.guarantee_.assumptions)


def test_an_unfitted_model_says_so() -> None:
    with pytest.raises(NotFittedError, match="must be fitted first"):
        PrivateClassifier().predict([[1.0]])
    with pytest.raises(ParameterError, match="sample_weight must be None"):
        PrivateClassifier(delta=1e-3, random_state=1, **QUICK).fit(*points()).score(*points(), sample_weight=[1.0])


def test_a_per_parameter_promise_is_not_handed_over_by_accident(tmp_path: Path) -> None:
    frame, label = people(100)
    clf = PrivateClassifier(method="learning-first", hidden=(2,), epochs=1, schema=SCHEMA).fit(frame, label)
    with pytest.raises(ParameterError, match="allow_per_parameter must be True to hand over") as found:
        clf.save(tmp_path / "model")
    assert "epsilon 22" in str(found.value)
    clf.save(tmp_path / "model", allow_per_parameter=True)
    assert any("above 10" in words for words in clf.card_.warnings)
    assert clf.guarantee_.joint_epsilon == 22


def test_joint_epsilon_is_solved_for() -> None:
    frame, label = people(100)
    for method in ("learning-first", "anonymized-learning"):
        clf = PrivateClassifier(method=method, hidden=(2,), epochs=1, schema=SCHEMA, joint_epsilon=3, batch_size=50)
        assert clf.fit(frame, label).guarantee_.joint_epsilon == 3


def test_the_synthetic_table_is_a_product_of_its_own(tmp_path: Path) -> None:
    frame, label = people(300)
    clf = PrivateClassifier(method="anonymizing-first", schema=SCHEMA, n_synthetic=200, epochs=1).fit(frame, label)
    table = clf.synthetic_
    assert len(table) == 200
    assert table.to_frame().columns.tolist() == ["age", "income", "sex", "town", "label"]
    for name in ("people.csv", "people.parquet"):
        table.save(tmp_path / name)
        assert json.loads((tmp_path / f"{name}.release.json").read_text())["guarantee"]["epsilon"] == "1"
    with pytest.raises(ParameterError, match=r"path must end in .csv or .parquet; got 'x.txt'"):
        table.save(tmp_path / "x.txt")
    with pytest.raises(DataError, match="exists already"):
        table.save(tmp_path / "people.csv")


@pytest.mark.parametrize("synthesis", ["microaggregation", "histogram"])
def test_the_papers_own_readings_run(synthesis: str) -> None:
    frame, label = people(300)
    clf = PrivateClassifier(
        method="anonymizing-first",
        synthesis=synthesis,
        schema=SCHEMA,
        bins=4,
        group_size=50,
        n_synthetic=100,
        epochs=1,
        epsilon=2,
    ).fit(frame, label)
    assert clf.guarantee_.epsilon == 2
    assert clf.predict(frame).shape == (300,)
    made = clf.synthetic_.to_frame()
    assert made.columns.tolist() == ["age", "income", "sex", "town", "label"]
    assert len(made) == (300 if synthesis == "microaggregation" else 100)
    assert made["age"].between(0, 100).all()
    assert set(made["label"]) <= {"no", "yes"}


def test_a_plan_costs_nothing_and_knows_the_price() -> None:
    plan = PrivateClassifier(epsilon=1, delta=1e-5, hidden=(64, 64), **QUICK).plan(n_records=10_000, n_features=20)
    assert plan.n_weights == 21 * 64 + 65 * 64 + 65 * 2
    assert plan.joint_epsilon == "1"
    assert plan.noise_multiplier is not None
    assert "steps" in str(plan)
    assert json.dumps(plan.to_dict())
    assert PrivateClassifier(method="learning-first", hidden=()).plan(n_records=5, n_features=3).joint_epsilon == "8"
    with pytest.raises(ParameterError, match="n_features must be given when there is no schema"):
        PrivateClassifier().plan(n_records=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("saved") / "model"
    PrivateClassifier(delta=1e-3, **QUICK).fit(*points()).save(place)
    return place


@pytest.mark.parametrize("name", ["model.safetensors", "card.json", "release.json"])
def test_a_changed_or_missing_file_is_noticed(name: str, folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = bytearray((tmp_path / name).read_bytes())
    content[-20] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ReleaseError):
        verify(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ReleaseError, match="must be a readable file"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": Fraction(1, 10), "joint_epsilon": None}, "the card must promise no less than its numbers prove"),
        ({"relation": "replace-one"}, "must be about the neighbours that its promise names"),
    ],
)
def test_a_card_that_promises_more_than_it_proves_is_refused(change: dict[str, Any], message: str, folder: Path) -> None:
    card = Card.from_json((folder / "card.json").read_bytes())
    forged = replace(card, guarantee=replace(card.guarantee, **change))
    with pytest.raises(ReleaseError, match=message):
        forged.check((folder / "model.safetensors").read_bytes())


def test_a_card_of_another_model_is_refused(folder: Path) -> None:
    card = Card.from_json((folder / "card.json").read_bytes())
    with pytest.raises(ReleaseError, match="its SHA-256 differs"):
        card.check(b"another model")
    with pytest.raises(ReleaseError, match="cannot be read"):
        replace(card, account={"rule": "weight-noise"}).check((folder / "model.safetensors").read_bytes())


def test_safetensors_are_what_the_library_reads(folder: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs the extra: pip install 'sabun[learning]'")
    tensors = safetensors.load_file(folder / "model.safetensors")
    assert tensors["0.weight"].shape == (2, 3)
    assert tensors["0.bias"].shape == (2,)


def test_a_saved_model_is_not_overwritten_by_accident(folder: Path) -> None:
    clf = PrivateClassifier(delta=1e-3, **QUICK).fit(*points())
    with pytest.raises(DataError, match="exists already"):
        clf.save(folder)


def test_adult_as_it_comes_is_accepted() -> None:
    from sabun.datasets import load_adult

    adult = load_adult()
    some = slice(0, 3000)
    clf = PrivateClassifier(schema=adult.schema, epsilon=2, delta=1e-5, **QUICK).fit(adult.data[some], adult.target[some])
    assert clf.predict(adult.data[:5]).shape == (5,)
    assert clf.classes_.tolist() == ["<=50K", ">50K"]


def test_polars_and_pyarrow_text_without_a_schema_is_refused_too() -> None:
    import polars as pl
    import pyarrow as pa

    for frame in (pl.DataFrame({"a": ["x", "y"]}), pa.table({"a": ["x", "y"]})):
        with pytest.raises(BoundsError, match="schema must list the categories"):
            PrivateClassifier(**QUICK).fit(frame, [0, 1])
    clf = PrivateClassifier(delta=1e-3, random_state=1, **QUICK).fit(pl.DataFrame({"a": [0.0, 1.0], "b": [1, 2]}), [0, 1])
    assert clf.n_features_in_ == 2


def test_a_stream_of_rows_is_read_once() -> None:
    frame, label = people(60)
    clf = PrivateClassifier(method="anonymizing-first", schema=SCHEMA, n_synthetic=50, epochs=1)
    clf.fit((frame.iloc[at : at + 20] for at in (0, 20, 40)), label)
    assert clf.predict(frame).shape == (60,)


def test_a_target_among_the_inputs_is_not_paid_for(tmp_path: Path) -> None:
    import polars as pl

    frame, _ = people(60)
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    for target in (frame["age"], frame["sex"], pl.Series("age", frame["age"].to_numpy())):
        for model in (PrivateClassifier(schema=SCHEMA, ledger=book, **QUICK), PlainClassifier(schema=SCHEMA)):
            with pytest.raises(ParameterError, match=r"schema must declare the inputs alone; got the target '(age|sex)' among"):
                model.fit(frame, target)
    assert book.entries() == ()


def test_labels_that_no_release_can_hold_show_before_the_charge(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="add-remove", epsilon=3, delta=0.1)
    X, y = points(60)
    with pytest.raises(DataError, match="y must hold labels that are text, whole numbers or booleans"):
        PrivateClassifier(ledger=book, epsilon=1, delta=1e-3).fit(X, [10**30 if label else 0 for label in y])
    assert book.entries() == ()


def test_a_noisy_count_is_released_and_warns_of_a_delta_too_large() -> None:
    X, y = points(900)  # the count is at least 50 + 173 but for one run in 10^12: 50 records make 0.02 too large
    with pytest.warns(
        UserWarning, match=r"delta 0.02 is not below one over the number of records \(at least \d+, by a noisy count"
    ):
        clf = PrivateClassifier(delta=0.02, epsilon=2, classes=[0, 1], **QUICK).fit(X, y)
    assert any("to publish a whole record in the clear" in words for words in clf.card_.warnings)
    quiet = PrivateClassifier(delta=1e-6, epsilon=2, classes=[0, 1], **QUICK).fit(X, y)
    assert quiet.card_.warnings == ()
    assert abs(quiet.release_["noisy_count"] - 900) < 1000  # Laplace of scale 25, but for one run in 10^17
    public = PrivateClassifier(delta=1e-6, epsilon=2, n_public=900, **QUICK).fit(X, y)
    assert "noisy_count" not in public.release_.value


def test_a_noisy_count_warns_only_of_records_that_its_noise_cannot_have_made_up() -> None:
    assert surely(68_730, Fraction(1, 20_000)) is None  # 351 records at epsilon 0.01, by chance
    assert surely(32_561, Fraction(1, 200)) == 32_561 - 1382
    assert surely(None, Fraction(0)) is None
    noise = [discrete_laplace(Fraction(20), coin=os_coin()) for _ in range(3000)]
    above = sum((surely(1000 + more, Fraction(1, 20)) or 0) > 1000 for more in noise)
    assert above <= 15  # at most 3 are to be expected; more than 15 once in 10^6 runs


def test_a_plan_warns_of_a_delta_too_large_for_the_records_one_expects() -> None:
    clf = PrivateClassifier(delta=0.02, epsilon=2, **QUICK)
    plan = clf.plan(n_records=2000, n_features=3)
    [words] = plan.warnings
    assert words.startswith("delta 0.02 is not below one over the number of records (2000)")
    assert f"Warning: {words}." in str(plan)
    assert plan.to_dict()["warnings"] == [words]
    assert PrivateClassifier(delta=1e-6, epsilon=2, **QUICK).plan(n_records=2000, n_features=3).warnings == ()
    with pytest.raises(ParameterError, match="delta must be below 1/2000"):
        PrivateClassifier(delta=0.3, relation="replace-one", **QUICK).plan(n_records=2000, n_features=3)
