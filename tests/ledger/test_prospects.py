"""What a ledger shows of its budget: pages, forecasts, the rest."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ledger.by_shares import charged, create, gaussian, rows_of
from ledger.test_model import MemoryStore
from sabun.errors import ParameterError
from sabun.ledger import Ledger
from sabun.ledger.row import Row
from sabun.privacy import Price, rho_of
from sabun.privacy.events import DiscreteGaussian


def test_a_page_draws_what_is_used_and_never_a_running_sum(book, promise):
    for _ in range(10):
        book.charge(promise("0.1"), purpose="p")
    page = book.show(last=0, epsilon="0.2")
    assert "promise   epsilon 3, delta 1e-06 for everything together" in page
    assert "spent" not in page
    [used] = [line for line in page.splitlines() if line.startswith("used")]
    share = book.share_used
    assert used.split()[1].count("█") == -(-share * 40 // 1)
    assert used.endswith("% of the budget")
    found = book.forecast("0.2")
    assert f"epsilon 0.2  {float(-(-found.share * 1000 // 1)) / 10:g} %" in " ".join(page.splitlines())


def test_a_page_shows_the_delta_that_is_gone_beside_the_budget(place, promise):
    ledger = create(place, accounts={"heart": "1/2"})
    assert "of the delta" not in ledger.show()
    Ledger.open(place, account="heart").charge(promise("0.001", "2e-7"), purpose="p")
    lines = ledger.show(last=0).splitlines()
    assert f"          {'█' * 20}{'·' * 20} 50 % of the delta for releases known by (epsilon, delta) alone" in lines
    assert f"          {'█' * 40} 100 % of heart's delta for such releases" in lines


def test_a_page_of_a_ledger_that_came_to_count_by_sums_shows_what_is_left(place, promise):
    ledger = create(place, epsilon=1)
    ledger.charge(promise("1/2", "9e-7"), purpose="p")
    page = ledger.show(last=0)
    assert "counted   by sums: the first release needed more delta than its share" in page
    assert "epsilon   1 budget, 0.5 spent, 0.5 left" in page
    assert "delta     1e-06 budget, 9e-07 spent, 1e-07 left" in page
    assert " 90 % of the delta" in page


def test_what_was_stated_is_called_spent_only_where_sums_decide(book, place, promise):
    assert charged(book, promise("0.1"), 60) == 39
    told = book.to_dict(last=0)
    assert "spent" not in told
    assert told["stated_sum"] == {"epsilon": "39/10", "delta": "0/1"}
    assert Fraction(told["share_used"]) == book.share_used
    by_sums = create(MemoryStore(), accounting="sums")
    by_sums.charge(promise("0.1"), purpose="p")
    told = by_sums.to_dict(last=0)
    assert (told["spent"]["epsilon"], told["share_used"]) == ("1/10", "1/30")
    assert "stated_sum" not in told


def test_a_forecast_tells_exactly_how_many_are_left(book, promise):
    for size in ("0.05", "0.3", "0.3"):
        book.charge(promise(size), purpose="p")
    left = book.forecast("0.1").left
    assert charged(book, promise("0.1"), left + 5) == left


def test_the_rest_is_one_last_gaussian_release(book, promise):
    for _ in range(5):
        book.charge(promise("0.2"), purpose="p")
    rest = book.rest(delta="1e-7")
    assert rest.delta == Fraction(1, 10**7)
    assert rho_of(rest.epsilon, rest.delta) <= rest.rho
    book.charge(promise(rest.epsilon, rest.delta), purpose="last", price=gaussian(rest.epsilon, rest.delta))
    assert book.share_used > Fraction(999, 1000) or book.remaining.epsilon < Fraction(1, 100)
    order = book.to_dict()["standing"]
    assert Fraction(order["used"]["tau"]) <= Fraction(1665, 1000)


@pytest.mark.parametrize("before", [(), ("0.2", "1/3"), ("0.01",) * 7])
def test_the_rest_is_admitted_to_the_last_bit(before, promise):
    ledger = create(MemoryStore())
    for size in before:
        ledger.charge(promise(size), purpose="p")
    last = ledger.rest(delta="1e-7")
    noise = DiscreteGaussian(sigma_squared=1 / (2 * last.rho), l2_squared=1)
    ledger.charge(promise(last.epsilon, "1e-7"), purpose="last", price=Price(events=(noise,), relation="replace-one"))
    assert ledger.share_used > Fraction(999, 1000)


def test_the_rest_by_sums_is_told_where_the_order_has_no_room(promise):
    ledger = create(MemoryStore(), epsilon=1, order=2)
    last = ledger.rest(delta="1e-7")
    assert (last.epsilon, last.delta) == (1, Fraction(1, 10**7))
    assert last.rho == rho_of(1, "1e-7")
    assert ledger.rest().delta == Fraction(4, 10**7)  # stated alone, it may have the larger share
    with pytest.raises(ParameterError, match="there is nothing for one"):
        ledger.rest(delta="5e-7")
    ledger.charge(promise(1, "1e-7"), purpose="last", price=gaussian(1, "1e-7"))
    with pytest.raises(ParameterError, match="there is nothing for one"):
        ledger.rest()


def test_the_rest_of_a_group_by_sums_is_priced_at_the_door(promise):
    ledger = create(MemoryStore(), epsilon=4, delta="1e-4", group=2, accounting="sums")
    last = ledger.rest(delta="1e-6")
    assert last.epsilon == 2
    ledger.charge(promise(last.epsilon, last.delta), purpose="last")
    assert ledger.remaining.epsilon == 0


def test_there_is_no_rest_without_delta_or_with_nothing_left(place, promise):
    with pytest.raises(ParameterError, match="delta must be above 0 for a Gaussian release"):
        create(place, delta=0).rest()
    ledger = create(MemoryStore())
    ledger.charge(promise(3), purpose="all")
    with pytest.raises(ParameterError, match="there is nothing for one"):
        ledger.rest()


def test_remaining_is_exact_by_sums_and_rounded_down_by_the_order(book, promise):
    book.charge(promise("1/3"), purpose="p")
    assert book.remaining.epsilon == Fraction(8, 3)
    for _ in range(25):
        book.charge(promise("0.1"), purpose="p")
    left = book.remaining.epsilon
    assert left > 3 - book.spent.epsilon
    book.charge(promise(left), purpose="all that is left")
    assert book.remaining.epsilon < Fraction(1, 100)


def test_rows_of_a_ledger_with_an_order_are_read_as_they_were_written(book, promise):
    book.charge(promise("0.1", "1e-8"), purpose="p", price=gaussian("0.1", "1e-8"))
    for row in rows_of(book):
        assert Row.read(row.record, row.hash, place="here") == row
