"""`sabun keyvalue serve`, `tickets`, `operator`: the collector's commands, added to those of the key-value room."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabun.errors import ParameterError
from sabun.service.extra import require_extra
from sabun.telling.terminal.options import Lang
from sabun.telling.terminal.output import Json, new_file, print_json, print_line, warn
from sabun.telling.words import count as counted

if TYPE_CHECKING:
    from sabun.service.report_store import Served, Store

__all__ = ["app"]

app = typer.Typer()
operator = typer.Typer(
    no_args_is_help=True,
    help="""Say who may look at estimates and close rounds.

Example:

    sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

    sabun keyvalue serve study.json --check

    sabun keyvalue operator add study.json alice --scope read
""",
)
app.add_typer(operator, name="operator")

_Study = Annotated[Path, typer.Argument(help="The study's file, from `sabun keyvalue study`.")]
_Name = Annotated[str, typer.Argument(help="What the operator is called here.")]
_Database = Annotated[
    str | None,
    typer.Option(help="A file, or postgresql://USER@HOST/DATABASE; STUDY.reports beside the study's file by default."),
]
_Keys = Annotated[
    Path | None, typer.Option(help="The folder of keys, outside the database; STUDY.keys beside the study's file by default.")
]


@app.command()
def serve(
    files: Annotated[list[Path], typer.Argument(help="The files of one or several studies.")],
    port: Annotated[int, typer.Option(help="The port to listen at; 0 for any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen at; this machine alone by default.")] = "127.0.0.1",
    database: _Database = None,
    keys: _Keys = None,
    processes: Annotated[int, typer.Option(help="How many processes; more than one needs PostgreSQL.")] = 1,
    tickets: Annotated[bool, typer.Option("--tickets", help="Count only devices that enrolled with a ticket.")] = False,
    index_seed: Annotated[str, typer.Option(help="The server's seed in hex, for a study with a commitment.")] = "",
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate (PEM), for TLS without a proxy.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    url: Annotated[str, typer.Option(help="The server's address as browsers see it, behind a proxy.")] = "",
    retention_days: Annotated[int, typer.Option(help="How long reports stay after a round is frozen.")] = 30,
    check: Annotated[bool, typer.Option("--check", help="Make everything ready, say so, and stop.")] = False,
    json: Json = False,
) -> None:
    """Collect reports from devices over HTTP.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue serve study.json --check
    """
    from sabun.keyvalue import Study
    from sabun.keyvalue.typed import bytes_of

    require_extra()
    from sabun.service.launcher import launch, prepare
    from sabun.service.settings import Settings

    studies = [Study.load(file) for file in files]
    seed = bytes_of(index_seed)
    if seed and not any(study.terms.index_commitment for study in studies):
        raise ParameterError("index-seed must be left out; no study committed to one.")
    place, folder = _places(files[0], database, keys)
    settings = Settings(
        database=place,
        keys=str(folder),
        studies=tuple((study.to_json(), tickets, seed if study.terms.index_commitment else b"") for study in studies),
        host=host,
        port=port,
        processes=processes,
        tls_cert=None if tls_cert is None else str(tls_cert),
        tls_key=None if tls_key is None else str(tls_key),
        url=url.rstrip("/"),
        retention_days=retention_days,
    )
    tasks = prepare(settings)
    if tls_cert is None and host not in ("127.0.0.1", "localhost", "::1"):
        warn("reports travel unencrypted unless a proxy with TLS stands in front; an id that is seen can be used by others.")
    if check:
        _compile_estimates()
        if json:
            print_json({"studies": tasks, "address": settings.address(port)})
        else:
            print_line(f"Ready to serve {len(tasks)} {'study' if len(tasks) == 1 else 'studies'}.", style="bold")
        return

    def told(address: str) -> None:
        if json:
            print_json({"studies": tasks, "address": address, "dashboard": f"{address}/"})
        else:
            print_line(f"Dashboard: {address}/", style="bold")
            for task in tasks:
                print_line(f"Devices report to {address}/v1/studies/{task}")
        sys.stdout.flush()

    launch(settings, told=told)


@app.command()
def page(
    file: _Study,
    server: Annotated[str, typer.Option(help="The collector's address, as `sabun keyvalue serve` prints it.")],
    out: Annotated[Path, typer.Option(help="The new folder for the page and the client it loads.")],
    lang: Lang = None,
    json: Json = False,
) -> None:
    """Write a web page on which people take part: serve its folder from anywhere, or make it your own.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue page study.json --server http://127.0.0.1:8000 --out page
    """
    from sabun.keyvalue import Study
    from sabun.service.own_page import write_page

    written = write_page(Study.load(file), server, out, lang=lang)
    if json:
        print_json({"out": str(out), "files": [str(one) for one in written]})
    else:
        print_line(f"Wrote a page and its client to {str(out)!r}.", style="bold")
        print_line(f"  {Path(sys.executable).name} -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(out))} 8080")


@app.command()
def tickets(
    file: _Study,
    out: Annotated[Path, typer.Option(help="The new file for the tickets, one per line; hand each to one person.")],
    count: Annotated[int, typer.Option(help="How many.")] = 100,
    database: _Database = None,
    keys: _Keys = None,
    json: Json = False,
) -> None:
    """Issue tickets: one ticket enrols one device, which then counts.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue serve study.json --tickets --check

        sabun keyvalue tickets study.json --count 20 --out tickets.txt
    """
    from sabun.release.files import write_whole

    if not 1 <= count <= 1_000_000:
        raise ParameterError(f"count must be from 1 to 1000000; got {count}.")
    new_file(out)
    store, served = _opened(file, database, keys)
    if not served.tickets:
        raise ParameterError("the study must be served with --tickets; it takes part without enrolment.")
    from sabun.service.enrolment import issue_tickets

    issued = issue_tickets(store, served, count)
    write_whole(out, "".join(f"{ticket}\n" for ticket in issued).encode("ascii"), mode=0o600)
    if json:
        print_json({"out": str(out), "tickets": len(issued)})
    else:
        print_line(f"Wrote {counted(len(issued), 'ticket')} to {str(out)!r}; the store keeps only their hashes.", style="bold")


@operator.command("add")
def add(
    file: _Study,
    name: _Name,
    scope: Annotated[str, typer.Option(help="read, close or admin; several by commas.")] = "read",
    days: Annotated[int, typer.Option(help="How long the token lasts; 90 at most.")] = 90,
    every_study: Annotated[
        bool, typer.Option("--every-study", help="For every study in the store, not this one alone.")
    ] = False,
    database: _Database = None,
    keys: _Keys = None,
    json: Json = False,
) -> None:
    """Give somebody a token, shown once; a new one under the same name ends the older one.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue serve study.json --check

        sabun keyvalue operator add study.json alice --scope read,close
    """
    store, served = _opened(file, database, keys)
    from sabun.service.operators import add_operator

    scopes = [word.strip() for word in scope.split(",")]
    token = add_operator(store, name, scopes=scopes, served=None if every_study else served, days=days)
    if json:
        print_json({"name": name, "token": token, "scopes": scopes, "days": days})
        return
    print_line(token)
    print_line(f"This is the only time it is shown; it ends in {days} days. The store keeps its hash.")


@operator.command("revoke")
def revoke(
    file: _Study,
    name: _Name,
    every_study: Annotated[
        bool, typer.Option("--every-study", help="The token for every study in the store, not that for this one.")
    ] = False,
    database: _Database = None,
    keys: _Keys = None,
    json: Json = False,
) -> None:
    """End somebody's token at once.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue serve study.json --check

        sabun keyvalue operator add study.json alice

        sabun keyvalue operator revoke study.json alice
    """
    store, served = _opened(file, database, keys)
    from sabun.service.operators import revoke_operator

    revoke_operator(store, name, served=None if every_study else served)
    if json:
        print_json({"name": name, "revoked": True})
    else:
        print_line(f"The token of {name!r} has ended.", style="bold")


@operator.command("list")
def listed(file: _Study, database: _Database = None, keys: _Keys = None, json: Json = False) -> None:
    """Say who has a token, for what, until when.

    Example:

        sabun keyvalue study study.json --keys YouTube,LINE --epsilon 2

        sabun keyvalue serve study.json --check

        sabun keyvalue operator list study.json
    """
    from datetime import date, timedelta

    store, served = _opened(file, database, keys)
    from sabun.service.operators import operators

    found = [
        {
            "name": one.name,
            "scopes": list(one.scopes),
            "study": "every" if one.study is None else ("this" if one.study == served.number else "another"),
            "until": (date(1970, 1, 1) + timedelta(days=one.expires)).isoformat(),
        }
        for one in operators(store)
    ]
    if json:
        print_json({"operators": found})
        return
    for line in found:
        print_line(f"{line['name']}: {', '.join(line['scopes'])}, {line['study']} study, until {line['until']}")
    if not found:
        print_line("Nobody has a token.")


def _compile_estimates() -> None:
    """The first estimate after an installation is compiled, which takes seconds: now, so that no page waits for it."""
    from sabun.keyvalue import Study

    study = Study(keys=["a", "b"], epsilon=1, protocol="kv3", min_batch=1)
    tally = study.tally()
    tally.add_reports([study.client().report({"a": 0.5}) for _ in range(20)])
    tally.estimate()


def _opened(file: Path, database: str | None, keys: Path | None) -> tuple[Store, Served]:
    """The store that serves a study.

    Raises:
        ParameterError: There is none at these places: a new one would be another than the server's.
    """
    from sabun.keyvalue import Study

    require_extra()
    from sabun.service.settings import is_server, opened_store

    place, folder = _places(file, database, keys)
    study = Study.load(file)
    hint = "Name the server's own with --database and --keys, or make one with `sabun keyvalue serve ... --check`."
    if not is_server(place) and not Path(place).is_file():
        raise ParameterError(f"database must be a store that serves the study; there is none at {place!r}. {hint}")
    if not folder.is_dir():
        raise ParameterError(f"keys must be the folder of the server's keys; there is none at {str(folder)!r}. {hint}")
    store = opened_store(place, str(folder))
    served = store.served(study.task_id)
    if served is None:
        store.database.close()
        raise ParameterError(f"database must be a store that serves the study; it does not know it. {hint}")
    return store, served


def _places(file: Path, database: str | None, keys: Path | None) -> tuple[str, Path]:
    stem = file.with_suffix("")
    return database or f"{stem}.reports", keys or Path(f"{stem}.keys")
