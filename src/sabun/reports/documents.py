"""Whole pages: one release, or several in one file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from sabun import checks
from sabun.asking import renamed
from sabun.ledger import Ledger
from sabun.ledger.wording import at_least, at_most, percent
from sabun.privacy.amounts import AmountLike, exact_positive, plain
from sabun.release import Release
from sabun.release.files import write_whole
from sabun.release.outsiders import Statement
from sabun.release.signature import TrustedKeys
from sabun.reports.facts import Chapter, charts_beside, facts
from sabun.reports.page import render
from sabun.reports.purposes import in_full
from sabun.telling.language import speaking
from sabun.telling.story import Chart, Grid

__all__ = ["budget", "collection", "report", "save_page", "statement"]

_MOST_PURPOSES = 12


@renamed(trusted="trusted_key")
def report(release: Release, *, trusted_key: TrustedKeys = None, public: Any = None, lang: str | None = None) -> str:
    """One release as a page of HTML that stands alone.

    A result of a seeded coin is shown under a banner that says NOT PRIVATE.

    Args:
        release: What to show.
        trusted_key: Public keys the reader trusts; with them, a release that none of them signed is refused.
        public: For weights on a public table: that table, to draw its columns with and without the weights.
        lang: "en" or "ja"; that of the locale when left out.

    Raises:
        ReleaseError: The signature does not fit the content, or is not by a trusted key.
        ParameterError: The public table does not belong to the release.

    Example:
        >>> from sabun import Guarantee
        >>> from sabun.release import Provenance
        >>> release = Release(value={"count": 42}, guarantee=Guarantee(epsilon=0.5, unit="patient"),
        ...                   provenance=Provenance(kind="count", mechanism="discrete Laplace"))
        >>> page = report(release, lang="en")
        >>> page.startswith("<!DOCTYPE html>"), "62.3 % of the time" in page
        (True, True)
    """
    with speaking(lang):
        charts = () if public is None else charts_beside(release, public)
        return render("release.html", facts=facts(release, trusted_key=trusted_key), charts=charts, version=version("sabun"))


def collection(
    chapters: Sequence[Chapter],
    *,
    heading: str,
    introduction: Sequence[str] = (),
    grids: Sequence[Grid] = (),
    charts: Sequence[Chart] = (),
    lang: str | None = None,
) -> str:
    """Several releases as one page, with the answers in short at the top.

    Args:
        chapters: The releases, each with its question; their names must differ.
        heading: The page's heading.
        introduction: Sentences under it.
        grids: Tables that stand under the short answers.
        charts: Pictures under those.
        lang: "en" or "ja", as the chapters' facts were made; that of the locale when left out.
    """
    names = [chapter.name for chapter in chapters]
    good = len(set(names)) == len(names) and all(re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name) for name in names)
    checks.require(good, "named differently, with letters, digits and hyphens", chapters=names)
    with speaking(lang):
        return render(
            "collection.html",
            chapters=chapters,
            heading=heading,
            introduction=introduction,
            grids=grids,
            charts=charts,
            version=version("sabun"),
        )


def statement(stated: Statement, *, trusted: TrustedKeys = None, lang: str | None = None) -> str:
    """A ledger's statement as a page: what was released, when, at what cost, what is left.

    Args:
        stated: What the ledger says of itself.
        trusted: Public keys the reader trusts; with them, a statement that none of them signed is refused.
        lang: "en" or "ja"; that of the locale when left out.

    Raises:
        ReleaseError: The signature does not fit the content, or is not by a trusted key.
    """
    signer = None if stated.signature is None and trusted is None else stated.verify(trusted)
    says = stated.ledger
    with speaking(lang):
        return render(
            "statement.html",
            stated=stated,
            promised=[at_most(Fraction(says["standing"]["promised"][name])) for name in ("epsilon", "delta")],
            used=percent(Fraction(says["share_used"])),
            left=[at_most(Fraction(says["remaining"][name])) for name in ("epsilon", "delta")],
            entries=[
                (entry, in_full(entry["purpose"]), *(at_least(Fraction(entry[name])) for name in ("epsilon", "delta")))
                for entry in says["entries"]
            ],
            signer=signer,
            version=version("sabun"),
        )


def budget(ledger: Ledger, *, epsilon: AmountLike | None = None, last: int | None = 20, lang: str | None = None) -> str:
    """A ledger's budget drawn: the share that is used, what on, what questions of a size take and how many such are left.

    It prints no running (epsilon, delta): what was asked so far is no promise, the budget is.

    Args:
        ledger: Whose page it is.
        epsilon: A size of question to tell the cost of, beside the usual ones.
        last: How many of the newest charges to list; None lists all.
        lang: "en" or "ja"; that of the locale when left out.
    """
    sizes = sorted(
        {*map(Fraction, ("0.05", "0.1", "0.3", "1")), *(() if epsilon is None else (exact_positive(epsilon, name="epsilon"),))}
    )
    forecasts = [ledger.forecast(size) for size in sizes]
    purposes, accounts = ledger.uses("purpose"), ledger.uses("account")
    shown = dict(list(purposes.items())[:_MOST_PURPOSES])
    with speaking(lang):
        return render(
            "budget.html",
            ledger=ledger,
            promised=[at_most(amount) for amount in ledger.promised],
            now=at_most(ledger.budget.epsilon),
            left=[at_most(amount) for amount in ledger.remaining],
            used=_drawn(ledger.share_used),
            delta=_drawn(ledger.delta_used()) if ledger.delta_used() else None,
            alone=ledger.to_dict(last=0)["standing"]["rule"] != "sums",
            accounts=[
                (name, _drawn(share), _drawn(accounts.get(name, Fraction(0))), _drawn(ledger.delta_used(name)))
                for name, share in ledger.accounts().items()
            ],
            purposes=[(in_full(words), _drawn(share)) for words, share in shown.items()],
            others=(len(purposes) - len(shown), _drawn(sum(purposes.values(), Fraction(0)) - sum(shown.values(), Fraction(0)))),
            forecasts=[
                (plain(one.epsilon), _drawn(min(one.share, Fraction(1))), percent(one.share), one.left) for one in forecasts
            ],
            entries=[
                (entry, in_full(entry.purpose), at_least(entry.epsilon), at_least(entry.delta))
                for entry in reversed(ledger.entries(last=last))
            ],
            version=version("sabun"),
        )


def _drawn(share: Fraction) -> tuple[str, str]:
    """A share in words, and as the width of a bar, rounded up: what is gone is never drawn too small."""
    return percent(share), f"{float(-(-min(share, Fraction(1)) * 1000 // 1)) / 10:g}%"


def save_page(page: str, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Writes a page to a file that is complete or not there at all.

    Raises:
        DataError: The file exists and `overwrite` is False, or cannot be written.
    """
    write_whole(path, page.encode("utf-8", "replace"), overwrite=overwrite)
