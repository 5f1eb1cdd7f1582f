"""`sabun demo`: Sabun's jobs, one after the other, on data that anybody may see."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun import checks
from sabun.asking.directory import rooms
from sabun.errors import MissingExtra, ParameterError
from sabun.ledger import Ledger
from sabun.ledger.wording import at_least, at_most, percent
from sabun.release import Release, generate_key, save_key
from sabun.service.extra import require_extra
from sabun.telling.demo import Bench, Job, Outcome
from sabun.telling.language import retold, said, speaking
from sabun.telling.terminal.options import Lang
from sabun.telling.terminal.output import Json, print_json, print_line
from sabun.telling.terminal.progress import progress_bar
from sabun.telling.words import unit_word

if TYPE_CHECKING:
    from sabun.reports import Answer, Chapter, Grid

__all__ = ["command"]

_NEEDS_EXTRA = "collector"


def command(
    folder: Annotated[
        Path | None, typer.Option(help="A new or empty folder for the files; a temporary one by default.")
    ] = None,
    job: Annotated[list[str] | None, typer.Option(help="Only this job; may be given several times.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use less data.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Show the report in the web browser.")] = False,
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Run Sabun's jobs on data that comes with it.

    For each job: charges a ledger, releases a private result, signs it, saves it. At the end, one report about all of them.

    Example:

        sabun demo --job count --folder demo
    """
    with speaking(lang):
        _run(_chosen(job), folder, named=bool(job), quick=quick, open_page=open_page, json=json)


def _run(chosen: tuple[Job, ...], folder: Path | None, *, named: bool, quick: bool, open_page: bool, json: bool) -> None:
    place = _new_folder(folder)
    key = generate_key()
    save_key(key, place / "publisher.pem")
    save_key(key.public_key(), place / "publisher.pub.pem")
    if not json:
        print_line(f"The files of this demo go into {str(place)!r}.\n")
    watched = not (json or quick) and sys.stdin.isatty() and sys.stdout.isatty()
    books: dict[str, Ledger] = {}
    chapters: list[Chapter] = []
    records: list[dict[str, Any]] = []
    for number, item in enumerate(chosen, start=1):
        clock = time.perf_counter()
        with progress_bar(f"{number}/{len(chosen)} {item.name}", quiet=json) as step:
            tell = {} if json else {"tell": print_line}
            bench = Bench(folder=place, quick=quick, progress=step, books=books, watched=watched, **tell)
            outcome = item.run(bench)
        files = _save(item, outcome, place, key)
        chapter = _chapter(item, outcome, Release.load(files[0]))
        chapters.append(chapter)
        records.append({"name": item.name, "question": item.question, "file": str(files[0]), "files": [str(f) for f in files]})
        if not json:
            _tell(chapter, outcome, f"{number}/{len(chosen)}", time.perf_counter() - clock)
    page = _write_page(chapters, books, place)
    if json:
        left = {name: ledger.remaining.to_dict() for name, ledger in books.items()}
        print_json({"out": str(place), "folder": str(place), "page": str(page), "jobs": records, "remaining": left})
    else:
        _close(place, page, books, chosen)
        if not named and (missing := _left_out()) is not None:
            print_line(f"Not shown: {missing}")
    if open_page:
        webbrowser.open(page.resolve().as_uri())


def jobs() -> tuple[Job, ...]:
    """What there is to show: the jobs of every room that has some, then that of the collector."""
    from sabun.service.demo import JOBS

    shown = [part.JOBS for room in rooms() if (part := room.part("demo")) is not None]
    return tuple(job for some in (*shown, JOBS) for job in some)


def _chosen(names: list[str] | None) -> tuple[Job, ...]:
    everything = jobs()
    known = tuple(job.name for job in everything)
    for name in names or ():
        checks.one_of(known, job=name)
    if names:
        return tuple(job for job in everything if job.name in names)
    return tuple(job for job in everything if job.name != _NEEDS_EXTRA or _left_out() is None)


def _left_out() -> MissingExtra | None:
    """Why the collector is not shown; None where it is."""
    try:
        require_extra()
    except MissingExtra as error:
        return error
    return None


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="sabun-demo-"))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ParameterError(f"folder must be new or empty; got {str(folder)!r}. Choose another with --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _save(job: Job, outcome: Outcome, place: Path, key: Any) -> list[Path]:
    """Saves every release of a job, the answer first; signs those that nobody has signed yet."""
    releases = {job.name: outcome.release, **{f"{job.name}-{name}": release for name, release in outcome.others.items()}}
    files = []
    for name, release in releases.items():
        file = place / f"{name}.json"
        (release if release.signature is not None else release.sign(key)).save(file)
        files.append(file)
    return files


def _chapter(job: Job, outcome: Outcome, release: Release) -> Chapter:
    from sabun.reports import Chapter, facts

    return Chapter(
        name=job.name,
        question=said(job.question),
        facts=facts(release),
        answer=None if outcome.answer is None else _retold(outcome.answer),
        file=f"{job.name}.json",
        remarks=tuple(map(retold, outcome.remarks)),
        charts=outcome.charts,
    )


def _retold(answer: Answer) -> Answer:
    return dataclasses.replace(answer, big=retold(answer.big), sentence=retold(answer.sentence))


def _tell(chapter: Chapter, outcome: Outcome, place: str, seconds: float) -> None:
    """The story of one job, as a person reads it in a terminal."""
    found, promised = chapter.said, outcome.release.guarantee
    epsilon, delta = promised.cost
    terms = f"epsilon {at_least(epsilon)}" + (f", delta {at_least(delta)}" if delta else "")
    best = "no limit" if chapter.facts.guess is None else f"{chapter.facts.guess:.1f} %"
    print_line(f"{place}  {chapter.question}", style="bold cyan")
    print_line(f"     {found.big} {found.spread}".rstrip(), style="bold")
    for sentence in filter(None, (found.sentence, *chapter.remarks)):
        print_line(f"     {sentence}")
    print_line(f"     Promise: {terms} for one {promised.unit} ({promised.relation}); a guesser is right at most {best}.")
    print_line(f"     Ledger: {outcome.payer or outcome.release.provenance.charge}.")
    print_line(f"     Saved there as {chapter.file!r} after {seconds:.1f} seconds.\n", style="green")


def _write_page(chapters: list[Chapter], books: dict[str, Ledger], place: Path) -> Path:
    from sabun.reports import collection, save_page

    page = place / "index.html"
    introduction = (
        said(
            "Each question below was asked of a table that comes with Sabun or was made up by it. The answers are private: "
            "they were drawn with noise from the operating system, charged to a ledger, and signed."
        ),
    )
    grids = (_books(books),) if books else ()
    save_page(collection(chapters, heading=said("Sabun demo"), introduction=introduction, grids=grids), page)
    return page


def _books(books: dict[str, Ledger]) -> Grid:
    from sabun.reports import Grid

    rows = tuple(
        (
            name,
            said("one {unit}", unit=unit_word(ledger.unit)),
            f"epsilon {at_most(ledger.promised.epsilon)}, delta {at_most(ledger.promised.delta)}",
            percent(ledger.share_used),
        )
        for name, ledger in books.items()
    )
    columns = (said("ledger"), said("protects"), said("promises for everything together"), said("used"))
    return Grid(title=said("What was spent"), columns=columns, rows=rows)


def _close(place: Path, page: Path, books: dict[str, Ledger], chosen: tuple[Job, ...]) -> None:
    for name, ledger in books.items():
        left, whole = ledger.remaining.epsilon, ledger.budget.epsilon
        print_line(f"The ledger {name!r} has epsilon {at_most(left)} of {at_most(whole)} left.")
    print_line(f"The report about all of it is {str(page)!r}.", style="bold")
    print_line(f"Everything is in {str(place)!r}. Next, try:")
    sabun, release = _itself(), _quoted(place / f"{chosen[0].name}.json")
    if books:
        print_line(f"  {sabun} ledger show {_quoted(place / f'{next(iter(books))}.ledger')}")
    print_line(f"  {sabun} release verify {release} --trusted-key {_quoted(place / 'publisher.pub.pem')}")
    print_line(f"  {sabun} report {release}")


def _itself() -> str:
    """How to type this command again: its plain name where the shell finds it, otherwise as it was typed now."""
    typed = Path(sys.argv[0])
    return "sabun" if shutil.which("sabun") or typed.name != "sabun" else _quoted(typed)


def _quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
