"""What `sabun keyvalue` is given, read or refused."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sabun.errors import DataError, ParameterError
from sabun.telling.terminal.columns import parted

if TYPE_CHECKING:
    from sabun.keyvalue import Iteration, Study

__all__ = [
    "advised",
    "attack_of",
    "bytes_of",
    "distinct",
    "enrolled_of",
    "iteration_of",
    "keys_of",
    "pairs_of",
    "range_of",
    "truth_of",
]


def advised(protocol: str, aim: str | None) -> str:
    """The protocol, or what the advisor is to look for.

    Raises:
        ParameterError: There is no such aim, or the protocol is named already.
    """
    from sabun.keyvalue.client.terms import ADVISED

    words = {known: word for word, known in ADVISED.items()}
    if aim is None:
        return protocol
    if aim not in words:
        raise ParameterError(f"aim must be one of {', '.join(map(repr, words))}; got {aim!r:.20}.")
    if protocol != "auto":
        raise ParameterError(f"aim must be left out where the protocol is named; got {aim!r}.")
    return words[aim]


def keys_of(listed: str | None, file: Path | None) -> list[str]:
    """The keys of a list or of a file."""
    if (listed is None) == (file is None):
        raise ParameterError("keys must be given once: pass --keys or --keys-file.")
    lines = parted(listed) if listed is not None else Path(file or "").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip()]


def range_of(text: str) -> tuple[str, str]:
    """Two ends separated by a colon."""
    low, colon, high = text.partition(":")
    if not colon:
        raise ParameterError(f"value_range must be low:high; got {text!r:.40}.")
    return low, high


def pairs_of(given: list[str], made: Study) -> dict[str | int, float]:
    """What was typed; a value that is no number is handed on as it is, for the device to treat as absent."""
    names = {str(key): key for key in made.terms.keys}
    held: dict[str | int, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if made.terms.valueless and not equals:
            value = "yes"
        elif not equals:
            raise ParameterError("pair must be KEY=VALUE; it has no '='.")
        if names.get(name, name) in held:
            raise ParameterError("pair must name each key once; one came twice. Leave out all but one of its pairs.")
        held[names.get(name, name)] = value
    return held


def bytes_of(text: str, name: str = "index_seed") -> bytes:
    """Hex digits as bytes."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ParameterError(f"{name} must be hex digits; it is not.") from None


def distinct(files: list[Path]) -> list[Path]:
    """The files, unless two have the same content: their reports would count twice."""
    digests = {hashlib.sha256(file.read_bytes()).digest() for file in files}
    if len(digests) != len(files):
        raise DataError("merge must name different counters; two of the files are the same. Name each once.")
    return files


def enrolled_of(made: Study, file: Path) -> set[bytes]:
    """The report ids of the credentials in a file."""
    from sabun.keyvalue.client import report_id

    lines = file.read_text(encoding="utf-8").split()
    return {report_id(made.terms, bytes_of(line, "credential")) for line in lines}


def iteration_of(iterations: int | None, eta: float | None, start: str | None) -> Iteration | None:
    """How EM is to run, or None where nothing was said about it."""
    from sabun.keyvalue import Iteration

    told: dict[str, Any] = {name: value for name, value in (("iterations", iterations), ("eta", eta)) if value is not None}
    if start is not None:
        try:
            told["start"] = tuple(float(share) for share in start.split(","))
        except ValueError:
            raise ParameterError(f"start must be numbers separated by commas; got {start!r:.40}.") from None
    return Iteration(**told) if told else None


def attack_of(made: Study, kind: str | None, fraction: float, targets: list[str] | None) -> Any:
    """The fakes that were asked for, or None."""
    from sabun.keyvalue import Attack

    if kind is None:
        if targets:
            raise ParameterError("target must come with --attack; it came alone.")
        return None
    names = {str(key): place for place, key in enumerate(made.terms.keys)}
    unknown = [name for name in targets or [] if name not in names]
    if unknown or not targets:
        raise ParameterError(f"target must be keys of the study; got {unknown or None!r}. Pass --target KEY.")
    return Attack(kind=kind, fraction=fraction, targets=tuple(names[name] for name in targets))


def truth_of(made: Study, file: Path | None, population: str | None, frequency: float, mean: float | None) -> tuple[Any, Any]:
    """Frequencies and means of the made-up people, one per key."""
    keys = len(made.terms.keys)
    if population is not None:
        from sabun.datasets import keyvalue_population

        f, m = keyvalue_population(population)
        low, high = (float(end) for end in made.terms.value_range)
        return f, low + (m + 1) / 2 * (high - low)
    middle = float(sum(made.terms.value_range)) / 2 if mean is None else mean
    if file is None:
        return [frequency] * keys, [middle] * keys
    valued = not made.terms.valueless
    if not file.exists():
        raise ParameterError(f"truth must be a file; there is none called {str(file)!r}.")
    with open(file, newline="", encoding="utf-8") as text:
        rows = {row.get("key"): row for row in csv.DictReader(text)}
    try:
        chosen = [rows[str(key)] for key in made.terms.keys]
        return [float(row["frequency"]) for row in chosen], [float(row["mean"]) if valued else middle for row in chosen]
    except (KeyError, ValueError, TypeError):
        columns = "key, frequency, mean" if valued else "key, frequency"
        raise DataError(f"{file} must have the columns {columns} with a row for every key; it does not.") from None
