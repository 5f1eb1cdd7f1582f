from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sabun.ledger.admission import Asked
from sabun.ledger.statement import Budget, Terms
from sabun.ledger.wording import at_least, at_most, percent, refusal

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
