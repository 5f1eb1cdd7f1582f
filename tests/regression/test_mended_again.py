"""What another hostile reading broke; each case stays here."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
import types
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.test_exchange import EAST, NORTH, STUDY
from regression.worlds import CLINIC, clinic, totals
from sabun.errors import BoundsError, DataError, ReleaseError
from sabun.ledger import Ledger
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study, combine
from sabun.regression.carrier import write_app
from sabun.regression.contribution import read_one
from sabun.regression.evaluation import coverage
from sabun.regression.intervals import half_lengths
from sabun.regression.paper import least_delta
from sabun.regression.pooling import pooled, pull_of
from sabun.regression.promise import guarantee_of
from sabun.regression.simulation import simulated_study, world
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import sums_of
from sabun.release import Release, generate_key


def test_two_releases_of_one_table_promise_what_the_ledger_booked(tmp_path: Path) -> None:
    """The ledger had booked 10, the joined release promised 5."""
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=10, delta="1e-5", unit="patient")
    releases = [PrivateRidge(**CLINIC, epsilon=5, ledger=book).fit(*clinic(300)).release_ for _ in range(2)]
    promise = combine(releases).release().guarantee  # type: ignore[union-attr]
    assert (promise.epsilon, promise.delta) == (book.spent.epsilon, book.spent.delta) == (10, Fraction(2, 10**6))


def test_a_copy_under_another_name_is_still_a_copy() -> None:
    keys = {name: generate_key() for name in ("a", "b")}
    study = Study(
        features=Schema.of_bounds([(-1, 1)]),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=1,
        name="s",
        organisations={name: key.public_key() for name, key in keys.items()},
    )
    first = PrivateRidge(study=study, organisation="a", key=keys["a"]).fit(np.zeros((5, 1)), np.zeros(5)).release_
    copied = dataclasses.replace(first, value=dict(first.value) | {"organisation": "b"}, signature=None).sign(keys["b"])
    with pytest.raises(ReleaseError, match="each organisation must send one release; 'b' sent two, or a copy of another's"):
        combine([first, copied], study=study)


def model_file(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    model = combine([PrivateRidge(**CLINIC, epsilon=5).fit(*clinic(300)).release_])
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").conf_int().tolist() == model.conf_int().tolist()
    return tmp_path / "m.json", json.loads((tmp_path / "m.json").read_text())


def promised(**facts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: [promise.update(facts) for promise in record["guarantees"]] and None


@pytest.mark.parametrize(
    "change",
    [
        promised(epsilon="1/1000", joint_epsilon="1/1000"),
        promised(unit="visit"),
        promised(relation="add-remove"),
        promised(simulated=True),
        lambda record: record.update(beta=[float("nan")] * 3),
        lambda record: record.update(covariance=[[float("inf")] * 3] * 3),
        lambda record: record.update(covariance=(-np.eye(3)).tolist()),
        lambda record: record.update(error=(-np.eye(3)).tolist()),
        lambda record: record.update(error=np.triu(np.ones((3, 3))).tolist()),
        lambda record: record.update(error=None),
        lambda record: record.update(variance=-1),
        lambda record: record["doubt"].update(spread=2),
        lambda record: record["doubt"].update(spread=float("nan")),
        lambda record: record["doubt"].update(slope=None),
        lambda record: record["doubt"].update(slope=(-np.eye(3)).tolist()),
        lambda record: record["doubt"].update(variances=[]),
        lambda record: record["doubt"].update(variances=[-0.1]),
        lambda record: record["doubt"].update(variances=[[0.1]]),
        lambda record: record["doubt"].update(variances=[0.1] * 2000),
        lambda record: record.update(doubt=[]),
        lambda record: record.update(method="guard"),
        lambda record: record["study"].update(mechanism="paper", ridge="1"),
        lambda record: record["study"].update(epsilon="1/1000"),
    ],
)
def test_a_model_file_must_be_possible_and_promise_what_its_study_does(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """A file that said epsilon 1/1000 under a study of 5 was believed, and published again."""
    path, record = model_file(tmp_path)
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"must be a model file written by PublicModel\.save; it is not"):
        PublicModel.load(path)


def test_a_model_file_of_a_study_names_its_organisations_once(tmp_path: Path) -> None:
    model = combine([NORTH, EAST], study=STUDY)
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").release().guarantee == NORTH.guarantee
    for names in (["north", "north"], ["north", "nobody"]):
        record = json.loads((tmp_path / "m.json").read_text()) | {"organisations": names}
        (tmp_path / "n.json").write_text(json.dumps(record))
        with pytest.raises(DataError, match="must be a model file"):
            PublicModel.load(tmp_path / "n.json")


def test_releases_of_other_terms_still_make_a_model_that_can_be_read(tmp_path: Path) -> None:
    releases = [PrivateRidge(**CLINIC, epsilon=e, delta=d).fit(*clinic(300)).release_ for e, d in ((2, "1e-6"), (3, "1e-7"))]
    model = combine(releases)
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").release().guarantee.epsilon == 5


@pytest.mark.parametrize("rows", [[], [[0.1, 0.2]]])
def test_the_records_of_a_list_do_not_decide_how_many_coefficients_there_are(rows: list[list[float]]) -> None:
    """Under add-remove an empty list gave one coefficient, its neighbour two."""
    targets = [0.1] * len(rows)
    terms: dict[str, Any] = {"epsilon": 1, "y_bounds": (-1, 1), "relation": "add-remove"}
    with pytest.raises(BoundsError, match="x_bounds must hold a pair for each column where X is a list of rows; got one pair"):
        PrivateRidge(x_bounds=(-1, 1), **terms).fit(rows, targets)
    fitted = PrivateRidge(x_bounds=[(-1, 1)] * 2, **terms).fit(rows, targets)
    assert fitted.coef_.shape == (2,)
    assert fitted.study_.hash == PrivateRidge(x_bounds=(-1, 1), **terms).fit(np.zeros((0, 2)), np.zeros(0)).study_.hash


@pytest.fixture
def server_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The coordinator's half of the carrier, with nothing but names where Flower stands."""
    app, serverapp = types.ModuleType("flwr.app"), types.ModuleType("flwr.serverapp")
    for name in ("Context", "Message", "RecordDict"):
        setattr(app, name, type(name, (), {"__init__": lambda self, *a, **k: None}))
    app.MessageType = types.SimpleNamespace(QUERY="query")  # type: ignore[attr-defined]
    serverapp.Grid = object  # type: ignore[attr-defined]
    serverapp.ServerApp = lambda: types.SimpleNamespace(main=lambda: lambda made: made)  # type: ignore[attr-defined]
    for name, module in (("flwr", types.ModuleType("flwr")), ("flwr.app", app), ("flwr.serverapp", serverapp)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(str(write_app(tmp_path / "app")))
    for name in ("sabun_carrier", "sabun_carrier.server_app"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("sabun_carrier.server_app")


def reply(records: object, *, error: bool = False) -> Any:
    return types.SimpleNamespace(content=types.SimpleNamespace(config_records=records), has_error=lambda: error)


def carried(server_app: Any, folder: Path, *replies: Any) -> list[bytes]:
    grid = types.SimpleNamespace(
        get_node_ids=lambda: range(len(replies)), send_and_receive=lambda questions, timeout: list(replies)
    )
    server_app.main(grid, types.SimpleNamespace(run_config={"inbox": str(folder), "nodes": len(replies)}))
    return sorted(path.read_bytes() for path in folder.iterdir())


def test_one_odd_reply_does_not_lose_the_others(server_app: Any, tmp_path: Path) -> None:
    """A reply without an outbox ended the run, and what came after it was lost."""
    odd = [reply({}), reply({"outbox": {"contents": 5}}), reply(None), reply({"outbox": {"contents": [5, "x"]}})]
    good = reply({"outbox": {"contents": [b"{}"]}})
    broken = reply({"outbox": {"contents": [b"lost"]}}, error=True)
    assert carried(server_app, tmp_path / "inbox", *odd, broken, good) == [b"{}"]


def test_one_node_cannot_fill_the_inbox(server_app: Any, tmp_path: Path) -> None:
    many = reply({"outbox": {"contents": [b"%d" % number for number in range(3000)]}})
    assert len(carried(server_app, tmp_path / "inbox", many)) == 100
    long = reply({"outbox": {"contents": [b"x" * (2**20 + 1)]}})
    assert carried(server_app, tmp_path / "other", long) == []


@pytest.mark.parametrize("epsilon", [700, 701, 1000, 10**9])
def test_the_printed_method_is_told_apart_at_any_epsilon(epsilon: int) -> None:
    assert least_delta(float(epsilon), claimed=float(epsilon)) >= 0
    study = Study(
        features=Schema.of_bounds([(-1, 1)]), target=Column.number("y", lower=-1, upper=1), epsilon=epsilon, mechanism="paper"
    )
    assert guarantee_of(study).epsilon == float("inf")


def test_a_file_whose_noise_no_number_can_hold_is_a_bad_release() -> None:
    study = Study.from_dict(
        json.loads(STUDY.to_json())
        | {"organisations": {}, "mechanism": "ssp-laplace", "epsilon": "1/1000000", "records_per_person": 10_000, "delta": "0"}
    )
    facts = dict(NORTH.provenance.parameters) | {"study": json.loads(study.to_json()), "study_hash": study.hash}
    origin = dataclasses.replace(NORTH.provenance, kind="regression.ssp-laplace", parameters=facts)
    forged = Release(value=dict(NORTH.value), guarantee=guarantee_of(study), provenance=origin)
    with pytest.raises(ReleaseError, match="must carry its study: epsilon must be larger for so many records per person"):
        read_one(forged)


def nearly_equal(dice: np.random.Generator, rows: int) -> np.ndarray:
    common = dice.uniform(-1, 1, (rows, 1))
    return np.repeat(common, 2, axis=1) * 0.95 + dice.normal(0, 0.05, (rows, 2)).clip(-0.05, 0.05)


def test_intervals_hold_coefficients_of_features_that_are_nearly_equal() -> None:
    """The prior pulls them towards 0, and 95 % intervals held 73 % of them."""
    study = Study(
        features=Schema.of_bounds([(-1, 1)] * 2), target=Column.number("y", lower=-1, upper=1), epsilon=3, coef_bound=2
    )
    matrix, _ = study.design.original_units()
    dice, truth, hits, before = np.random.default_rng(7), np.array([0.8, -0.6, 0.0]), 0, 0
    for place in range(100):
        sums = None
        for part in range(5):
            X = nearly_equal(dice, 3000)
            y = X @ truth[:2] + dice.normal(0, 0.05, 3000)
            noisy = add_noise(study, totals(study.design, X, y), seeded_coin(10 * place + part))
            sums = sums_of(study, noisy) if sums is None else sums + sums_of(study, noisy)
        assert sums is not None
        found = pooled(study, [sums])
        off = np.abs(matrix @ found.beta - truth)[:2]
        reach = half_lengths(matrix, found.error, found.doubt, pull_of(study, found.covariance, matrix), 0.95)
        hits += int((off <= reach[:2]).sum())
        before += int((off <= 1.96 * np.sqrt(np.diag(matrix @ found.covariance @ matrix.T))[:2]).sum())
    assert hits >= 0.92 * 200
    assert before < 0.85 * 200, "the posterior alone does not"


@pytest.mark.parametrize("home", [True, False])
def test_intervals_hold_in_every_setting_of_the_benchmark(home: bool) -> None:
    for setting in ("iid", "narrow", "collinear"):
        facts: dict[str, Any] = {"organisations": 5, "rows": 500, "epsilon": "1", "mechanism": "ssp-gauss", "repeats": 20}
        assert coverage(setting, home=home, **facts) >= 0.93


def test_the_interval_of_what_noise_hides_reaches_as_far_as_coefficients_can() -> None:
    """Nothing but noise: every coefficient that the study allows must be inside."""
    study = Study(
        features=Schema.of_bounds([(-1, 1)] * 2),
        target=Column.number("y", lower=-1, upper=1),
        epsilon="1/1000",
        coef_bound=2,
        fit_intercept=False,
        clip_radius=1,
    )
    noisy = sums_of(study, add_noise(study, totals(study.design, np.zeros((3, 2)), np.zeros(3)), seeded_coin(0)))
    found = pooled(study, [noisy])
    reach = half_lengths(np.eye(2), found.error, found.doubt, pull_of(study, found.covariance, np.eye(2)), 0.95)
    assert (reach + np.abs(found.beta) >= 1.99).all()


def test_where_noise_hides_nothing_intervals_are_hardly_longer_for_it() -> None:
    study = simulated_study(features=5, epsilon=5)
    drawn = world(features=5, rows=5000, organisations=5, setting="iid", seed=0)
    found = pooled(study, [sums_of(study, add_noise(study, one, seeded_coin(s))) for s, one in enumerate(drawn.others)])
    reach = half_lengths(np.eye(5), found.error, found.doubt, pull_of(study, found.covariance, np.eye(5)), 0.95)
    assert (reach <= 1.1 * 1.96 * np.sqrt(np.diag(found.covariance))).all()


@pytest.mark.parametrize("epsilon", ["1/1000000", "1", "1000000000"])
def test_sums_of_any_size_under_a_prior_of_any_strength_give_finite_intervals(epsilon: str) -> None:
    """A coef_bound of 1e9 had no inverse beside large sums."""
    dice = np.random.default_rng(0)
    for bound in ("1e-9", "1e9"):
        terms: dict[str, Any] = {"epsilon": epsilon, "coef_bound": bound, "x_bounds": [(-1, 1)] * 3, "y_bounds": (-1, 1)}
        release = PrivateRidge(**terms).fit(np.zeros((5, 3)), np.zeros(5)).release_
        for top in (1, 2**20, 2**40, 2**62):
            signs = [int(sign) * top for sign in dice.choice([-1, 1], 15)]
            value = dict(release.value) | {"gram": signs[:10], "moment": signs[10:14], "square": signs[14]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # implausible, and said to be
                model = combine([dataclasses.replace(release, value=value)])
            assert np.isfinite(model.conf_int()).all()
