from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.html_checks import Page, problems
from reports.report_samples import EVIL, evil_release, release_of
from sabun.errors import DataError, ParameterError, ReleaseError
from sabun.release import Release, generate_key
from sabun.reports import Chapter, collection, facts, report, save_page


def test_a_page_has_everything_and_needs_nothing() -> None:
    release = release_of(
        {"count": 42, "interval": [30, 54], "weights": np.linspace(0, 3, 200), "few": [1.0, -2.0]},
        guarantee={"delta": 1e-6, "assumptions": ("each patient has at most one row",)},
        provenance={"parameters": {"column": "age"}, "schema_hash": "abc123", "notes": ("Ask us.",)},
    ).sign(generate_key())
    page = report(release)
    assert problems(page) == []
    text = Page(page).text
    for words in (
        "42 ± 12",
        "no outcome would be more than 1.65 (rounded up) times",
        "added probability of at most 1e-06",
        "right at most 62.3 % of the time",
        "each patient has at most one row",
        "sabun/release/publish.proof.md",
        "tests/release/test_publish.py",
        "Nothing was changed since it was signed by the key",
        "abc123",
        "column age",
        "Ask us.",
    ):
        assert words in text, words
    assert "http://" not in page
    assert "https://" not in page
    assert "Content-Security-Policy" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_an_interval_wider_than_the_answer_is_said_to_be_wide() -> None:
    assert "The interval is wider than the answer" in report(release_of({"count": 42, "interval": [0, 90]}))
    assert "The interval is wider than the answer" not in report(release_of({"count": 42, "interval": [30, 54]}))


def test_the_sections_come_in_the_order_a_reader_asks() -> None:
    wanted = [
        "The answer",
        "What is promised",
        "What was assumed",
        "How it was computed",
        "The result in full",
        "What stands behind the promise",
        "Where it comes from",
    ]
    assert [words for level, words in Page(report(release_of())).headings if level == 2] == wanted


def test_markup_in_a_release_stays_text() -> None:
    for kind in (EVIL, "outliers." + EVIL, "density.x", "regression.x", "keyvalue.x", "learning.x"):
        page = report(evil_release(kind))
        assert problems(page) == []
        assert "<script" not in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "alert(1)" in Page(page).text


_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    _TEXTS,
    st.fractions(),
    st.lists(st.floats(), max_size=5).map(np.array),
    st.lists(st.integers(0, 9), max_size=50),
)
_TREES = st.dictionaries(
    _TEXTS, st.recursive(_LEAVES, lambda inner: st.dictionaries(_TEXTS, inner, max_size=3)), min_size=1, max_size=4
)


@settings(max_examples=25, deadline=None)
@given(_TREES, st.sampled_from(["anything", "outliers.count", "density.weights", "regression.fit", "keyvalue.x", "learning.x"]))
def test_any_release_becomes_a_sound_page(value: dict[str, Any], kind: str) -> None:
    assert problems(report(release_of(value, provenance={"kind": kind}))) == []


def test_a_simulated_result_says_so_loudly() -> None:
    release = release_of(guarantee={"simulated": True})
    page = report(release)
    assert problems(page) == []
    assert re.search(r'<div class="alarm" role="alert">\s*<p>NOT PRIVATE: ', page)
    assert "NOT PRIVATE" not in report(release_of())


def test_an_infinite_epsilon_says_so_loudly() -> None:
    text = Page(report(release_of(guarantee={"epsilon": math.inf}))).text
    assert "NO GUARANTEE" in text
    assert "may expose a single patient" in text
    assert "best guess" not in text


def test_per_parameter_promises_show_what_they_add_up_to() -> None:
    text = Page(report(release_of(guarantee={"epsilon": 0.1, "scope": "per-parameter", "joint_epsilon": 4}))).text
    assert "epsilon (all together) 4" in text
    assert "Each released number by itself has epsilon 0.1" in text


def test_a_forged_release_gets_no_page() -> None:
    signed = release_of().sign(generate_key())
    forged = Release(value={"count": 43}, guarantee=signed.guarantee, provenance=signed.provenance, signature=signed.signature)
    with pytest.raises(ReleaseError, match="changed or forged"):
        report(forged)


def test_the_signer_is_checked_against_trusted_keys() -> None:
    key = generate_key()
    assert "Signed by the trusted key" in report(release_of().sign(key), trusted=key.public_key())
    with pytest.raises(ReleaseError, match="must be signed by a trusted key"):
        report(release_of().sign(key), trusted_key=generate_key().public_key())
    with pytest.raises(ReleaseError, match="must be signed; it is not"):
        report(release_of(), trusted_key=key.public_key())
    unsigned = report(release_of())
    assert "Not signed: nobody stands behind this file" in unsigned
    assert "the file&#39;s own claim; only the owner of the ledger can confirm it" in unsigned


def test_another_version_is_named() -> None:
    text = Page(report(release_of(provenance={"software": {"sabun": "0.0.1"}}))).text
    assert "made with Sabun 0.0.1; the proofs below are those of Sabun" in text


def test_long_things_are_cut_and_said_to_be() -> None:
    release = release_of({f"name{place}": place for place in range(300)}, provenance={"parameters": {"t": "y" * 1000}})
    page = report(release)
    assert "100 more results in the release file." in page
    assert "y" * 241 not in page


def test_a_flood_of_text_does_not_make_a_flood_of_page() -> None:
    nested: Any = "z"
    for _ in range(5):
        nested = [nested] * 12
    flood = release_of(
        {"w" * 100_000: 1, "nested": nested, "many": {f"n{place}": place for place in range(5000)}},
        guarantee={"assumptions": ("v" * 1_000_000,), "mechanism": "m" * 100_000},
        provenance={"kind": "k" * 1_000_000, "notes": ("n" * 1_000_000,)},
    )
    page = report(flood)
    assert problems(page) == []
    assert len(page) < 300_000


def test_equal_releases_give_equal_pages() -> None:
    release = release_of({"weights": np.linspace(0, 1, 100)}, provenance={"time": "2026-01-31T12:00:00Z"})
    assert report(release) == report(release)


def chapters() -> Iterator[Chapter]:
    for name in ("one", "two"):
        yield Chapter(
            name=name,
            question=f"How many {name}?",
            facts=facts(release_of({"count": 42, "list": [1.0, 2.0]})),
            file=f"{name}.json",
            remarks=("A remark.",),
        )


def test_several_releases_fit_on_one_page() -> None:
    page = collection(list(chapters()), heading="Demo", introduction=("Hello.",))
    found = Page(page)
    assert found.problems == []
    assert [words for level, words in found.headings if level == 2] == [
        "In short",
        "How many one?",
        "How many two?",
        "What every release passes through",
    ]
    assert "#one" in found.links
    assert "two.json" in found.links


def test_chapters_must_have_different_names() -> None:
    one = next(chapters())
    for bad in ([one, one], [dataclasses.replace(one, name="a b")]):
        with pytest.raises(ParameterError, match="chapters must be named differently, with letters, digits and hyphens; got"):
            collection(bad, heading="Demo")


def test_a_page_is_not_written_over_another(tmp_path: Path) -> None:
    save_page("<p>1</p>", tmp_path / "x.html")
    with pytest.raises(DataError, match="must be a new file"):
        save_page("<p>2</p>", tmp_path / "x.html")
    save_page("<p>2</p>", tmp_path / "x.html", overwrite=True)
    assert (tmp_path / "x.html").read_text() == "<p>2</p>"


def test_nothing_is_read_but_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page must not look at tables or ledgers: only files of the package are opened while it is made."""
    report(release_of({"x": [1.0, 2.0]}))  # templates and fonts are read once
    import builtins

    def refuse(*arguments: object, **named: object) -> object:
        raise AssertionError(f"opened {arguments}")

    monkeypatch.setattr(builtins, "open", refuse)
    report(release_of({"x": [1.0, 3.0]}))


def test_amounts_are_never_rounded_towards_optimism() -> None:
    assert "0.333334" in report(release_of(guarantee={"epsilon": Fraction(1, 3)}))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_light_and_dark() -> None:
    """WCAG 2 level AA asks for 4.5 between text and background."""
    style = report(release_of())
    light, dark = (
        dict(re.findall(r"(--[a-z-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)[:2]
    )
    assert len(dark) >= 10
    for colours in (light, dark):
        for ink in ("--ink", "--soft", "--accent", "--second"):
            for ground in ("--paper", "--card"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        assert contrast(colours["--alarm-ink"], colours["--alarm"]) >= 4.5
