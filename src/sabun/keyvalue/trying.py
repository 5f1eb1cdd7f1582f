"""`sabun keyvalue simulate`: a study tried on made-up people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabun.keyvalue.typed import attack_of, truth_of
from sabun.telling.terminal.options import Json
from sabun.telling.terminal.output import new_file, print_json, print_line

if TYPE_CHECKING:
    from sabun.keyvalue import Estimates

__all__ = ["simulate"]


def simulate(
    file: Annotated[Path, typer.Argument(help="The study's file, from `sabun keyvalue study`.")],
    n: Annotated[int, typer.Option("--n-records", "--n", help="Number of made-up people.")] = 100_000,
    truth: Annotated[Path | None, typer.Option(help="A CSV with the columns key, frequency, mean.")] = None,
    population: Annotated[str | None, typer.Option(help="gaussian, power or linear, for a study of 50 keys.")] = None,
    frequency: Annotated[float, typer.Option(help="The frequency of every key, without --truth.")] = 0.3,
    mean: Annotated[float | None, typer.Option(help="The mean of every key; the middle of the range by default.")] = None,
    attack: Annotated[str | None, typer.Option(help="Add fakes: m2ga, rkva or rma.")] = None,
    fraction: Annotated[float, typer.Option(help="Share of fake reports.")] = 0.01,
    target: Annotated[list[str] | None, typer.Option(help="A key the fakes push up; may be given several times.")] = None,
    seed: Annotated[int | None, typer.Option(help="For the same run again.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the counters in this new file.")] = None,
    json: Json = False,
) -> None:
    """Try a study on made-up people, with fakes among them if you like. NOT PRIVATE.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue simulate study.json --n 10000 --attack m2ga --target LINE --seed 0
    """
    import numpy as np

    from sabun.keyvalue import Study

    made = Study.load(file)
    if out is not None:
        new_file(out)
    f, m = truth_of(made, truth, population, frequency, mean)
    fakes = attack_of(made, attack, fraction, target)
    honest = made.simulate(f, m, n=n, random_state=seed)
    counters = honest if fakes is None else made.simulate(f, m, n=n, random_state=seed, attack=fakes)
    if out is not None:
        counters.save(out)
    found = counters.estimate()
    error_f = float(np.nanmean((found.frequency - f) ** 2))
    middle = float(sum(made.terms.value_range)) / 2
    error_m = float(np.mean((np.nan_to_num(found.mean, nan=middle) - m) ** 2)) if found.valued else None
    gains = {} if fakes is None else {str(made.terms.keys[t]): _gain(found, honest.estimate(), t) for t in fakes.targets}
    if json:
        print_json({"n": counters.n, "mse_frequency": error_f, "mse_mean": error_m, "gains": gains, "simulated": True})
        return
    print_line(str(found))
    of_means = "" if error_m is None else f", mean {error_m:.3g}"
    print_line(f"Mean squared error: frequency {error_f:.3g}{of_means}.", style="bold")
    for key, gain in gains.items():
        print_line(f"The fakes moved the frequency of {key!r} by {gain:+.4f}.", style="bold")


def _gain(found: Estimates, honest: Estimates, place: int) -> float:
    return float(found.frequency[place] - honest.frequency[place])
