"""Figures in running text, filled from the kept runs: whoever measures again need not look for the sentences.

In a text a figure stands between two comments that no reader sees, and is named here:

    **<!-- figure: outliers.noise -->155<!-- / -->×**

`python -m benchmarks.page` fills them all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, Figure

__all__ = ["FIGURES", "RUNS", "filled", "short", "texts"]

RUNS = ROOT / "docs" / "results" / "benchmarks"
COVERAGE = ROOT / "docs" / "results" / "coverage"
FORECASTS = ROOT / "docs" / "results" / "forecasts.json"
QUESTIONS = ROOT / "docs" / "results" / "density" / "questions.json"
WAVES = QUESTIONS.with_name("waves.json")
KERNELS = QUESTIONS.with_name("kernels.json")
DEFAULTS = ROOT / "docs" / "results" / "regression" / "defaults.json"
_MARKED = re.compile(r"(?P<open><!-- figure: (?P<name>\S+) -->)(?P<text>.*?)(?P<close><!-- / -->)", re.DOTALL)


def short(value: float, digits: int = 3) -> str:
    """Three significant digits, with thousands separated."""
    if value == 0 or value != value or abs(value) == float("inf"):
        return str(value)
    size = int(f"{abs(value):e}".partition("e")[2])
    places = max(0, digits - 1 - size)
    return f"{value:.{digits - 1}e}" if places > 6 else f"{round(value, digits - 1 - size):,.{places}f}"


def _record(room: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RUNS / f"{room}.json").read_text(encoding="utf-8"))
    return found


def _figures(room: str, name: str = "", peer: str = "") -> list[Figure]:
    return [one for one in (Figure(**each) for each in _record(room)["figures"]) if name in one.name and peer in one.peer_name]


def _one(room: str, name: str, peer: str = "") -> Figure:
    found = [one for one in _figures(room, peer=peer) if one.name == name]
    if len(found) != 1:
        raise LookupError(f"{room}.json must have one figure {name!r} beside {peer!r}; got {len(found)}.")
    return found[0]


def _ratio(room: str, name: str, peer: str = "", *, digits: int = 3) -> str:
    return short(_one(room, name, peer).ratio or 0.0, digits)


def _ours(room: str, name: str, *, times: float = 1.0, digits: int = 3) -> str:
    return short(times * _one(room, name).ours, digits)


def _range(value: Callable[[Figure], float], room: str, name: str, *, times: float) -> str:
    values = [times * value(one) for one in _figures(room, name)]
    return f"{short(min(values), 2)} to {short(max(values), 2)}"


def _peer(figure: Figure) -> float:
    assert figure.peer is not None
    return figure.peer


_GRID = "leave-one-out grid, N = n = 10000, d = 10, b = 100: "
_MLP = "MLP 512-2048x3-10, 9,463,818 parameters, batch 16,384, sums in double precision, vs plain"
_CNN = "CNN of three blocks, 64 channels, 412,682 parameters, batch 2,048, sums in double precision, vs plain"
_CERTIFIED = "MSE of means, gaussian, n = 100,000, equal certified epsilon 2 (PrivKV's nominal: 3.013)"
_NOMINAL = "MSE of means, gaussian, n = 100,000, equal nominal epsilon 2 (PrivKV's certified: 1.38)"
_SHOWN = ("outliers", "density", "regression", "noise", "keyvalue")
"""Rooms with a ratio in the READMEs."""


def _step(name: str, batch: int, value: Callable[[Figure], float]) -> str:
    """Milliseconds a step, from examples a second."""
    return short(1000 * batch / value(_one("learning_gpu", name)))


def _steps() -> str:
    """Private steps on one core beside Opacus: how many times as fast, in the default precision and in the other."""
    jobs = ("MLP 3x32, batch 50", "MLP 3x32, batch 512", "MLP 3x32, batch 4096", "MLP 3x256, batch 512", "CNN, batch 256")
    ways = ("torch", "torch single", "numpy double", "numpy single")
    held = {figure.name: figure for figure in _figures("learning", "step, ")}
    head = ["step", "Opacus, ms", "`TorchTrainer`", "its `single`", "classifier", "its `single`"]
    rows = []
    for job in jobs:
        found = [held.get(f"step, {job}, {way}, vs opacus ghost") for way in ways]
        peer = next(_peer(figure) for figure in found if figure is not None)
        rows.append([job, short(1000 * peer, 2), *("—" if one is None else short(one.ratio or 0.0, 2) for one in found)])
    return _table(head, rows)


def _slower(name: str, digits: int) -> str:
    return short(1 / (_one("learning_gpu", name).ratio or 1.0), digits)


def _places() -> tuple[list[str], list[tuple[str, str]]]:
    """First and last day of the runs in the READMEs; processors with their cores."""
    places = [_record(room)["machine"] for room in _SHOWN]
    days = sorted({place["date"] for place in places})
    machines = sorted({(place["processor"], place["machine"].split(", ")[1].split()[0]) for place in places})
    return sorted({days[0], days[-1]}), machines


def _when() -> str:
    days, machines = _places()
    day = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[1]}"
    return f"{day}, {' and '.join(f'{cores} cores of an {processor} machine' for processor, cores in machines)}"


def _when_in_japanese() -> str:
    days, machines = _places()
    told = [f"{year} 年 {int(month)} 月 {int(day)} 日" for year, month, day in (day.split("-") for day in days)]
    return f"{'から'.join(told)}、{'と '.join(f'{processor} の {cores} コア' for processor, cores in machines)}"


def _cover(part: str, value: str, *, about: str = "covered rows") -> str:
    """Of the kept run of `benchmarks.density_coverage`: a share in per cent, or a width as it is."""
    kept = json.loads((COVERAGE / "density.json").read_text(encoding="utf-8"))
    if part == "runs":
        return str(min(kept["runs in a cell"]))
    if part == "uncovered":
        return f"{100 * kept['uncovered share']:.1f}"
    found = kept[about][part]
    if value == "cells":
        return f"{found['cells']:,}"
    if value == "half width":
        return f"{found[value]:.2f}"
    share = found["lowest"][0][0] if value == "lowest" else found[value]
    return f"{100 * share:.{2 if value == 'cover' else 0}f}"


def _foretold() -> str:
    """The table of `benchmarks.forecasts`: cases that were looked at while forecasts were made, and cases that were not."""
    kept = json.loads(FORECASTS.read_text(encoding="utf-8"))["rooms"]
    lines = ["", "", "| room | looked at | of these, real tables | held out | of these, real tables |", "|---|---|---|---|---|"]
    for room, grids in kept.items():
        told = [_held(grids.get(grid), part) for grid in ("looked at", "held out") for part in ("all", "real tables")]
        lines.append(f"| {room} | {' | '.join(told)} |")
    return "\n".join([*lines, "", ""])


def _held(grid: dict[str, Any] | None, part: str) -> str:
    held, cases = (0, 0) if grid is None else grid["held"][part]
    return f"{held:,} of {cases:,}" if cases else "—"


def _foretold_in(room: str, grid: str) -> str:
    return _held(json.loads(FORECASTS.read_text(encoding="utf-8"))["rooms"][room][grid], "all")


def _pairs(room: str, grid: str) -> str:
    """Of how many cases an optimistic and a pessimistic error were foretold."""
    cases = json.loads(FORECASTS.read_text(encoding="utf-8"))["rooms"][room][grid]["cases"]
    return str(sum(case["low"] != case["high"] for case in cases))


_FORETOLD: dict[str, Callable[[], str]] = {
    "forecasts": _foretold,
    "forecasts.outliers.pairs": partial(_pairs, "outliers", "held out"),
    **{
        f"forecasts.{room}.{grid.replace(' ', '-')}": partial(_foretold_in, room, grid)
        for room in ("outliers", "density", "keyvalue", "regression", "learning")
        for grid in ("looked at", "held out")
        if grid == "held out" or room in ("outliers", "density", "learning")
    },
}


def _questions() -> list[dict[str, Any]]:
    """The kept run of `benchmarks.density_questions`."""
    found: list[dict[str, Any]] = json.loads(QUESTIONS.read_text(encoding="utf-8"))["rows"]
    return found


def _asked() -> str:
    """Errors of labels that the weights say nothing about, and of the columns, table by table."""
    lines = ["", "", "| table | ε | labels: weighted | answered | plain | columns: weighted | answered | plain |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in _questions():
        numbers = [f"{row[what][way]:.3f}" for what in ("labels", "columns") for way in ("weighted", "answered", "plain")]
        lines.append(f"| {row['table']} | {row['epsilon']:g} | {' | '.join(numbers)} |")
    return "\n".join([*lines, "", ""])


def _waves() -> str:
    """How many intervals held beside waves in one column: a line for each size, a column for each frequency."""
    rows = json.loads(WAVES.read_text(encoding="utf-8"))["rows"]
    frequencies = sorted({row["frequency"] for row in rows})
    found = [
        [f"±{size:g}", *(f"{row['held']} of {row['asked']}" for row in rows if row["amplitude"] == size)]
        for size in sorted({row["amplitude"] for row in rows})
    ]
    return _table(["wave in the logarithm", *(f"sin({frequency}x)" for frequency in frequencies)], found)


def _kernels() -> str:
    """Errors with both kernels, and how much more the half-additive one has, give or take a standard error."""
    lines = []
    for row in json.loads(KERNELS.read_text(encoding="utf-8"))["rows"]:
        cells = []
        for kind in (row["mean"], row["tail"]):
            cells += [f"{kind[kernel]:.3f}" for kernel in ("gaussian", "half additive")]
            cells.append(f"{kind['more']:+.4f} ± {kind['error']:.4f}".replace("-", "−"))
        lines.append([row["table"], f"{row['epsilon']:g}", *cells])
    return _table(["table", "ε", "mean: Gaussian", "half additive", "more", "share: Gaussian", "half additive", "more"], lines)


def _nested(what: str) -> str:
    """Of shares above rising cuts in the kept run: how many steps, how many of them rise, and by how much at most."""
    found = json.loads(QUESTIONS.read_text(encoding="utf-8"))["nested"][what]
    return f"{found:.3f}" if what == "most" else f"{found:,}"


def _question_cover(way: str) -> str:
    return f"{sum(row[f'{what}, held'][way] for row in _questions() for what in ('labels', 'columns')):,}"


_ASKED: dict[str, Callable[[], str]] = {
    "density.waves": _waves,
    "density.kernels": _kernels,
    "density.questions": _asked,
    **{
        f"density.questions.{way.replace(' ', '-')}": partial(_question_cover, way)
        for way in ("given", "as it is", "weighted alone")
    },
    **{f"density.questions.nested.{what}": partial(_nested, what) for what in ("releases", "steps", "rising", "most")},
}

_COVER = {
    f"density.cover.{part.replace(' ', '-')}.{value.replace(' ', '-')}": partial(_cover, part, value)
    for part in ("tuned", "held out", "fresh")
    for value in ("given", "cover", "lowest", "half width")
}


def _estimated(what: str, shape: str, whose: str) -> str:
    """A mean squared error of the key-value estimators; of frequencies in units of 1/10,000."""
    name = f"MSE of {what}, {shape}, n = 100,000, d = 50, certified epsilon 2"
    peers = {"old": "mle, the old default", "ours": "mle, the old default", "paper": "PrivKV + EM", "limit": "least variance"}
    figure = _one("keyvalue_estimators", name, peers[whose])
    return short((10_000 if what == "frequencies" else 1) * (figure.ours if whose == "ours" else _peer(figure)))


def _zipf(epsilon: str, whose: str) -> str:
    name = f"RMSE of frequencies, Zipf, n = 300,000, d = 300, epsilon {epsilon}"
    figure = _one("keyvalue_estimators", name, "best of" if whose == "best" else "mle, the old default")
    return short(figure.ours if whose == "ours" else _peer(figure))


def _cells(keys: int, what: str, which: str) -> str:
    name = f"RMSE of {what} over the best of mle, posterior, em, fresh, d = {keys}: {which}"
    return f"{_one('keyvalue_fresh', name).ours:.2f}"


def _worst(keys: int, what: str) -> str:
    """Where the worst cell was, and how many were above 1.05."""
    return _one("keyvalue_fresh", f"RMSE of {what} over the best of mle, posterior, em, fresh, d = {keys}: largest").note


def _adverse(which: str, what: str, *, note: bool = False) -> str:
    """The worst cell among populations that were sought because they hurt: how bad, or where."""
    figure = _one("keyvalue_estimators", f"RMSE of {what} over the best of mle, posterior, em, {which}")
    return figure.note if note else f"{figure.ours:.2f}"


def _top(words: str) -> str:
    return f"{_one('keyvalue_top', words).ours:.2f}"


def _advised(aim: str, words: str) -> str:
    return f"{_one('keyvalue_advice', f'regret of the advice, aim {aim}, {words}').ours:.2f}"


def _padded(aim: str, words: str) -> str:
    return f"{_one('keyvalue_advice', f'regret with a typical frequency, {words.format(aim=aim)}').ours:.0f}"


def _on_average(place: str, what: str) -> str:
    figures = [
        one for one in _figures("keyvalue_estimators", f": {what}") if "right on average" in one.name and place in one.name
    ]
    values = [100 * one.ours for one in figures]
    return f"{min(values):.0f} to {max(values):.0f}"


_ESTIMATED = {
    f"keyvalue.{shape}.{what}.{whose}": partial(_estimated, what, shape, whose)
    for shape in ("gaussian", "linear", "power")
    for what in ("frequencies", "means")
    for whose in ("old", "ours", "paper", "limit")
    if (what, whose) != ("means", "limit")
}
_ESTIMATED |= {
    f"keyvalue.zipf.{epsilon}.{whose}": partial(_zipf, epsilon, whose)
    for epsilon in ("0.5", "1", "2", "4")
    for whose in ("old", "best", "ours")
}
_ESTIMATED |= {
    f"keyvalue.cells.{keys}.{what}.{which.partition(' ')[0]}": partial(_cells, keys, what, which)
    for keys in (5, 50, 300, 2000)
    for what in ("frequencies", "frequencies by holders", "means")
    for which in ("geometric mean", "largest")
}
_ESTIMATED = {name.replace("frequencies by holders", "by-holders"): value for name, value in _ESTIMATED.items()}
_ESTIMATED |= {f"keyvalue.cells.{keys}.worst": partial(_worst, keys, "frequencies") for keys in (5, 50, 300, 2000)}
_ESTIMATED |= {
    f"keyvalue.adverse.{what}{'.where' if note else ''}": partial(
        _adverse, "adverse populations, d = 50: largest", what, note=note
    )
    for what in ("frequencies", "means")
    for note in (False, True)
}
_ESTIMATED |= {
    f"keyvalue.adverse.zero.{peer}": partial(_adverse, f"all means 0, d = 50: over {peer}", "means") for peer in ("em", "mle")
}
_ESTIMATED |= {
    f"keyvalue.top.{low}.{what}": partial(_top, f"keys said to be among the most frequent with {low} to {high}: {what}")
    for low, high in (("0.3", "0.6"), ("0.6", "0.9"), ("0.9", "1"))
    for what in ("said", "true")
}
_ESTIMATED["keyvalue.top.lists"] = partial(_top, "lists of the most frequent keys with probabilities")
_ESTIMATED |= {
    f"keyvalue.advice.{aim}.{short_name}": partial(_advised, aim, words)
    for aim in ("both", "f", "m")
    for short_name, words in (
        ("mean", "on average"),
        ("largest", "largest"),
        ("above", "above 5 %, share of studies"),
        ("any-mean", "with any width, on average"),
        ("any-largest", "with any width, largest"),
    )
}
_ESTIMATED |= {
    f"keyvalue.padded.{aim}.{guess.partition(' ')[0]}.{what.rpartition(' ')[2]}": partial(
        _padded, aim, f"{guess}, aim {{aim}}, {what}"
    )
    for aim in ("both", "f", "m")
    for guess in ("right", "half the truth", "twice the truth")
    for what in ("on average", "largest")
}
_ESTIMATED |= {
    f"keyvalue.advice.{aim}.gain": partial(
        _ratio, "keyvalue_advice", f"RMSE of the advice, aim {aim}, best protocol before sets in hindsight"
    )
    for aim in ("both", "f", "m")
}
_ESTIMATED |= {
    "keyvalue.average.alike": partial(_on_average, "", "covered, keys alike"),
    "keyvalue.average.frequent": partial(_on_average, "", "covered, keys by frequency"),
    "keyvalue.estimators.many": partial(_ours, "keyvalue_estimators", "shrunk estimates of 100,000 keys", digits=2),
}


_DEVICE = "one report on a device, diary in memory, "
_UNARY = "one fresh pckv-ue report on a device, diary in memory, 50 keys, "
_ESTIMATED |= {
    f"keyvalue.device.{name}": partial(_ours, "keyvalue", words, times=times, digits=2)
    for name, words, times in (
        ("one", f"{_DEVICE}1 pair", 1e6),
        ("five", f"{_DEVICE}5 pairs", 1e6),
        ("many", f"{_DEVICE}25 pairs", 1e6),
        ("unary.one", f"{_UNARY}1 pair", 1e6),
        ("unary.many", f"{_UNARY}25 pairs", 1e6),
        ("new", f"{_DEVICE}a new client", 1e6),
        ("disk", "one report on a device, diary on disk", 1e3),
    )
}


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"


def _accuracy() -> str:
    """The table of `benchmarks.learning_accuracy`: former default, default, best peer, limit side by side."""
    held = json.loads((ROOT / "docs" / "results" / "learning" / "accuracy.json").read_text(encoding="utf-8"))
    lines = ["", "", "| table | ε | `dp-sgd` | default | Opacus, better | default − Opacus | limit | δ = 0 |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in held["rows"]:
        peer = f"{max(row['sgd'], row['adam']):.3f}" if "adam" in row else "—"
        above = f"{row['above opacus']:+.3f} ± {row['above opacus, error']:.3f}" if "adam" in row else "—"
        name = f"{row['table']}{' ◦' if row['fresh'] else ''} ({row['splits']})"
        shares = [f"{row[way]:.3f}" for way in ("former default", "default")]
        shares += [peer, above, _share(held["limits"].get(row["table"])), f"{row['pure']:.3f}"]
        lines.append(f"| {name} | {row['epsilon']} | {' | '.join(shares)} |")
    return "\n".join([*lines, "", ""])


def _accuracy_about(what: str) -> str:
    """One number about the same table: beside Opacus, or beside the former default's processor time."""
    held = json.loads((ROOT / "docs" / "results" / "learning" / "accuracy.json").read_text(encoding="utf-8"))
    rows = [row for row in held["rows"] if "adam" in row]
    times = {True: list[float](), False: list[float]()}
    for row in rows:
        times[bool(row["default, hidden"])].append(row["default, seconds"] / row["former default, seconds"])
    lowest = min(rows, key=lambda row: row["above opacus"] / row["above opacus, error"])
    numbers: dict[str, Callable[[], str]] = {
        "below": lambda: f"{sum(not row['holds'] for row in rows)} of {len(rows)}",
        "lowest": lambda: (
            f"{lowest['table']} at ε = {lowest['epsilon']}, {lowest['above opacus']:+.3f} ± {lowest['above opacus, error']:.3f}"
        ),
        "linear-time": lambda: f"{min(times[False]):.1f} to {max(times[False]):.1f}",
        "layer-time": lambda: f"{min(times[True]):.1f} to {max(times[True]):.1f}",
    }
    return numbers[what]()


def _regret(kind: str) -> str:
    """The default beside the former one on the tables of one kind of `benchmarks.learning_regret`."""
    rows = [
        [
            row["table"],
            f"{row['records']:,}",
            f"{row['epsilon']:g}",
            *(f"{row[name]:.3f}" for name in ("score", "other score", "common class")),
            f"{row['above']:+.3f} ± {row['error']:.3f}",
        ]
        for row in _regrets(kind)
    ]
    other = f"`{_regrets(kind)[0]['other']}`"
    return _table(["table", "records", "ε", "default", other, "the common class", "difference"], rows)


def _regret_about(what: str, kind: str) -> str:
    """How often and how far the default lay below the former one on tables of that kind."""
    rows = _regrets(kind)
    if what == "worst":
        return f"{min(row['above'] for row in rows):+.3f}"
    return f"{sum(row['above'] < -2 * row['error'] for row in rows)} of {len(rows)}"


def _regrets(kind: str) -> list[dict[str, Any]]:
    held = json.loads((ROOT / "docs" / "results" / "learning" / "regret.json").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = held["kinds"][kind]["rows"]
    return rows


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(["", "", *lines, "", ""])


def _beside(room: str, name: str, peers: list[str]) -> list[str]:
    """What each peer came to in a figure of that name; a dash where it was not measured."""
    found = {one.peer_name: one for one in _figures(room) if one.name == name}
    return [short(_peer(found[peer])) if peer in found else "—" for peer in peers]


_SHIFTS = ("Student t, d = 4", "log-normal, d = 6", "binary and normal, d = 8", "ring, d = 2", "no shift, d = 12")


def _density_beside() -> str:
    """No weights, the paper's method A, the default, the best private peer, no privacy: side by side."""
    peers = ["unweighted", "method A", "Ji–Elkan", "uLSIF, not private"]
    settings = {
        "the paper's experiment, weights": "section 5, weights",
        "the paper's experiment, mean": "section 5, mean query",
        "census (Adult), 8 answers": "Adult, 8 answers",
        **{shift: f"held-out shift: {shift}" for shift in _SHIFTS},
    }
    rows = []
    for words, start in settings.items():
        for epsilon in ("0.1", "1"):
            name = f"{start}, ε = {epsilon}"
            none, paper, peer, limit = _beside("density", name, peers)
            rows.append([words, epsilon, none, paper, f"**{short(_figures('density', name)[0].ours)}**", peer, limit])
    return _table(["setting", "ε", "no weights", "paper's method A", "default", "Ji–Elkan", "uLSIF, not private"], rows)


def _summaries_beside() -> str:
    """Mean errors of every summary beside whoever else gives it."""
    peers = sorted({one.peer_name for one in _figures("summaries") if one.peer_name})
    names = dict.fromkeys(one.name for one in _figures("summaries") if one.peer_name)
    rows = []
    for name in names:
        question, relation, *_ = name.split(", ")
        ours = next(one.ours for one in _figures("summaries") if one.name == name)
        rows.append([question, relation, f"**{short(ours)}**", *_beside("summaries", name, peers)])
    return _table(["question", "neighbours", "default", *peers], rows)


def _outliers_beside() -> str:
    """Standard deviations of the noise: the paper's mechanism made sound, the default, the kindest table."""
    rows = []
    for figure in _figures("outliers", "noise on "):
        table, epsilon = figure.name.removeprefix("noise on ").split(", epsilon = ")
        rows.append([table, epsilon, short(_peer(figure)), f"**{short(figure.ours)}**"])
    return _table(["table", "ε", "the paper's mechanism, made sound", "default"], rows)


def _digits_plan() -> str:
    """What a plan said of the digits before, what it says with a reference, what came, and the limit."""
    rows = []
    for figure in _figures("outliers_plan"):
        wide = f"± {figure.peer:,.0f}" if figure.peer is not None else "—"
        rows.append([figure.name, f"{figure.ours:,.0f}", wide])
    return _table(["count in the 1,797 digits (64 columns, 2 % outliers, ε = 1)", "error", "interval"], rows)


def _defaults(part: str) -> Any:
    """The kept run of `benchmarks.regression_defaults`."""
    return json.loads(DEFAULTS.read_text(encoding="utf-8"))[part]["found"]


def _cells_beside(model: str, what: str) -> str:
    """Cells of the new default beside the former one: those that a plan does not refuse, unless it says otherwise."""
    found = [cell for cell in _defaults("cells") if model in cell]
    told = [cell for cell in found if cell["refused"] == what.startswith("refused")]
    ratios = [cell[model]["ratio"] for cell in told]
    numbers: dict[str, Callable[[], str]] = {
        "cells": lambda: str(len(told)),
        "mean": lambda: f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}",
        "worst": lambda: f"{max(ratios):.2f}",
        "above": lambda: str(sum(ratio > 1.1 for ratio in ratios)),
        "runs": lambda: str(min(cell[model]["runs"] for cell in found)),
    }
    return numbers[what.removeprefix("refused-")]()


def _yes_or_no() -> str:
    ratios = [cell["public"]["ratio"] for cell in _defaults("cells") if cell["law"] == "yes or no" and not cell["refused"]]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _held_out() -> str:
    """Errors of one organisation's public model on held-out rows, table by table."""
    names = "`ssp-gauss`, the former default | `staged` | its plan | diffprivlib 0.6.6 | without privacy"
    lines = ["", "", f"| table (rows) | ε | {names} |", "|---" * 7 + "|"]
    for row in _defaults("tables"):
        old, new, peer, limit = (short(row[who]) for who in ("ssp-gauss", "staged", "diffprivlib", "without privacy"))
        cells = [old, new, "refused as noise" if row["refused"] else "taken", peer, limit]
        lines.append(f"| {row['table']} ({row['rows']:,}) | {row['epsilon']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", ""])


def _small(peer: str) -> str:
    """How many times as long as a peer a fit of a small table takes."""
    [figure] = [one for one in _figures("regression_small") if one.peer_name.endswith(peer)]
    return short(figure.ours / _peer(figure), 2)


def _held_out_runs() -> str:
    return str(min(row["runs"] for row in _defaults("tables")))


def _pilots() -> str:
    """What a pilot does to each table."""
    lines = ["", "", "| table (rows) | ε | all at once | a fifth on a pilot |", "|---|---|---|---|"]
    for row in _defaults("pilots"):
        errors = [short(row[way]) for way in ("at once", "with a pilot")]
        lines.append(f"| {row['table']} ({row['rows']:,}) | {row['epsilon']} | {' | '.join(errors)} |")
    return "\n".join([*lines, "", ""])


def _staged_cover() -> str:
    """The kept run of `benchmarks.regression_coverage`: what intervals held, kind by kind."""
    kept = json.loads((COVERAGE / "regression.json").read_text(encoding="utf-8"))
    names = {"staged": "`staged`", "rounds": "`rounds`", "weak": "`staged`, weak slopes"}
    head = "worlds × runs | coefficients | lowest world | lowest single | new records | lowest world | length / needed"
    lines = ["", "", f"| 95 % intervals | {head} |", "|---" * 8 + "|"]
    for kind, name in names.items():
        for model, at_home in (("home", True), ("public", False)):
            found = [one for one in kept[kind]["found"] if (one["facts"]["home_rows"] is not None) == at_home]
            if found:
                lines.append(f"| {name}, {model} model | {_held_in(found)} |")
    return "\n".join([*lines, "", ""])


def _held_in(found: list[dict[str, Any]]) -> str:
    """Shares of intervals that held, over worlds, in per cent."""
    each, records = [_mean(one["coefficients"]) for one in found], [one["prediction"] for one in found]
    shares = (_mean(each), min(each), min(min(one["coefficients"]) for one in found), _mean(records), min(records))
    length = sorted(one["width"] for one in found)[len(found) // 2]
    told = [f"{len(found)} × {min(one['runs'] for one in found)}", *(f"{100 * share:.1f} %" for share in shares)]
    return " | ".join([*told, f"{length:.2f}"])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _two_rounds() -> str:
    """One file beside two rounds: errors of coefficients."""
    ways = "`ssp-gauss` | `staged` | `rounds`"
    lines = ["", "", f"| setting | ε | public: {ways} | with home data: {ways} | all raw data |", "|---" * 9 + "|"]
    names = {"narrow": "each its own corner", "iid": "all alike"}
    for row in _defaults("rounds"):
        errors = [short(row[way][model], 2) for model in ("public", "pool") for way in ("ssp-gauss", "staged", "rounds")]
        limit = short(row["staged"]["all raw data"], 2)
        lines.append(f"| {names[row['setting']]} | {row['epsilon']} | {' | '.join(errors)} | {limit} |")
    return "\n".join([*lines, "", ""])


def _beside_best_radius(what: str) -> str:
    """The radius that is chosen privately beside the best fixed one: `one` file, two `rounds`, or the former default."""
    found = _defaults("radii")
    method, _, number = what.partition(".")
    ratios = [one[method] for one in found]
    numbers: dict[str, Callable[[], str]] = {
        "near": lambda: f"{sum(ratio <= 1.3 for ratio in ratios)} of {len(ratios)}",
        "mean": lambda: f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}",
        "worst": lambda: f"{max(ratios):.1f}",
    }
    return numbers[number]()


_SIZES = (1000, 4000, 20_000)
"""Rows of the made-up tables of the part `tails`; those of a real one stand in the last column."""


def _tails() -> str:
    """Skewed residuals and curves: distances from the best line beside the former default, covers, lengths."""
    head = "table | ε | 1,000 rows | 4,000 | 20,000 | held-out error, worst | cover, best line | best line of weighted rows"
    lines = ["", "", f"| {head} | length / `light` |", "|---" * 9 + "|"]
    found = _defaults("tails")
    for world, epsilon in dict.fromkeys((one["world"], one["epsilon"]) for one in found):
        cells = {one["rows"]: one for one in found if (one["world"], one["epsilon"]) == (world, epsilon)}
        rows = [cells.get(size) for size in _SIZES] if len(cells) > 1 else [None, None, *cells.values()]
        ratios = ["—" if one is None else short(one["ratio"]["staged"], 2) for one in rows]
        there = [one for one in rows if one is not None]
        covers = [f"{100 * min(min(one[name]) for one in there):.0f} %" for name in ("cover", "cover weighted")]
        worst = f"{max(one['held out']['staged'] for one in there):.3f}"
        length = f"{min(one['longer'] for one in there):.1f} to {max(one['longer'] for one in there):.1f}"
        lines.append(f"| {' | '.join([world, f'{epsilon:g}', *ratios, worst, *covers, length])} |")
    return "\n".join([*lines, "", ""])


def _tails_about(what: str) -> str:
    """One number about the same cells; straight lines and adult are told apart, weighted rows and cells that are refused."""
    found = [one for one in _defaults("tails") if not one["refused"]]
    adult = [one for one in found if one["world"].startswith("adult")]
    line = [one for one in found if one["world"].startswith("line")]
    skewed = [one for one in found if one["world"] in ("3 % of targets far above", "lognormal residuals", "targets mostly 0")]
    curved = [one for one in found if one not in (*adult, *line, *skewed)]

    def most(cells: list[dict[str, Any]], name: str, way: str) -> str:
        return short(max(one[name][way] for one in cells), 3)

    def least(cells: list[dict[str, Any]], name: str) -> str:
        return f"{100 * min(min(one[name]) for one in cells):.0f} %"

    def middle(cells: list[dict[str, Any]], name: str) -> str:
        return f"{100 * _mean([_mean(one[name]) for one in cells]):.1f} %"

    near = [one for one in found if min(one["forecasts"]) / 3 <= one["distance"]["staged"] <= 3 * max(one["forecasts"])]
    numbers: dict[str, Callable[[], str]] = {
        "runs": lambda: str(min(one["runs"] for one in found if one not in adult)),
        "skewed.worst": lambda: most(skewed, "ratio", "staged"),
        "skewed.cover": lambda: least(skewed, "cover"),
        "skewed.cover.mean": lambda: middle(skewed, "cover"),
        "curved.worst": lambda: most(curved, "ratio", "staged"),
        "curved.held-out": lambda: most(curved, "held out", "staged"),
        "curved.unshortened": lambda: most(curved, "ratio", "unshortened"),
        "curved.unshortened.held-out": lambda: most(curved, "held out", "unshortened"),
        "curved.cover.weighted": lambda: least(curved, "cover weighted"),
        "curved.cover.weighted.mean": lambda: middle(curved, "cover weighted"),
        "adult.worst": lambda: most(adult, "ratio", "staged"),
        "adult.held-out": lambda: most(adult, "held out", "staged"),
        "line.cover": lambda: least(line, "cover"),
        "line.longer": lambda: f"{min(one['longer'] for one in line):.1f} to {max(one['longer'] for one in line):.1f}",
        "forecasts": lambda: f"{len(near)} of {len(found)}",
    }
    return numbers[what]()


_TAILS = (
    *("runs", "skewed.worst", "skewed.cover", "skewed.cover.mean", "curved.worst", "curved.held-out", "curved.unshortened"),
    *("curved.unshortened.held-out", "curved.cover.weighted", "curved.cover.weighted.mean", "adult.worst", "adult.held-out"),
    *("line.cover", "line.longer", "forecasts"),
)

_BESIDE: dict[str, Callable[[], str]] = {
    f"regression.beside.{short_name}.{what}": partial(_cells_beside, model, what)
    for short_name, model in (("public", "public"), ("home", "with home data"))
    for what in ("cells", "mean", "worst", "above", "runs", "refused-cells", "refused-worst")
    if short_name == "public" or what in ("cells", "worst")
}
_BESIDE |= {
    "regression.beside.yes-or-no": _yes_or_no,
    "regression.small.ridge": partial(_small, "solver"),
    "regression.small.linear": partial(_small, "LinearRegression"),
    "regression.tables": _held_out,
    "regression.tables.runs": _held_out_runs,
    "regression.pilots": _pilots,
    "regression.pilots.runs": lambda: str(min(row["runs"] for row in _defaults("pilots"))),
    "regression.cover": _staged_cover,
    "regression.rounds": _two_rounds,
    **{
        f"regression.radii.{method}.{number}": partial(_beside_best_radius, f"{method}.{number}")
        for method in ("staged", "rounds", "ssp-gauss")
        for number in ("near", "mean", "worst")
    },
    "regression.radii.worlds": lambda: str(min(row["worlds"] for row in _defaults("radii"))),
    "regression.tails": _tails,
    **{f"regression.tails.{what}": partial(_tails_about, what) for what in _TAILS},
    "regression.rounds.worlds": lambda: str(min(row["worlds"] for row in _defaults("rounds"))),
}

_VISITS = "1,000,000 rows of 200,000 persons, 5 columns of a CSV file"
_PERSONS = {
    "persons.memory": lambda: short(1 / (_one("persons", _VISITS).ratio or 1.0), 2),
    "persons.disk": lambda: short(1 / (_one("persons", f"{_VISITS}, a sixteenth in memory").ratio or 1.0), 2),
}


def _collected() -> str:
    """The collector over HTTP, store by store."""
    if not (RUNS / "collector.json").exists():
        return ""
    head = "reports/s | of the bare store's | p99 of a batch | memory, before → after | single reports/s"
    lines = ["", "", f"| store | {head} |", "|---" * 6 + "|"]
    for store in ("SQLite", "PostgreSQL", "PostgreSQL, two processes"):
        rate, memory = (
            _one("collector", f"{store}: reports/s over HTTP"),
            _one("collector", f"{store}: memory after, per process"),
        )
        p99, alone = (
            _one("collector", f"{store}: p99 of a batch"),
            _one("collector", f"{store}: single reports, 64 connections"),
        )
        told = [
            short(rate.ours),
            f"{rate.ratio:.2f}",
            f"{1000 * p99.ours:.0f} ms",
            f"{_peer(memory):.0f} → {memory.ours:.0f} MB",
        ]
        lines.append(f"| {store} | {' | '.join(told)} | {short(alone.ours)} ({alone.note}) |")
    return "\n".join([*lines, "", ""])


def _collector_run() -> str:
    """How many reports and damaged bodies the kept run was sent."""
    if not (RUNS / "collector.json").exists():
        return "there is none yet"
    reports = _one("collector", "SQLite: reports/s over HTTP").note.split()[0]
    bodies = _one("collector", "fuzzed bodies that broke the server")
    return (
        f"{int(reports):,} reports in batches of 1,000 over 4 connections; {int(bodies.note.split()[0]):,} damaged bodies, "
        + ("none of which broke the server or counted" if bodies.ours == 0 else f"{bodies.ours:.0f} of which broke the server")
    )


def _engines() -> str:
    """Engines beside the plain loop, and text beside Parquet, question by question."""
    rows = []
    for question in ("summaries", "regression", "density"):
        faster = (
            _one("scale", f"{question}, {engine}, 10,000,000 rows").ratio
            for engine in (
                "one process in pieces",
                "two processes",
                "Dask, 2 workers of a local cluster",
                "Spark, two threads on this machine",
            )
        )
        text = f"{question}, CPU of a CSV file, 1,000,000 rows"
        dearer = (
            _one("scale", f"{question}, Dask, CPU of all workers, 10,000,000 rows").ratio,
            *(_one("scale", text, peer).ratio for peer in ("the same rows in a Parquet file", "pyarrow's reader alone")),
        )
        rows.append([question, *(short(each or 0) for each in faster), *(short(1 / each if each else 0) for each in dearer)])
    head = ["question", "one process", "two processes", "Dask", "Spark", "Dask's workers", "text", "beside its reader"]
    return _table(head, rows)


FIGURES: dict[str, Callable[[], str]] = {
    "scale": _engines,
    **_PERSONS,
    "collector": _collected,
    "collector.run": _collector_run,
    "learning.accuracy": _accuracy,
    **{f"learning.regret.{kind}": partial(_regret, kind) for kind in ("few", "one", "common")},
    **{
        f"learning.regret.{kind}.{what}": partial(_regret_about, what, kind)
        for kind in ("few", "common")
        for what in ("below", "worst")
    },
    **{
        f"learning.accuracy.{what}": partial(_accuracy_about, what) for what in ("below", "lowest", "linear-time", "layer-time")
    },
    "density.beside": _density_beside,
    "summaries.beside": _summaries_beside,
    "summaries.variance": partial(_ratio, "summaries", "variance, replace-one, 5000 rows, epsilon 0.5", digits=2),
    "summaries.groups": partial(_ratio, "summaries", "mean by race, add-remove, 5000 rows, epsilon 0.5", digits=2),
    "outliers.beside": _outliers_beside,
    "outliers.plan": _digits_plan,
    **_COVER,
    **_FORETOLD,
    **_ASKED,
    **_BESIDE,
    **_ESTIMATED,
    "density.cover.all.cells": partial(_cover, "all", "cells"),
    "density.cover.runs": partial(_cover, "runs", ""),
    "density.cover.uncovered": partial(_cover, "uncovered", ""),
    "density.cover.whole": partial(_cover, "all", "cover", about="whole table"),
    "density.cover.whole.lowest": partial(_cover, "all", "lowest", about="whole table"),
    "when": _when,
    "when.ja": _when_in_japanese,
    "outliers.count": partial(_ratio, "outliers", "private count, dense, N = 100,000, d = 8", "own loop"),
    "outliers.count.wide": partial(_ratio, "outliers", "private count, dense, N = 100,000, d = 32", "own loop"),
    "outliers.library": partial(_ratio, "outliers", "private count, dense, N = 100,000, d = 8", "library"),
    "outliers.noise": partial(_ratio, "outliers", "noise on ionosphere, epsilon = 1"),
    "density.mean": partial(_ratio, "density", "section 5, mean query, ε = 1", "Ji–Elkan"),
    "density.grid": partial(_ratio, "density", _GRID + "CPU", digits=2),
    "density.memory": partial(_ratio, "density", _GRID + "memory", digits=2),
    "density.pass": partial(_ours, "density", "one pass over 10.0 million records, b = 100", digits=2),
    "regression.narrow": partial(
        _ratio, "regression", "narrow, 10 x 1000 rows, epsilon 1: relative error", "constrained + mirror"
    ),
    "noise.gaussian": partial(_ratio, "noise", "discrete gaussian, scale 1000, 100000 values"),
    "noise.ours": partial(_range, lambda figure: figure.ours, "noise", "discrete", times=1e-6),
    "noise.opendp": partial(_range, _peer, "noise", "discrete", times=1e-6),
    "keyvalue.means": partial(_ratio, "keyvalue", _CERTIFIED, "PrivKV + EM"),
    "keyvalue.nominal": partial(_ratio, "keyvalue", _NOMINAL, "PrivKV + EM"),
    "learning.steps": _steps,
    "gpu.mlp": partial(_ours, "learning_gpu", _MLP),
    "gpu.mlp.ours": partial(_step, _MLP, 16_384, lambda figure: figure.ours),
    "gpu.mlp.plain": partial(_step, _MLP, 16_384, _peer),
    "gpu.mlp.slower": partial(_slower, _MLP, 3),
    "gpu.cnn": partial(_ours, "learning_gpu", _CNN),
    "gpu.cnn.ours": partial(_step, _CNN, 2_048, lambda figure: figure.ours),
    "gpu.cnn.plain": partial(_step, _CNN, 2_048, _peer),
    "gpu.cnn.slower": partial(_slower, _CNN, 2),
}


def texts() -> list[Path]:
    """The texts that may hold figures."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("README.md")])


def filled(text: str) -> str:
    """The text with every figure as the kept runs have it."""

    def fill(match: re.Match[str]) -> str:
        if match["name"] not in FIGURES:
            raise LookupError(f"a figure must be one of {', '.join(FIGURES)}; got {match['name']!r}.")
        return f"{match['open']}{FIGURES[match['name']]()}{match['close']}"

    return _MARKED.sub(fill, text)
