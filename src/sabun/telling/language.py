"""In which language a page speaks. The code holds the English; one catalogue, `ja.toml`, holds the Japanese for each text.

    said("Of {keys}, “{key}” is held by the most people.", keys="3 keys", key="LINE")

Outside `speaking` everything is English, so whoever reads a log or a JSON answer finds one language there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from sabun import checks

__all__ = [
    "LANGUAGES",
    "catalogue",
    "chosen",
    "complained",
    "known",
    "language",
    "phrase",
    "retold",
    "said",
    "speaking",
    "tables",
]

LANGUAGES = ("en", "ja")

_spoken: ContextVar[str | None] = ContextVar("sabun_language", default=None)


def chosen(lang: str | None = None) -> str:
    """The language to speak: the one asked for, the one spoken now, or that of the locale.

    Args:
        lang: "en", "ja" or None.

    Raises:
        ParameterError: It is another language.
    """
    if lang is not None:
        checks.one_of(LANGUAGES, lang=lang)
        return lang
    if (now := _spoken.get()) is not None:
        return now
    locale = next((text for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (text := os.environ.get(name))), "")
    return "ja" if locale.partition(".")[0].partition("_")[0].lower() in ("ja", "japanese") else "en"


def language() -> str:
    """The language that is spoken now."""
    return _spoken.get() or "en"


@contextmanager
def speaking(lang: str | None = None) -> Iterator[str]:
    """Inside, `said` speaks this language; see `chosen`.

    Example:
        >>> with speaking("ja"):
        ...     said("yes")
        'はい'
    """
    lang = chosen(lang)
    before = _spoken.set(lang)
    try:
        yield lang
    finally:
        _spoken.reset(before)


def said(text: str, /, **fill: object) -> str:
    """A text of ours in the language that is spoken; in English where the catalogue has it not.

    Args:
        text: The English, with names in braces where something is filled in.
        fill: What is filled in; left alone where it is empty, so that a text from a file may hold braces.

    Example:
        >>> said("About {share:.0%}", share=0.25)
        'About 25%'
    """
    words = known(text) or text
    return words.format(**fill) if fill else words


def known(text: str) -> str | None:
    """What the catalogue has for a text; None for English, and for what is not in it."""
    return None if language() == "en" else catalogue(language()).get(text)


def phrase(text: str) -> str:
    """The text itself, marked as one that is said later, so that the suite asks for its Japanese."""
    return text


def retold(text: str) -> str:
    """A text that was filled in where nobody knew the page's language: in a file, or in a run.

    Its English is found in the table `filled` of the catalogue by what stands between the braces.

    Example:
        >>> with speaking("ja"):
        ...     retold("each patient has at most one row")
        'どの患者の行も一つまでです'
    """
    if language() == "en" or (words := known(text)) is not None:
        return text if language() == "en" else str(words)
    for pattern, words in _patterns(language()):
        if (found := pattern.fullmatch(text)) is not None:
            return words.format(**{name: _retold_list(part) or retold(part) for name, part in found.groupdict().items()})
    return _retold_list(text) or text


def _retold_list(text: str) -> str | None:
    """A list of texts that are known each by itself; in a hole it comes first, or one pattern would take all of it."""
    for mark in ("; ", ", "):
        parts = text.split(mark)
        if len(parts) > 1 and all(retold(part) != part for part in parts):
            return said(", ").join(map(retold, parts))
    return None


def complained(text: str) -> str:
    """An error in the language that is spoken, sentence by sentence; as it is where one of them is not known.

    The catalogue has sentences in its table `refusals`; in `rules` it has what a value must be, for all errors of that form.

    Example:
        >>> with speaking("ja"):
        ...     complained("radius must be finite and > 0; got -1.0.")
        '半径 は 0 より大きい有限の数にしてください（いまは -1.0）。'
    """
    return text if language() == "en" else _in_sentences(text) or text


def _in_sentences(text: str) -> str | None:
    for pattern, words in _complaints(language()):
        if (found := pattern.fullmatch(text)) is not None:
            parts = found.groupdict()
            rest = parts.pop("_rest")
            if (more := _in_sentences(rest) if rest else "") is not None:
                return words.format(**{name: retold(part) for name, part in parts.items()}) + more
    return None


@cache
def catalogue(lang: str) -> dict[str, str]:
    """Every text of a language by its English."""
    return {english: text for table in tables(lang).values() for english, text in table.items()}


@cache
def tables(lang: str) -> dict[str, dict[str, str]]:
    """The catalogue of a language as it is written; read when the first page in that language is made."""
    import tomllib
    from importlib import resources

    found: dict[str, dict[str, str]] = tomllib.loads(
        resources.files("sabun.telling").joinpath(f"{lang}.toml").read_text(encoding="utf-8")
    )
    return found


@cache
def _patterns(lang: str) -> list[tuple[re.Pattern[str], str]]:
    """The table `filled` as patterns, those with the most fixed letters first."""
    found = [(_pattern(english), text) for english, text in tables(lang).get("filled", {}).items()]
    return sorted(found, key=lambda entry: -len(re.sub(r"\(\?P.*?\)", "", entry[0].pattern)))


@cache
def _complaints(lang: str) -> list[tuple[re.Pattern[str], str]]:
    """Sentences of errors as patterns that leave what comes after them, those with the most fixed letters first.

    Those whose first words are fixed come before all others, which would take a whole sentence for what they fill in.
    """
    given = tables(lang)
    form, words = _RULE, given["refusals"][_RULE]
    rules = {form.replace("{rule}", rule): words.replace("{rule}", own) for rule, own in given["rules"].items()}
    sentences = {text: own for text, own in given["refusals"].items() if text != _RULE} | rules
    longest = sorted(sentences, key=lambda text: (text[0] == "{", -len(re.sub(r"\{\w+\}", "", text))))
    return [(_pattern(text, r"(?: (?P<_rest>.+))?"), sentences[text]) for text in longest]


_RULE = "{what} must be {rule}; got {value}."
"""What `sabun.checks.require` says."""


def _pattern(english: str, after: str = "") -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", english)
    own = "".join(f"(?P<{part}>.+?)" if place % 2 else re.escape(part) for place, part in enumerate(parts))
    return re.compile(own + after, re.DOTALL)
