"""The page that draws a ledger's budget."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal import exit_code
from reports.html_checks import Page, problems
from sabun import Guarantee, Ledger
from sabun.errors import ParameterError
from sabun.reports import budget
from sabun.reports.documents import _drawn


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    accounts = {"cardiology": "1/2", "research": "1/3"}
    made = Ledger.create(
        tmp_path / "c", name="clinic & co", unit="patient", epsilon=3, delta="1e-6", ceiling=4, accounts=accounts
    )
    for account, epsilon, purpose in (
        ("cardiology", "0.6", "mean"),
        ("", "0.3", "<b>count</b>"),
        ("cardiology", "0.3", "mean"),
    ):
        book = Ledger.open(tmp_path / "c", account=account)
        book.charge(Guarantee(epsilon=epsilon, unit="patient"), purpose=purpose)
    made.reserve(Guarantee(epsilon=1, unit="patient"), purpose="given back").void()
    return made


def test_a_budget_is_drawn_with_what_is_used_what_on_and_what_is_left(ledger: Ledger) -> None:
    page = budget(ledger, epsilon="0.02")
    assert problems(page) == []
    words = " ".join(" ".join(Page(page).words).split())
    assert ledger.share_used == Fraction(2, 5)
    for said in ("40 % of the budget is used", "ε 4, δ 1e-06", "Granted so far ε 3", "cardiology", "<b>count</b> 10 %"):
        assert said in words, said
    for size in ("0.02", "0.05", "0.1", "0.3", "1"):
        found = ledger.forecast(size)
        assert f"ε {size} " in words
        assert f"{found.left} " in words
    assert "spent" not in words.replace("charges are spent", "")
    assert "1.2" not in words  # the sum of what was stated is no promise, and is not shown
    assert 'style="width: 40%"' in page


def test_what_it_went_on_adds_up_to_what_is_used(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.uses() == {"mean": Fraction(3, 10), "<b>count</b>": Fraction(1, 10)}
    assert ledger.uses("account") == {"cardiology": Fraction(3, 10), "": Fraction(1, 10)}
    many = Ledger.create(tmp_path / "m", name="m", unit="patient", epsilon=3, delta="1e-6")
    for number in range(60):
        many.charge(Guarantee(epsilon="0.06", unit="patient"), purpose=f"question {number % 20}")
    assert many.spent.epsilon > 3  # by the order
    assert sum(many.uses().values()) == many.share_used < 1
    assert "8 other purposes" in budget(many)
    with pytest.raises(ParameterError, match="by must be one of"):
        many.uses("analyst")


def test_a_digest_stands_by_its_first_digits_with_the_whole_beneath(ledger: Ledger) -> None:
    digest = "0123456789abcdef" * 4
    ledger.charge(Guarantee(epsilon="0.1", unit="patient"), purpose=f"count <b> (parameters {digest})")
    page = budget(ledger)
    assert problems(page) == []
    assert page.count(f'count &lt;b&gt; (parameters <span title="{digest}">0123456789ab…</span>)') == 2
    assert page.count(digest) == 2, "nowhere else"


def test_an_empty_ledger_has_a_page(tmp_path: Path) -> None:
    page = budget(Ledger.create(tmp_path / "e", name="e", epsilon="1/3"))
    assert problems(page) == []
    assert "Nothing was charged yet." in page


def test_ledger_show_draws_a_page_too(tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert exit_code("ledger", "show", str(tmp_path / "c"), "--html", str(out), "--epsilon", "0.02") == 0
    assert "█" in capsys.readouterr().out
    assert problems(out.read_text("utf-8")) == []
    assert exit_code("ledger", "show", str(tmp_path / "c"), "--html", str(out)) == 2  # never over another file


def test_a_budget_is_drawn_in_japanese(tmp_path: Path, ledger: Ledger) -> None:
    asked = f"summaries.mean on 年齢 (parameters {'0123456789abcdef' * 4})"
    ledger.reserve(Guarantee(epsilon="0.1", unit="patient"), purpose=asked).commit(b"kept")
    page = budget(ledger, lang="ja")
    assert problems(page) == []
    assert "<td>確定</td>" in page
    assert "committed" not in page
    words = " ".join(" ".join(Page(page).words).split())
    for said in (
        "43.4 % 予算のうち使われた割合です。",
        "これまでに認められた分 ε 3",
        "患者。隣接関係は置き換え（replace-one）",
        "要約：平均（年齢）［設定 0123456789ab…",
        " 取り消し ",
        "残りの回数",
        "最近の記帳",
    ):
        assert said in words, said
    out = tmp_path / "page.html"
    assert exit_code("ledger", "show", str(tmp_path / "c"), "--html", str(out), "--lang", "ja") == 0
    assert '<html lang="ja">' in out.read_text("utf-8")
    assert exit_code("ledger", "show", str(tmp_path / "c"), "--lang", "fr") == 2


def test_what_is_gone_of_delta_is_drawn_beside_the_budget(ledger: Ledger, tmp_path: Path) -> None:
    """With that gone little may be left to ask, as the terminal says too."""
    assert "known by" not in budget(ledger)
    Ledger.open(tmp_path / "c", account="cardiology").charge(
        Guarantee(epsilon="0.1", delta="1e-7", unit="patient"), purpose="mean"
    )
    page = budget(ledger)
    assert problems(page) == []
    words = " ".join(" ".join(Page(page).words).split())
    assert (ledger.delta_used(), ledger.delta_used("cardiology")) == (Fraction(1, 4), Fraction(1, 2))
    assert "25 % of the δ for releases known by (ε, δ) alone is used" in words
    assert "of its δ for such releases" in words
    assert 'style="width: 25%"' in page
    for said in ("25 % of the delta for releases known by (epsilon, delta) alone", "50 % of cardiology's delta"):
        assert said in ledger.show()


def test_a_ledger_is_shown_through_an_account(tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    through = Ledger.open(tmp_path / "c", account="cardiology")
    assert exit_code("ledger", "show", f"{tmp_path / 'c'}::cardiology", "--epsilon", "0.1") == 0
    said = capsys.readouterr().out
    assert "through the account cardiology:" in said
    assert through.forecast("0.1").left < ledger.forecast("0.1").left
    assert f" {through.forecast('0.1').left}\n" in said
    assert exit_code("ledger", "rest", f"{tmp_path / 'c'}::cardiology") == 0
    assert exit_code("ledger", "show", f"{tmp_path / 'c'}::nobody") == 2
    assert "account must be an account of" in capsys.readouterr().err


@given(st.fractions(min_value=0, max_value=2))
def test_what_is_gone_is_never_drawn_or_told_too_small(share: Fraction) -> None:
    told, width = _drawn(share)
    assert Fraction(told.removesuffix(" %")) >= 100 * share
    assert 0 <= Fraction(width.removesuffix("%")) - 100 * min(share, Fraction(1)) <= Fraction(1, 10)
