"""`sabun audit`: what is promised, tried on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun.errors import ParameterError
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.terminal.progress import progress_bar

if TYPE_CHECKING:
    from sabun.audit import Audit, Finding
    from sabun.audit.in_short import Summary

__all__ = ["command"]

_FAILED = 1
_MEANINGS = {
    "tight": "the loss was found exactly",
    "lower bound": "an attack showed that at least so much is lost",
    "checked": "something that the claim rests on was tried",
}


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ROOM|MECHANISM|CLAIM]", help="A room, a mechanism, a class, or words of a claim; else everything."
        ),
    ] = "",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="More trials, and checks that take long: up to an hour.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the table as a page, too.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many processes.")] = min(2, os.cpu_count() or 1),
    without: Annotated[
        str,
        typer.Option("--without", metavar="WORD", help="Leave out checks with this word, such as proof; the table says so."),
    ] = "",
    show: Annotated[bool, typer.Option("--list", help="Only list what there is to audit.")] = False,
    museum: Annotated[
        bool,
        typer.Option("--museum", help="Break copies of the package on purpose, one fault at a time: which check notices?"),
    ] = False,
    json: Json = False,
) -> None:
    """Check again what this version promises, with the libraries of this machine.

    No private data is needed; without a name everything is checked, which takes a minute or two. The exit code is 1 when
    anything fails, when something promises without evidence, or when everything that was asked for had to be left out.

    tight: the loss was found exactly.

    lower bound: an attack showed that at least so much is lost.

    checked: something that the claim rests on was tried.

    With --museum, known faults are planted in temporary copies of the package, all or those of one room, and the check that
    caught each of them must catch it again; with --thorough, every check of the room is tried. The exit code is 1 when one
    gets away that did not before.

    Example:

        sabun audit --list

        sabun audit Count

        sabun audit uniform_below --html audit.html

        sabun audit --museum records
    """
    if museum:
        _museum(name, search=thorough, workers=workers, html=html, json=json)
        return
    from sabun.audit import audit

    if show:
        _list(json=json)
        return
    if html is not None:
        new_file(html, name="html")
    with progress_bar("audit", quiet=json) as step:
        found = audit(name, thorough=thorough, workers=workers, progress=step, without=without)
    if html is not None:
        from sabun.release.files import write_whole
        from sabun.reports.audits import audit_page

        write_whole(html, audit_page(found.to_dict()).encode())
    if json:
        print_json(found.to_dict())
    else:
        _tell(found)
    if not found.passed:
        raise typer.Exit(_FAILED)


def _list(*, json: bool) -> None:
    """The names by room: classes, mechanisms, other parts."""
    from sabun.audit.named import grouped

    if json:
        print_json({"rooms": grouped()})
        return
    for room, kinds in grouped().items():
        print_line(room, style="bold cyan")
        for kind, names in kinds.items():
            print_line(f"  {kind}", style="bold")
            for name in names:
                print_line(f"    {name}")


def _museum(name: str, *, search: bool, workers: int, html: Path | None, json: bool) -> None:
    """Walks through the museum; what got away comes last."""
    from sabun.audit.museum import exhibits, tour

    if html is not None:
        raise ParameterError("--html must be left out with --museum. Use --json.")
    shown = exhibits(name)
    with progress_bar("museum", quiet=json) as step:
        walk = tour(shown, search=search, workers=workers, progress=step)
    if json:
        print_json(walk.to_dict())
    else:
        _tell_museum(walk)
    if not walk.passed:
        raise typer.Exit(_FAILED)


def _tell_museum(walk: Any) -> None:
    room = ""
    for sight in walk.sights:
        one = sight.exhibit
        if one.room != room:
            print_line(one.room, style="bold cyan")
        room = one.room
        sign, style = _SIGNS[True if sight.caught else None if sight.as_recorded else False]
        print_line(f"  {sign} {one.name} ({one.file}:{one.line()})", style=style)
        if one.history:
            print_line(f"        as in: {one.history}")
        if sight.caught:
            print_line(f"        caught in {sight.caught.seconds:.1f} s: {sight.caught.mechanism}: {sight.caught.claim}")
        else:
            print_line(f"        {'not caught' if sight.tried else 'not tried'}: {one.reason} Its tests: {one.test}")
    away = [sight.exhibit for sight in walk.sights if not sight.as_recorded]
    print_line(f"{walk.caught} of {len(walk.sights)} faults caught by the audit, without the digests of proofs.", style="bold")
    if walk.not_tried:
        print_line(
            f"{walk.not_tried} were not tried, for no check is known to notice them; --thorough tries every check of a room."
        )
    for one in away:
        print_line(f"  GOT AWAY: {one.room}: {one.name}", style="bold red")


_SIGNS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "dim")}


def _tell(found: Audit) -> None:
    """The table as a person reads it in a terminal: what failed comes once more at the end."""
    from sabun.audit.proofs import package

    summaries = {(one.room, one.mechanism): one for one in found.summaries}
    groups: dict[str, dict[str, list[Finding]]] = {}
    for one in found.findings:
        groups.setdefault(one.room, {}).setdefault(one.mechanism, []).append(one)
    for room, mechanisms in groups.items():
        print_line(room, style="bold cyan")
        for mechanism, findings in mechanisms.items():
            print_line(f"  {mechanism}", style="bold")
            if (room, mechanism) in summaries:
                _tell_promise(summaries[room, mechanism], whole=len(summaries) <= _FEW)
            for one in findings:
                sign, style = _SIGNS[one.passed]
                shown = one.absent or f"{one.shown}, {one.seconds:.1f} s"
                print_line(f"    {sign} {one.claim} [{shown}]", style=style)
                print_line(f"        {one.evidence}")
    print_line("; ".join(f"{word}: {meaning}" for word, meaning in _MEANINGS.items()) + ".", style="dim")
    if summaries:
        more = "" if len(summaries) <= _FEW else " Ask for one mechanism to read its whole claim and what its proof wants."
        print_line(f"Proofs lie below {package()}.{more}", style="dim")
    print_line(str(found), style="bold")
    for one in found.failures:
        print_line(f"  {one.room}: {one.mechanism}: {one.claim}: {one.evidence}", style="bold red")


_FEW = 12
"""So many promises are told with all that their proofs claim and want; of more that would be a book."""


def _tell_promise(one: Summary, *, whole: bool) -> None:
    print_line(f"    claims     {one.whole_claim if whole else one.claim}")
    print_line(f"    proved in  {', '.join(one.proofs)}")
    print_line(f"    tested     {', '.join(f'{many} {word}' for word, many in one.tested.items())}")
    print_line(f"    assumes    {'; '.join(one.assumes) or 'nothing further'}")
    if whole and one.preconditions:
        print_line(f"    and wants  ({one.proofs[0]}) {one.preconditions}")
