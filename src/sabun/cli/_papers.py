"""The folder `sabun reproduce` writes: pages, tables, pictures, and a list of what is in it."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

from sabun.errors import DataError, InternalError, ParameterError
from sabun.foreign import parse_json
from sabun.release.files import write_whole
from sabun.reports.reproductions import Listed, in_words, reproduction_index, reproduction_page
from sabun.reproduction import Claim, Reproduction
from sabun.telling.harness import Run, machine, write_record
from sabun.telling.reproduction import Verdict

__all__ = ["FORMAT", "Shelf"]

FORMAT = "sabun-reproduction"
_LIST = "reproduction.json"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


class Shelf:
    """A folder of reproductions: new, empty, or made by an earlier run.

    Args:
        folder: Where it is or will be.

    Raises:
        ParameterError: The folder holds something else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listed = self._look()
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, reproduction: Reproduction, run: Run) -> list[Path]:
        """Writes one paper's files over those of an earlier run; returns their paths."""
        room = reproduction.room
        contents = {f"{room}.html": reproduction_page(reproduction, run)}
        contents |= {f"{room}/{_plain(table.name)}.csv": table.to_csv() for table in reproduction.tables}
        contents |= {f"{room}/{_plain(figure.name)}.svg": figure.svg for figure in reproduction.figures}
        if len(contents) != 1 + len(reproduction.tables) + len(reproduction.figures):
            raise InternalError(f"the reproduction {room!r} has two tables or two figures of one name.")
        self._remove(room, keep=set(contents))
        (self.folder / room).mkdir(exist_ok=True)
        entry = Listed(
            room=room,
            paper=reproduction.paper,
            summary=reproduction.summary,
            page=f"{room}.html",
            time=run.time,
            quick=run.quick,
            claims=tuple(dataclasses.asdict(claim) for claim in in_words(reproduction).claims),
        )
        kept = {"seconds": round(run.seconds, 3), "machine": machine(), "files": sorted(contents)}
        self._listed[room] = dataclasses.asdict(entry) | kept
        self._write_list()  # first, so that an interrupted run is still known to be ours
        for name, content in contents.items():
            write_whole(self.folder / name, content.encode("utf-8"), overwrite=True)
        return [self.folder / name for name in contents]

    def write_index(self) -> Path:
        """Writes the page that lists every paper in the folder."""
        names = [field.name for field in dataclasses.fields(Listed)]
        entries = [
            Listed(**{name: entry[name] for name in names if name in entry}) for _, entry in sorted(self._listed.items())
        ]
        page = self.folder / "index.html"
        write_whole(page, reproduction_index(entries).encode("utf-8"), overwrite=True)
        return page

    def _look(self) -> dict[str, dict[str, Any]]:
        if not self.folder.exists() or (self.folder.is_dir() and not any(self.folder.iterdir())):
            return {}
        marker = self.folder / _LIST
        if not (self.folder.is_dir() and marker.is_file()):
            raise ParameterError(
                f"out must be a new folder, an empty one, or one made by an earlier reproduction; got {str(self.folder)!r}. "
                "Choose another with --out."
            )
        return _read_list(marker)

    def _remove(self, room: str, *, keep: set[str]) -> None:
        """Takes away files of an earlier run that this one does not write; only names this command could have written."""
        for name in self._listed.get(room, {}).get("files", []):
            place, _, own = name.rpartition("/")
            if name not in keep and place == room and _PLAIN_NAME.fullmatch(own):
                with contextlib.suppress(FileNotFoundError):
                    (self.folder / room / own).unlink()

    def _write_list(self) -> None:
        write_record(self.folder / _LIST, {"format": FORMAT, "version": 1, "papers": self._listed})


def _plain(name: str) -> str:
    if not _PLAIN_NAME.fullmatch(name):
        raise InternalError(f"a table or figure must have a plain file name; got {name!r}.")
    return name


def _claims(kept: object) -> bool:
    """Whether these are claims as an earlier run wrote them; runs of earlier versions wrote none."""
    names = {field.name for field in dataclasses.fields(Claim)}
    return isinstance(kept, list) and all(
        isinstance(claim, dict)
        and set(claim) == names
        and all(isinstance(text, str) for text in claim.values())
        and claim["verdict"] in get_args(Verdict)
        for claim in kept
    )


def _read_list(marker: Path) -> dict[str, dict[str, Any]]:
    damaged = DataError(f"{marker} must be the list of an earlier reproduction; it is not. Choose another folder with --out.")
    try:
        record = parse_json(marker.read_bytes(), what=str(marker), error=DataError)
    except DataError:
        raise damaged from None
    if not isinstance(record, dict) or record.get("format") != FORMAT or not isinstance(record.get("papers"), dict):
        raise damaged
    needed = {"room": str, "paper": str, "summary": str, "page": str, "time": str, "quick": bool, "files": list}
    for room, entry in record["papers"].items():
        good = isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in needed.items())
        if not good or not _PLAIN_NAME.fullmatch(room) or entry["page"] != f"{room}.html":
            raise damaged
        if not all(isinstance(name, str) for name in entry["files"]) or not _claims(entry.get("claims", [])):
            raise damaged
    return dict(record["papers"])
