from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.ledger import Ledger
from sabun.ledger.admission import Asked
from sabun.ledger.statement import Budget, Terms
from sabun.ledger.wording import at_least, at_most, percent, refusal
from sabun.privacy import Guarantee

amounts = st.fractions(min_value=0, max_value=10**9) | st.builds(lambda power: Fraction(10) ** power, st.integers(-400, 400))


@given(amounts)
def test_what_is_left_is_rounded_down_and_what_is_needed_up(amount):
    assert Fraction(at_most(amount)) <= amount <= Fraction(at_least(amount))


@given(amounts)
def test_six_digits_are_enough(amount):
    assert Fraction(at_least(amount)) - amount <= amount / 10**5


@given(amounts)
def test_a_share_in_percent_is_never_too_small(share):
    assert Fraction(percent(share).removesuffix(" %")) >= 100 * share


@given(amounts, st.fractions(min_value=Fraction(1, 10**40), max_value=1))
def test_a_refusal_never_reads_as_if_it_had_fitted(left, excess):
    terms = Terms(name="x", unit="u", relation="replace-one", budget=Budget(left + 1, Fraction(0)))
    error = refusal(terms, Budget(left, Fraction(0)), Asked(epsilon=left + excess, delta=Fraction(0), note=""))
    shown_left, shown_need = re.fullmatch(
        r"'x' has epsilon (\S+) of \S+ left; this release needs (\S+)\. Nothing.*", str(error)
    ).groups()
    assert Fraction(shown_left) < Fraction(shown_need)


@pytest.mark.parametrize("delta", ["0", "1/3000"])
def test_a_page_tells_no_less_as_spent_and_no_more_as_left(tmp_path, delta):
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon="8/7", delta="1/701", accounting="sums")
    ledger.charge(Guarantee(epsilon="1/3", delta=delta), purpose="p")
    lines = re.findall(r"^(epsilon|delta) +(\S+) budget, (\S+) spent, (\S+) left$", ledger.show(), re.MULTILINE)
    assert [word for word, *_ in lines] == ["epsilon", "delta"]
    for word, *told in lines:
        budget, spent, left = map(Fraction, told)
        assert budget <= getattr(ledger.budget, word)
        assert spent >= getattr(ledger.spent, word)
        assert left <= getattr(ledger.remaining, word)
    [(needed, _)] = re.findall(r"^1 .* committed +(\S+) +(\S+) +p$", ledger.show(), re.MULTILINE)
    assert Fraction(needed) >= Fraction(1, 3)
