"""A page on which people take part, for whoever has a study: one file to begin with, and the JavaScript client it loads."""

from __future__ import annotations

import html
import re
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.release.files import write_whole
from sabun.telling.language import phrase, said, speaking

__all__ = ["write_page"]

_TEXTS = (
    phrase("Take part in a Sabun study"),
    phrase("Take part"),
    phrase("What you enter stays in this browser. What leaves it is one answer with noise, always of the same size."),
    phrase("Collector"),
    phrase("Study"),
    phrase("Ticket, if you were given one"),
    phrase("As you were given it: digits, and letters from a to f."),
    phrase("Most epsilon this browser may ever spend"),
    phrase("What you hold (leave empty what you do not)"),
    phrase("Enter the study first."),
    phrase("Send one answer"),
    phrase("yes or nothing"),
    phrase("counted before"),
    phrase("sent before"),
    phrase("counted"),
    phrase("refused"),
    phrase(" bytes left this browser. Asked again it gives the same bytes."),
)
"""What the page says; each stands in it between signs that no word has."""


def write_page(study: Study, server: str, folder: Path, *, lang: str | None = None) -> list[Path]:
    """Writes the page and its client into a new folder, in a language that is known; returns the files.

    Raises:
        ParameterError: The address is none, the folder is not new, or the language is not known.
    """
    if not _is_address(server):
        raise ParameterError(f"server must be an address such as http://127.0.0.1:8000; got {server!r}.")
    if folder.exists():
        raise ParameterError(f"out must be a new folder; got {str(folder)!r}, which exists.")
    text = (resources.files(__name__) / "index.html").read_text(encoding="utf-8")
    with speaking(lang) as spoken:
        text = text.replace('<html lang="en">', f'<html lang="{spoken}">')
        for words in _TEXTS:
            text = re.sub(rf"(?<=[>\"`}}]){re.escape(words)}(?=[ <\"`])", said(words), text)
    for name, value in (("server", server.rstrip("/")), ("task", study.terms.short_id.hex())):
        text = text.replace(f'<input name="{name}" ', f'<input name="{name}" value="{html.escape(value)}" ')
    content = {"index.html": text.encode("utf-8")}
    for one in (resources.files("sabun.service") / "assets" / "client").iterdir():
        if one.name.endswith((".js", ".d.ts")):
            content[f"client/{one.name}"] = one.read_bytes()
    (folder / "client").mkdir(parents=True)
    for name, body in content.items():
        write_whole(folder / name, body)
    return [folder / name for name in content]


def _is_address(server: str) -> bool:
    try:
        split = urlsplit(server)
        _ = split.port
    except ValueError:  # brackets that do not close, a port that is none
        return False
    return split.scheme in ("http", "https") and bool(split.hostname) and server.isprintable() and " " not in server
