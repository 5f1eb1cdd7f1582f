"""Errors in the words of the command line: what a program calls `n_records=None` was typed as an option, or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["in_typed_words", "options_of", "with_options"]

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|“[^”]*”|(?<!\S)--?[\w-]+""")
_SAID = (
    (r"pass basis_bounds=\(lower, upper\)", "pass --setting basis_bounds=low:high"),
    (r"[Pp]ass (?:x_|y_)?bounds=[([].*?[)\]](?=\.|$)", "pass --bounds NAME=LOW:HIGH"),
    (r"[Pp]ass schema=Schema\(.*\)(?=\.)", "pass --schema FILE"),
    (r"[Pp]ass classes=\[\.\.\.\]", "pass --classes A,B"),
    (r"\bGive by or where\b", "Give --by or --where"),
    (r"\bwith random_state=None\b", "without --random-state"),
    (r"[Uu]se X\.toarray\(\)", "store it as a full table"),
    (r"with OutlierCount\b", "with `sabun outliers count`"),
    (r"\bPublicModel\.save\b", "`sabun regression combine`"),
    (r"\ba PublicModel\b", "a model that anybody may have"),
    (r"(?:Make one|Read one) with (?:generate_key|load_key)\(.*?\)", "Make one with `sabun release keygen`"),
    (r"[Uu]se load_key\(path\)", "Name its file"),
    (r"\bRound it up with sabun[\w.]+", "Round it up"),
    (r" ?\(allow_large_delta\)", ""),
    (r"allow_per_parameter must be True", "--allow-per-parameter must be given"),
    (r"\bmust be True\b", "must be given"),
    (r"\bmust be None\b", "must be left out"),
    (r"\b(?:True or False|False or True)\b", "yes or no"),
    (r"\bNone or (?=an? |two |one )|,? or None\b", ""),
    (r"\bNone\b", "none"),
    (r"\bgot (?:False|True)\b", "got none"),
    (r"\b(?:a|the) (?:Schema|FileFormat|Ledger|Guarantee)\b", lambda found: found[0].lower()),
)
"""What is said to programs, and to people who type; where a value is typed as an option, the option."""

_TO_TYPE = (
    (r"(?<=how it is written: )encoding, (.*?), and separator", r"--encoding, \1, and --separator"),
    (r"(?<=say so if they are not: )separator", "--separator"),
    (r"(?<=name another )sheet", "one with --sheet"),
    (r"the sheet that was asked for", "the sheet that --sheet names"),
)
"""What pages say as it is, and translate: at a terminal, the option that does it."""


def options_of(command: Any, given: list[str]) -> dict[str, str]:
    """The options of the command that was typed, by the names that a program knows them by."""
    for word in given:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    params = getattr(command, "params", ())
    return {param.name: param.opts[0] for param in params if param.name and param.opts and param.opts[0].startswith("-")}


def in_typed_words(message: str, options: Mapping[str, str]) -> str:
    """The message with options for parameters; what stands in quotation marks was typed or read, and stays.

    Example:
        >>> in_typed_words("n_records must be at least 1; got 'n_records'. Give by or relation='add-remove'.",
        ...                {"n_records": "--n-records", "relation": "--relation"})
        "--n-records must be at least 1; got 'n_records'. Give by or --relation add-remove."
    """
    for name, option in options.items():
        message = re.sub(rf"\b{name}='([\w-]+)'", rf"{option} \1", message)
    for pattern, words in _SAID:
        message = re.sub(pattern, words, message)
    parts, end = list[str](), 0
    for quoted in _QUOTED.finditer(message):
        parts += [_typed(message[end : quoted.start()], options), quoted[0]]
        end = quoted.end()
    return "".join((*parts, _typed(message[end:], options)))


def with_options(message: str, options: Mapping[str, str]) -> str:
    """The message for whoever sits at a terminal: it begins with the option it is about, and names those that help.

    Example:
        >>> with_options("lang must be one of 'en', 'ja'; got 'fr'.", {"lang": "--lang"})
        "--lang must be one of 'en', 'ja'; got 'fr'."
    """
    first, must, rest = message.partition(" must ")
    message = options.get(first, first) + must + rest
    if "ledger" not in options:  # a command that charges nothing need not say so
        message = message.removesuffix(" Nothing was released, nothing was charged.")
    for pattern, words in _TO_TYPE:
        if set(re.findall(r"--[a-z]+", words)) <= set(options.values()):
            message = re.sub(pattern, words, message)
    return message


def _typed(text: str, options: Mapping[str, str]) -> str:
    def word(found: re.Match[str]) -> str:
        name = found[0]
        return options.get(name, name)  # a name that is typed as part of an option (--setting n_centers=20) stays

    return re.sub(r"(?<![\w./=-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w./(=])", word, text)
