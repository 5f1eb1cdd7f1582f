"""Devices played from the command line, and what PrivKVM publishes between its rounds.

A participation in PrivKVM is one report in each round, and its epsilon is that of all rounds together: the rounds compose, with
the same device or with another one (`client/probabilities.proof.md`). The means in between are computed from reports alone.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabun.errors import DataError, ParameterError
from sabun.release.files import write_whole
from sabun.telling.terminal.options import Json
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.progress import progress_bar
from sabun.telling.words import count as counted

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["means", "played", "read_means", "write_means"]

Means = Mapping[str | int, float]


def write_means(path: Path, published: Means) -> None:
    """A CSV file with the columns key and mean, complete or not there at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("key", "mean"), *((key, repr(float(mean))) for key, mean in published.items())])
    write_whole(path, text.getvalue().encode("utf-8"))


def read_means(path: Path | None, made: Study, round_number: int) -> Means | None:
    """The means published before a round; None where the round needs none.

    Raises:
        ParameterError: The round needs them and there are none, or the other way round.
        DataError: The file lacks a key, or a mean is none of the study's range.
    """
    needed = made.protocol == "privkvm" and round_number > 0
    if not needed:
        if path is not None:
            raise ParameterError("means must be left out; only privkvm after its first round (--round 1, 2, ...) uses them.")
        return None
    if path is None:
        raise ParameterError("means must be given after privkvm's first round. Pass --means FILE, from `sabun keyvalue means`.")
    low, high = (float(end) for end in made.terms.value_range)
    with open(path, newline="", encoding="utf-8") as file:
        rows = {row.get("key"): row.get("mean") for row in csv.DictReader(file)}
    try:
        found: dict[str | int, float] = {key: float(rows[str(key)] or "") for key in made.terms.keys}
    except (KeyError, ValueError, TypeError):
        raise DataError(f"{path} must have the columns key, mean with a number for every key; it does not.") from None
    if not all(low <= mean <= high for mean in found.values()):
        raise DataError(f"{path} must hold means from {low:g} to {high:g}, the study's range; it does not.")
    return found


def means(
    file: Annotated[Path, typer.Argument(help="The study's file, from `sabun keyvalue study`; its protocol is privkvm.")],
    counters: Annotated[Path, typer.Argument(help="Counters of the rounds so far, from `sabun keyvalue tally`.")],
    out: Annotated[Path, typer.Option(help="The new CSV file to publish (key, mean), for `report --means`.")],
    json: Json = False,
) -> None:
    """Publish the means between two rounds of privkvm, one for every key; they come from reports alone and cost nothing.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 4 --protocol privkvm --rounds 2

        sabun keyvalue report study.json --pair YouTube=0.5 --diary mine.diary --out first.bin

        sabun keyvalue tally study.json first.bin --out first.tally

        sabun keyvalue means study.json first.tally --out means.csv

        sabun keyvalue report study.json --pair YouTube=0.5 --diary mine.diary --round 1 --means means.csv --out second.bin
    """
    from sabun.keyvalue import Study, Tally

    made = Study.load(file)
    new_file(out)
    tally = Tally.load(counters, study=made, seed=None)
    published = tally.published_means()
    write_means(out, published)
    if json:
        print_json({"out": str(out), "means": {str(key): mean for key, mean in published.items()}})
        return
    print_line(f"Wrote the means of {counted(len(published), 'key')} to {str(out)!r}, for the next round.", style="bold")
    print_line("A key whose reports tell no mean has the middle of the range; every mean is within the range.")


def played(
    made: Study,
    table: Path,
    max_epsilon: str | None,
    seed: bytes,
    round_number: int,
    odd: Counter[str],
    *,
    published: Means | None,
    encoding: str,
    quiet: bool,
) -> Iterator[bytes]:
    """One new device per row; the size of the file is public, what stands in it is not, nor how many cells are no use."""
    from sabun.keyvalue.batches import read_holdings
    from sabun.keyvalue.client import Diary

    size = max(1, table.stat().st_size)
    with progress_bar("reports", quiet=quiet) as step:
        for number, held in enumerate(read_holdings(table, made, odd, encoding=encoding)):
            if number % 500 == 0:
                step(min(0.99, number * 20 / size), f"{number} devices")
            # Made up for one answer: a book on disk would have nothing to remember.
            device = made.client(diary=Diary.in_memory(), max_epsilon=max_epsilon, seed=seed)
            odd["cells"] += len(device.check(held))
            yield device.report(held, round=round_number, means=published)
