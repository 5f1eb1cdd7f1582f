"""`sabun keyvalue`: frequencies and means of (key, value) pairs that stay on people's devices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.errors import DataError, ParameterError
from sabun.keyvalue.padding import cut_note
from sabun.keyvalue.rounds import means as means_verb
from sabun.keyvalue.rounds import played, read_means
from sabun.keyvalue.trying import simulate
from sabun.keyvalue.typed import advised, bytes_of, distinct, enrolled_of, iteration_of, keys_of, pairs_of, range_of, truth_of
from sabun.privacy.amounts import plain
from sabun.records import FileFormat
from sabun.telling.language import chosen, speaking
from sabun.telling.terminal.charging import warn_if_large
from sabun.telling.terminal.options import Confidence, EngineName, Json, Lang, NRecords
from sabun.telling.terminal.output import new_file, on_terminal, print_json, print_line, warn
from sabun.telling.terminal.progress import progress_bar
from sabun.telling.terminal.written import Encoding
from sabun.telling.words import count as counted

if TYPE_CHECKING:
    from sabun.keyvalue import Study

__all__ = ["app"]

_HELP = """Collect (key, value) pairs from people's devices without learning anyone's.

Example:

    sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

    sabun keyvalue explain study.json
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_Study = Annotated[Path, typer.Argument(help="The study's file, from `sabun keyvalue study`.")]
_Seed = Annotated[str, typer.Option(help="The server's revealed seed in hex, for a study with a commitment.")]


@app.command()
def study(
    out: Annotated[Path, typer.Argument(help="The study's file to write (JSON).")],
    epsilon: Annotated[str, typer.Option(help="The budget of one participation: 2, 0.5 or 1/3.")],
    keys: Annotated[str | None, typer.Option(help="The public keys, separated by commas (、 parts them too).")] = None,
    keys_file: Annotated[Path | None, typer.Option(help="A text file with one key per line instead.")] = None,
    protocol: Annotated[
        str, typer.Option(help="auto, kv3, privkv, privkv-tight, privkvm, pckv-ue, pckv-grr, pckv-grr+, set, rr-f or set-f.")
    ] = "auto",
    aim: Annotated[
        str | None,
        typer.Option(help="For auto: both, m (above all means) or f (frequencies alone: values are not asked for)."),
    ] = None,
    value_range: Annotated[str, typer.Option(help="Smallest and largest value, low:high.")] = "-1:1",
    keys_per_user: Annotated[int | None, typer.Option(help="The most keys a person holds, if that is public.")] = None,
    padding_length: Annotated[int | None, typer.Option(help="Padding of the pckv protocols and of set.")] = None,
    rounds: Annotated[int | None, typer.Option(help="How often a person is asked at most.")] = None,
    answers: Annotated[str, typer.Option(help="memoised or fresh noise in later rounds.")] = "memoised",
    index_mode: Annotated[str, typer.Option(help="assigned by the server, or chosen by the device.")] = "assigned",
    index_commitment: Annotated[str | None, typer.Option(help="SHA-256 of the server's seed, in hex.")] = None,
    min_batch: Annotated[int, typer.Option(help="Refuse estimates below this many reports.")] = 1,
    not_before: Annotated[str | None, typer.Option(help="First day, such as 2026-01-31.")] = None,
    not_after: Annotated[str | None, typer.Option(help="Last day.")] = None,
    expected_reports: Annotated[int | None, typer.Option(help="A public guess, for the advisor.")] = None,
    json: Json = False,
) -> None:
    """Write down what is asked, of whom, at which epsilon.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE,Maps --epsilon 2 --value-range 0:10

        sabun keyvalue study who.json --keys YouTube,LINE,Maps --epsilon 2 --aim f
    """
    from sabun.keyvalue import Study

    new_file(out)
    made = Study(
        keys=keys_of(keys, keys_file),
        epsilon=epsilon,
        protocol=advised(protocol, aim),
        value_range=range_of(value_range),
        keys_per_user=keys_per_user,
        padding_length=padding_length,
        rounds=rounds,
        answers=answers,
        index_mode=index_mode,
        index_commitment=index_commitment,
        min_batch=min_batch,
        not_before=not_before,
        not_after=not_after,
        expected_reports=expected_reports,
    )
    made.save(out)
    if note := cut_note(made.terms):
        warn(note)
    if json:
        print_json(_written(out) | _facts(made))
        return
    print_line(f"Wrote {str(out)!r}: {counted(len(made.terms.keys), 'key')}, protocol {made.protocol}.", style="bold")
    if made.terms.valueless:
        print_line("Frequencies alone: values are not asked for, and there will be no means.")
    print_line(str(made.guarantee))
    warn_if_large(made.terms.certified)
    print_line(f"Task id {made.task_id}")


@app.command()
def explain(file: _Study, json: Json = False) -> None:
    """Say why this protocol, at what cost.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2 --keys-per-user 1

        sabun keyvalue explain study.json
    """
    from sabun.keyvalue import Study

    made = Study.load(file)
    if json:
        options = [
            {"protocol": one.protocol, "padding_length": one.padding_length, "error": one.error} for one in made.advice.options
        ]
        print_json({**_facts(made), "options": options, "assumptions": list(made.advice.assumptions)})
    else:
        print_line(made.explain())


@app.command()
def plan(
    file: _Study,
    n_records: NRecords,
    frequency: Annotated[
        float | None, typer.Option(help="The share of people who hold a key, a guess; the best and the worst without one.")
    ] = None,
    mean: Annotated[
        float | None, typer.Option(help="Their mean value, within the study's range; the middle of it by default.")
    ] = None,
    confidence: Confidence = 0.95,
    json: Json = False,
) -> None:
    """Say what a participation will cost and how far off estimates may be; touches no data.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue plan study.json --n-records 100000 --frequency 0.1
    """
    from sabun.keyvalue import Study

    made = Study.load(file)
    expected = made.plan(n_records=n_records, frequency=frequency, mean=mean, confidence=confidence)
    if json:
        print_json({**_facts(made), **expected.to_dict()})
        return
    print_line(str(expected))
    warn_if_large(made.terms.certified)


@app.command()
def report(
    file: _Study,
    out: Annotated[Path, typer.Option(help="The new file for the report or reports.")],
    pair: Annotated[
        list[str] | None,
        typer.Option(help="What the person holds, KEY=VALUE (KEY where no values are asked); may be given several times."),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="A CSV with one line per person and one column per key, to play many devices.")
    ] = None,
    diary: Annotated[Path | None, typer.Option(help="The device's own book; keeps its budget and its answers.")] = None,
    max_epsilon: Annotated[str | None, typer.Option(help="The most this device is willing to spend; with --diary.")] = None,
    round_number: Annotated[int, typer.Option("--round", help="Which round of the study.")] = 0,
    credential: Annotated[str | None, typer.Option(help="What the server issued at enrolment, in hex; with --diary.")] = None,
    means: Annotated[
        Path | None, typer.Option(help="The means published last (key, mean), for privkvm's later rounds; see `means`.")
    ] = None,
    index_seed: _Seed = "",
    encoding: Encoding = None,
    id: Annotated[str | None, typer.Option("--id", hidden=True, help="Refused: a device is one person's.")] = None,
    json: Json = False,
) -> None:
    """Play the device: turn what a person holds into a private report.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue report study.json --pair YouTube=0.5 --diary mine.diary --max-epsilon 3 --out report.bin
    """
    from sabun.keyvalue import Study
    from sabun.keyvalue.batches import write_reports
    from sabun.keyvalue.client import ClientError

    if id is not None:
        raise ParameterError(
            "--id must be left out: each device is one person's, and --table plays one for each line. "
            "Make one line of each person's rows first."
        )
    made, seed = Study.load(file), bytes_of(index_seed)
    new_file(out)
    published = read_means(means, made, round_number)
    if table is not None and (pair or diary or credential):
        raise ParameterError(
            "--table must stand alone; it plays one new device per row. Leave out --pair, --diary, --credential."
        )
    cost, odd = made.terms.certified, Counter[str]()
    try:
        if table is None:
            issued, held = None if credential is None else bytes_of(credential, "credential"), pairs_of(pair or [], made)
            device = made.client(diary=diary, max_epsilon=max_epsilon, seed=seed, credential=issued)
            for problem in device.check(held):
                warn(f"{problem}: it is reported as if it were not held.")
            before = device.spent
            reports = iter([device.report(held, round=round_number, means=published)])
            cost = device.spent - before
        else:
            how = FileFormat(encoding=encoding or "utf-8").encoding
            reports = played(made, table, max_epsilon, seed, round_number, odd, published=published, encoding=how, quiet=json)
        count = write_reports(out, reports)
    except ClientError as error:
        raise ParameterError(str(error)) from None
    if odd["cells"] and on_terminal():  # how many there are is private: for the eyes of whoever holds the table, in no file
        warn(f"{odd['cells']} cells of the table are no numbers in the study's range; they count as not held.")
    if json:
        print_json(_written(out) | {"reports": count, "bytes_each": made.report_bytes, "epsilon": str(cost)})
        return
    print_line(f"Wrote {counted(count, 'report')} of {made.report_bytes} bytes to {str(out)!r}.", style="bold")
    if table is not None:
        low, high = made.terms.value_range
        number = f"that is no number from {plain(low)} to {plain(high)}"
        which = "that is empty, 0, no or false" if made.terms.valueless else number
        print_line(f"A cell {which} counts as not held, as on a device.")
    if made.protocol == "privkvm":
        print_line(
            f"All {made.terms.rounds} rounds together cost a person epsilon {plain(made.terms.certified)}, this among them."
        )
    elif cost:
        print_line(f"Each cost its person epsilon {plain(cost)}.")
    else:
        print_line("Already paid: the diary gave the answer it gave before, so nothing was charged.")


app.command("means")(means_verb)


@app.command()
def tally(
    file: _Study,
    reports: Annotated[list[str], typer.Argument(help="Files of reports, binary or one JSON report per line, or folders.")],
    out: Annotated[Path, typer.Option(help="The new file for the counters.")],
    merge: Annotated[list[Path] | None, typer.Option(help="Counters of an earlier run to add, of other reports.")] = None,
    credentials: Annotated[
        Path | None, typer.Option(help="Issued credentials, one in hex per line; reports of others are refused.")
    ] = None,
    round_number: Annotated[int, typer.Option("--round", help="Which round to count; privkvm counts all of its own.")] = 0,
    index_seed: _Seed = "",
    engine: EngineName = None,
    json: Json = False,
) -> None:
    """Count the reports of one round; a bad one is left out and named.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue report study.json --pair YouTube=0.5 --out report.bin

        sabun keyvalue tally study.json report.bin --out counts.tally
    """
    from sabun.keyvalue import Study, Tally

    new_file(out)
    made = Study.load(file)
    enrolled = None if credentials is None else enrolled_of(made, credentials)
    counters = made.tally(round=round_number, seed=bytes_of(index_seed), enrolled=enrolled)
    with progress_bar("Counting reports", quiet=json) as step:
        found = counters.add_files(
            reports, engine=engine or "serial", progress=lambda done, count: step(done / count, f"{done} of {count}")
        )
    if found.refused and not found.accepted:
        why = f"The first was refused: {found.rejected[0][1]}" if found.rejected else "Each was refused."
        raise DataError(f"the files must hold reports of this study; none of {counted(found.seen, 'report')} is one. {why}")
    for part in distinct(merge or []):
        counters.merge(Tally.load(part, study=made, seed=None))
    if merge:
        warn("counters do not say who reported; a report that an earlier run counted counts twice if its file is named again.")
    counters.save(out)
    if json:
        refused = [{"position": position, "reason": reason} for position, reason in found.rejected]
        facts = {
            "accepted": found.accepted,
            "repeated": found.repeated,
            "refused": found.refused,
            "rejected": refused,
            "n": counters.n,
        }
        print_json(_written(out) | facts)
        return
    told = f"Counted {counted(found.accepted, 'report')}; {found.repeated} were repeated, {found.refused} refused."
    print_line(told, style="bold")
    for position, reason in found.rejected[:10]:
        print_line(f"  report {position}: {reason}")
    print_line(f"Wrote {str(out)!r}: {counted(counters.n, 'report')} in all.")


@app.command()
def estimate(
    file: _Study,
    counters: Annotated[Path, typer.Argument(help="Counters from `sabun keyvalue tally` or `simulate`.")],
    method: Annotated[str | None, typer.Option(help="shrunk (default), mle, unbiased, ye, em, em3 or posterior.")] = None,
    iterations: Annotated[int | None, typer.Option(help="em, em3: at most this many iterations; 500 by default.")] = None,
    eta: Annotated[float | None, typer.Option(help="em, em3: stop at changes of at most this; 0 by default.")] = None,
    start: Annotated[str | None, typer.Option(help="em, em3: shares of the states to begin with, by commas.")] = None,
    confidence: Confidence = 0.95,
    simultaneous: Annotated[bool, typer.Option("--simultaneous", help="All intervals hold together.")] = False,
    interval: Annotated[
        str, typer.Option(help="each: for every key; average: shorter, right on average over five keys or more, not for each.")
    ] = "each",
    top: Annotated[int | None, typer.Option(help="Also say which keys are the K most frequent, with probabilities.")] = None,
    truth: Annotated[Path | None, typer.Option(help="With --plot: a CSV with key, frequency, mean to draw beside.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the means to this SVG file.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to save the release (.json), or the rows alone (.csv); weak means are left out.")
    ] = None,
    release: Annotated[Path | None, typer.Option(help="Where to save the release, if --out is for the rows.")] = None,
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Estimate frequencies and means with intervals.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue simulate study.json --n 10000 --seed 0 --out made-up.tally

        sabun keyvalue estimate study.json made-up.tally --plot means.svg --out rows.csv
    """
    from sabun.keyvalue import Study, Tally

    chosen(lang)  # before anything is written
    made = Study.load(file)
    for name, new in (("plot", plot), ("out", out), ("release", release)):
        if new is not None:
            new_file(new, name=name)
    if plot is not None and made.terms.valueless:
        raise ParameterError("plot must be left out where no values are asked; there are no means to draw.")
    if truth is not None and plot is None:
        raise ParameterError("truth must be left out without a plot, which is all that shows it. Add --plot.")
    known = None if truth is None else truth_of(made, truth, None, 0.0, None)[1]
    rows = None if out is None or out.suffix == ".json" else out
    if release is not None and rows is None and out is not None:
        raise ParameterError("release must be named once; got --release and an --out that ends in .json. Leave out one.")
    saved = release if rows is not None or out is None else out
    how = iteration_of(iterations, eta, start)
    loaded = Tally.load(counters, study=made, seed=None)
    found = loaded.estimate(method, confidence=confidence, simultaneous=simultaneous, interval=interval, iteration=how)
    ranking = None if top is None else loaded.top(top)
    if saved is not None:
        found.release().save(saved)
    if rows is not None:
        found.to_frame(suppress=True).to_csv(rows, index=False)
    if plot is not None:
        from sabun.keyvalue.plots import means_svg

        with speaking(lang):
            plot.write_text(means_svg(found, known), encoding="utf-8")
    if json:
        print_json(
            found.to_dict() | {"out": None if out is None else str(out)} | ({"top": ranking.to_dict()} if ranking else {})
        )
        return
    print_line(str(found))
    if ranking is not None:
        print_line(f"\n{ranking}\n")
    print_line(f"Method {found.method}. {found.guarantee}")
    if saved is not None:
        print_line(f"Saved as {str(saved)!r}.", style="green")


app.command()(simulate)


def _written(out: Path) -> dict[str, Any]:
    """Where a result went; `path` is the older name."""
    return {"out": str(out), "path": str(out)}


def _facts(made: Study) -> dict[str, Any]:
    return {**made.facts, "certified_epsilon": str(made.terms.certified), "report_bytes": made.report_bytes}
