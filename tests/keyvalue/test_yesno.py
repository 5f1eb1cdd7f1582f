"""Studies of frequencies alone: `rr-f` and `set-f` from the device to the report."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import Attack, People, Study, influence_bounds
from sabun.keyvalue.advisor import advise, channel_for
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.client import Client, Report, ReportError, Terms, from_json, pack, to_json, unpack
from sabun.keyvalue.estimates import METHODS, point_estimates
from sabun.keyvalue.intervals import frequency_interval
from sabun.keyvalue.plots import means_svg
from sabun.keyvalue.statistic import Answers, Counters, SymbolCounts
from sabun.keyvalue.story import story
from sabun.keyvalue.typed import advised
from sabun.keyvalue.verbs import app
from sabun.keyvalue.yesno import FREQUENCY_METHODS, YesNo, frequencies
from sabun.release import Release

PROTOCOLS = ("rr-f", "set-f")
KEYS = list("abcdefgh")


def study(protocol: str, **more: Any) -> Study:
    padding = {"padding_length": 2} if protocol == "set-f" else {}
    return Study(**({"keys": KEYS, "epsilon": 1, "protocol": protocol} | padding | more))


class Broken:
    def __bool__(self) -> bool:
        raise RuntimeError("no truth in it")


YES = (1, 0.5, -3, 1e300, math.inf, True, "yes", "7", "-1", object(), Decimal(2), np.True_)
NO = (0, 0.0, False, None, math.nan, "", " ", "0", "no", "No", "FALSE", Decimal("NaN"), np.nan, np.False_, Broken(), [])


@pytest.mark.parametrize(("values", "held"), [(YES, True), (NO, False)])
def test_what_stands_beside_a_key_says_yes_or_no(values: tuple[Any, ...], held: bool) -> None:
    """At epsilon 60 a device says what it is told: another thing with a probability of 2^-64."""
    with pytest.warns(UserWarning, match="epsilon above 20"):
        device = Client(Terms(keys=("a",), epsilon=Fraction(60), protocol="rr-f", rounds=1000, answers="fresh"))
    for place, value in enumerate(values):
        assert unpack(device.terms, device.report({"a": value}, round=place)).symbol == held, value
        assert device.check({"a": value}) == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_report_with_a_second_sign_is_refused(protocol: str) -> None:
    terms = study(protocol).terms
    symbol = 2 if protocol == "rr-f" else (2, 0, 0, 0, 0, 0, 0, 0)
    forged = pack(terms, Report(round=0, report_id=bytes(16), index=None, symbol=symbol))
    with pytest.raises(ReportError, match="must be 0 or 1"):
        unpack(terms, forged)
    honest = Client(terms).report({"a": 1})
    record = json.loads(to_json(terms, honest))
    record["symbol"] = symbol if protocol == "rr-f" else list(symbol)
    with pytest.raises(ReportError):
        from_json(terms, json.dumps(record))


@pytest.mark.parametrize("many", [3, 60_000])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_counters_know_no_minus(protocol: str, many: int) -> None:
    recipe = SymbolCounts(protocol=protocol, keys=2)
    block = Answers(symbols=[0, 1, 2] * (many // 3), indices=[0, 1, 1] * (many // 3))
    if protocol == "set-f":
        block = Answers(symbols=[[0, 1], [1, 2]])
    state = recipe.zero()
    with pytest.raises(DataError, match="symbols must be whole numbers from 0 to 1"):
        recipe.add(state, block)
    assert not state.cells.any()
    cells = recipe.zero().cells
    cells[0, 0, 1] = 1
    assert not recipe.possible(Counters(cells=cells, n=1))
    with pytest.raises(DataError, match="must count what its number of reports can say"):
        recipe.unpack(recipe.pack(Counters(cells=cells, n=1)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_devices_and_simulations_agree(protocol: str) -> None:
    """Yes of 1,200 devices and of 20 simulations of the same people, key by key; 6 standard deviations."""
    made = study(protocol)
    rows = [[0.6 if key in (person % 8, 3) else np.nan for key in range(8)] for person in range(1200)]
    people, tally = People.of_table(rows), made.tally()
    for row in rows:
        tally.add(made.client().report({key: value for key, value in zip(KEYS, row, strict=True) if not math.isnan(value)}))
    runs = [made.simulate_people(people, random_state=run).counts() for run in range(20)]
    mean = np.mean([run.plus for run in runs], axis=0)
    assert tally.counts().minus.sum() == sum(run.minus.sum() for run in runs) == 0
    assert np.abs(tally.counts().plus - mean).max() < 6 * math.sqrt(mean.max() * 1.05)
    truth = people.moments(8)[0]
    drawn = [made.simulate(truth, n=1200, random_state=run).counts().plus for run in range(20)]
    # In `simulate` people hold keys independently, so of `set-f` padding cuts more off: only `rr-f` has the same law.
    if protocol == "rr-f":
        assert np.abs(np.mean(drawn, axis=0) - mean).max() < 6 * math.sqrt(mean.max() / 10)


@pytest.mark.parametrize("method", FREQUENCY_METHODS)
def test_estimators_against_the_likelihood_itself(method: str) -> None:
    """One key, the likelihood on a fine grid; `shrunk` of a single key is nearly flat, with a twentieth at 0."""
    channel, grid = YesNo(a=0.7, b=0.2), (np.arange(20_000) + 0.5) / 20_000
    for yes, total in ((0, 5), (3, 10), (45, 100), (14, 100), (95, 100), (9000, 20_000)):
        counts = Counts(plus=[yes], minus=[0], total=[total])
        found, mean = point_estimates(method, channel, counts)
        assert np.isnan(mean).all()
        likelihood = binom.pmf(yes, total, channel.b + channel.gap * grid)
        if method == "unbiased":
            assert found[0] == pytest.approx((yes / total - 0.2) / 0.5)
        elif method == "mle":
            assert found[0] == pytest.approx(grid[likelihood.argmax()], abs=1e-4)
        else:
            empty = 0.0 if method == "posterior" else 0.05 * binom.pmf(yes, total, channel.b)
            flat = float((likelihood @ grid) / (likelihood.sum() + len(grid) * empty / 0.95))
            assert found[0] == pytest.approx(flat, abs=1e-3 if method == "posterior" else 0.04)


def test_keys_alike_are_estimated_together() -> None:
    """200 keys of frequency .1, 500 reports each: the errors of `shrunk` are far below those of one key by itself."""
    made = Study(keys=list(range(200)), epsilon=1, protocol="rr-f")
    tally = made.simulate(np.full(200, 0.1), n=100_000, random_state=1)
    errors = {name: np.sqrt(np.mean((tally.estimate(name).frequency - 0.1) ** 2)) for name in FREQUENCY_METHODS}
    assert errors["shrunk"] < 0.35 * errors["mle"] < 0.35 * errors["unbiased"]
    found = tally.estimate()
    assert found.frequency.mean() == pytest.approx(tally.estimate("unbiased").frequency.mean(), abs=0.003)
    assert len(tally.top(3).keys) == 3


@pytest.mark.parametrize(("epsilon", "reports"), [(2, 1_000_000), (4, 3_000_000)])
def test_many_reports_leave_nothing_to_draw_towards(epsilon: float, reports: int) -> None:
    """Where noise is far smaller than keys differ, `shrunk` is `mle`; it was up to 1.8 times as far off."""
    made = Study(keys=list(range(5)), epsilon=epsilon, protocol="rr-f")
    truth, squares = np.array([0.13, 0.24, 0.35, 0.46, 0.57]), {"shrunk": 0.0, "mle": 0.0}
    for run in range(20):
        tally = made.simulate(truth, n=5 * reports, random_state=run)
        for name in squares:
            squares[name] += float(np.sum((tally.estimate(name).frequency - truth) ** 2))
    assert squares["shrunk"] < 1.05 * squares["mle"]


def test_methods_of_signs_are_refused() -> None:
    tally = study("rr-f").simulate([0.3] * 8, n=100, random_state=0)
    for method in set(METHODS) - set(FREQUENCY_METHODS):
        with pytest.raises(ParameterError, match="method must be one of shrunk, mle, unbiased, posterior where no values"):
            tally.estimate(method)


def test_a_key_without_reports_has_no_frequency() -> None:
    channel, counts = YesNo(a=0.7, b=0.2), Counts(plus=[0, 3], minus=[0, 0], total=[0, 9])
    for method in FREQUENCY_METHODS:
        assert np.isnan(frequencies(method, channel, counts)[0]).tolist() == [True, False]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_intervals_cover_what_they_say_exactly(protocol: str, epsilon: float) -> None:
    """Every outcome weighed: Wilson's intervals hold in at least 93 % of all runs, simultaneous ones in 95 %."""
    channel = study(protocol, epsilon=epsilon).channel
    for total in (60, 300, 1000):
        outcomes = np.arange(total + 1)
        counts = Counts(plus=outcomes, minus=np.zeros_like(outcomes), total=np.full_like(outcomes, total))
        one, many = (frequency_interval(channel, counts, comparisons=several) for several in (1, 2))
        for f in (0.0, 0.01, 0.1, 0.4, 0.9, 1.0):
            chance = binom.pmf(outcomes, total, channel.b + channel.gap * f)
            covered = [chance[(ends[:, 0] <= f) & (f <= ends[:, 1])].sum() for ends in (one, many)]
            assert covered[0] >= 0.93
            assert covered[1] >= 0.975


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_there_are_no_means_anywhere(protocol: str, tmp_path: Path) -> None:
    made = study(protocol)
    tally = made.simulate([0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.1, 0.2], n=50_000, random_state=0)
    found = tally.estimate()
    assert not found.valued
    assert not [name for name in found.to_frame() if "mean" in name]
    assert "No means: values were not asked for." in str(found)
    assert "mean" not in str(found).splitlines()[1]
    assert not any("no mean" in words for words in found.flags)
    record = found.to_dict()
    assert record["means"] == "values were not asked for"
    assert not [name for name in record["rows"] if "mean" in name]
    real = made.tally()
    real.add_reports([made.client().report({"a": 1, "b": 1}) for _ in range(300)])
    real.estimate().release().save(tmp_path / "release.json")
    again = Release.load(tmp_path / "release.json")
    assert not [name for name in again.value if "mean" in name]
    told = story(again)
    assert any("Values were not asked for" in caution for caution in told.cautions)
    assert len(told.charts) == 1
    assert not [name for name in told.grids[0].columns if "mean" in name]
    with pytest.raises(ParameterError, match="no means to draw"):
        means_svg(found)
    average = tally.estimate(interval="average")
    assert (average.frequency_interval[:, 0] <= average.frequency).all()
    assert Study.from_json(made.to_json()) == made
    assert made.aim == "f"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plans_foretell_frequencies_alone(protocol: str) -> None:
    made = study(protocol)
    plan = made.plan(n_records=20_000, frequency=0.1)
    assert plan.mean_error is None
    assert plan.mean_reach is None
    assert all(one.quantity.startswith("error of the frequencies") for one in plan.forecasts)
    assert "no values are asked" in str(plan)
    json.dumps(plan.to_dict(), allow_nan=False)
    runs = [made.simulate([0.1] * 8, n=20_000, random_state=run).estimate("unbiased").frequency for run in range(40)]
    assert plan.frequency_error == pytest.approx(float(np.std(runs, axis=0).mean()), rel=0.25)


def test_without_values_an_answer_is_worth_twice_as_much() -> None:
    """n Var (E - 1)^2 of a rare key: E d instead of 2 E d, and half of `set` (whose merging costs some more)."""
    e = math.e
    rare = {name: float(channel_for(name, Fraction(1), 100, 4).frequency_variance(0.0, 1)) for name in ("set", "set-f")}
    assert rare["set-f"] < 0.5 * rare["set"]
    for name, factor in (("kv3", 2), ("rr-f", 1)):
        variance = 100 * float(channel_for(name, Fraction(1), 100, 1).frequency_variance(0.0, 1))
        assert variance * (e - 1) ** 2 == pytest.approx(factor * e * 100)


def test_the_advisor_follows_the_aim() -> None:
    dense, sparse = {"keys": 10, "epsilon": Fraction(1)}, {"keys": 500, "epsilon": Fraction(1), "keys_per_user": 3}
    chosen = {aim: [advise(**facts, aim=aim).best.protocol for facts in (dense, sparse)] for aim in ("f", "m", "both")}  # type: ignore[arg-type]
    assert chosen == {"f": ["rr-f", "set-f"], "m": ["kv3", "set"], "both": ["kv3", "set"]}
    for aim, requested in (("f", "auto-f"), ("m", "auto-m"), ("both", "auto")):
        made = Study(keys=KEYS, epsilon=1, protocol=requested)
        assert made.terms.requested == advised("auto", aim) == requested
        assert made.aim == aim
        again = Study.from_json(made.to_json())
        assert (again, again.advice) == (made, made.advice)
    with pytest.raises(ParameterError, match="aim must be left out where the protocol is named"):
        advised("kv3", "f")
    with pytest.raises(ParameterError, match="aim must be one of"):
        advised("auto", "g")


@pytest.mark.parametrize("kind", ["m2ga", "rkva", "rma"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fakes_stay_within_what_is_bounded(protocol: str, kind: str) -> None:
    """5 % of fakes on one key of `set-f`, or of `rr-f` with chosen keys; 4 runs of 50,000 people, 6 standard deviations."""
    made = study(protocol, index_mode="chosen")
    bounds = influence_bounds(made, fraction=0.05)
    assert math.isnan(bounds.product)
    f, attack = np.full(8, 0.1), Attack(kind=kind, fraction=0.05, targets=(0,))
    gains = [
        np.subtract(
            *(made.simulate(f, n=50_000, random_state=run, attack=who).estimate("unbiased").frequency for who in (attack, None))
        )
        for run in range(4)
    ]
    noise = 6 * made.plan(n_records=50_000, frequency=0.1).frequency_error
    assert np.mean(gains, axis=0).max() <= bounds.frequency_up + noise
    if kind == "m2ga":
        assert np.mean(gains, axis=0)[0] > 0.8 * bounds.frequency_up - noise


def test_simulations_of_values_need_means() -> None:
    with pytest.raises(ParameterError, match="means must be given where values are asked"):
        Study(keys=KEYS, epsilon=1).simulate([0.1] * 8, n=10)


def test_from_the_command_line(tmp_path: Path) -> None:
    def sabun(*words: str) -> str:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.output

    file, table = tmp_path / "study.json", tmp_path / "people.csv"
    told = sabun("study", str(file), "--keys", "a,b,c", "--epsilon", "4", "--aim", "f")
    assert "protocol rr-f" in told
    assert "values are not asked for" in told
    table.write_text("a,b,c\n" + "1,,0\nyes,no,false\n" * 600, encoding="utf-8")
    told = sabun("report", str(file), "--table", str(table), "--out", str(tmp_path / "all.bin"))
    assert "A cell that is empty, 0, no or false counts as not held" in told
    sabun("report", str(file), "--pair", "a", "--pair", "b=0", "--out", str(tmp_path / "one.bin"))
    sabun("tally", str(file), str(tmp_path / "all.bin"), str(tmp_path / "one.bin"), "--out", str(tmp_path / "counts"))
    told = sabun("estimate", str(file), str(tmp_path / "counts"), "--out", str(tmp_path / "rows.csv"), "--json")
    rows = json.loads(told)["rows"]
    # 400 reports a key at epsilon 4: a standard deviation of .007
    assert rows["frequency"] == pytest.approx([1, 0, 0], abs=0.08)
    assert "mean" not in (tmp_path / "rows.csv").read_text(encoding="utf-8")
    plot = CliRunner().invoke(app, ["estimate", str(file), str(tmp_path / "counts"), "--plot", str(tmp_path / "x.svg")])
    assert plot.exit_code != 0
    assert not (tmp_path / "x.svg").exists()
    assert "no values are asked" in sabun("plan", str(file), "--n-records", "1000")
    assert json.loads(sabun("simulate", str(file), "--seed", "0", "--n", "1000", "--json"))["mse_mean"] is None
    truth = tmp_path / "truth.csv"
    truth.write_text("key,frequency\na,0.5\nb,0.1\nc,0\n", encoding="utf-8")
    assert "mean 0" not in sabun("simulate", str(file), "--truth", str(truth), "--seed", "0")
