"""What a ledger admits that counts by sums or by a Rényi order."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ledger.by_shares import ALL_FOR_THE_ORDER, MILLIONTH, charged, create, gaussian, rows_of
from ledger.test_model import MemoryStore
from sabun import Guarantee
from sabun.errors import BudgetExceeded, IncompatibleGuarantees, ParameterError
from sabun.ledger import Budget, Ledger
from sabun.privacy import Price, rho_of
from sabun.privacy.events import Approximate, BoundedRange, DiscreteGaussian, SampledGaussian
from sabun.privacy.renyi import pure_cost


def test_small_questions_go_further_than_their_sum(book, promise):
    assert charged(book, promise("0.1"), 60) == 39
    assert book.spent.epsilon == Fraction(39, 10) > book.budget.epsilon
    assert book.verify().entries == 39
    assert 0.97 < book.share_used <= 1


def test_by_sums_a_ledger_is_what_it_was(place, promise):
    ledger = create(place, accounting="sums")
    assert charged(ledger, promise("0.1"), 60) == 30
    rows = [row.record for row in rows_of(ledger)]
    assert all("standing" not in record for record in rows)
    assert json.loads(rows[0])["body"]["format"] == 1


def test_large_questions_are_admitted_by_their_sum(book, promise):
    assert charged(book, promise(1), 5) == 3
    assert book.remaining.epsilon == 0


def test_a_hundred_tenths_fit_the_budget_of_the_documentation(promise):
    for epsilon, more in (("5.09", {"shares": ALL_FOR_THE_ORDER}), ("5.22", {})):
        ledger = create(MemoryStore(), epsilon=epsilon, **more)
        assert charged(ledger, promise("0.1"), 101) == 100


def test_ten_gaussians_fit_the_budget_of_the_documentation(promise):
    for epsilon, more in (("3.16", {"shares": ALL_FOR_THE_ORDER}), ("3.24", {})):
        ledger = create(MemoryStore(), epsilon=epsilon, **more)
        assert charged(ledger, promise(1, "1e-7"), 12, price=gaussian(1, "1e-7")) == 10


@pytest.mark.parametrize(
    ("epsilon", "more"),
    [
        ("2.77", {"shares": ALL_FOR_THE_ORDER}),
        ("2.67", {"shares": ALL_FOR_THE_ORDER, "order": 8}),
        ("2.77", {"order": 8}),
        ("2.86", {}),
    ],
)
def test_the_mix_of_the_documentation_fits(promise, epsilon, more):
    ledger = create(MemoryStore(), epsilon=epsilon, delta="1.5e-6", relation="add-remove", **more)
    training = SampledGaussian(noise_multiplier="1.029", sampling_probability="1/100", count=1000)
    near = {"relation": "add-remove"}
    ledger.charge(promise(2, "1e-6", **near), purpose="model", price=Price(events=(training,), **near))
    noise = gaussian("1/2", "1e-7", **near)
    assert charged(ledger, promise("1/2", "1e-7", **near), 5, price=noise) == 5
    assert charged(ledger, promise("1/20", **near), 20) == 20
    assert ledger.spent.epsilon == Fraction("5.5")


def test_a_release_known_by_its_stated_amounts_alone_takes_them_and_its_worst_case(book, promise):
    book.charge(promise(1, "3e-7"), purpose="p")
    [entry] = book.entries()
    assert (entry.form, entry.tau, entry.price) == ("stated", pure_cost(Fraction(1), order=9), None)
    assert book.remaining == Budget(Fraction(2), Fraction(1, 10**7))
    with pytest.raises(BudgetExceeded, match=r"has delta 1e-07 of 4e-07 left; this release needs 2e-07"):
        book.charge(promise("0.1", "2e-7"), purpose="p")


def test_a_price_is_booked_where_it_is_stated(book, promise):
    price = gaussian(1, "1e-6")
    book.charge(promise(1, "1e-6"), purpose="p", price=price)  # all of delta, which the order does not need
    [entry] = book.entries()
    rho = price.events[0].rho()
    assert (entry.form, entry.tau) == ("curve", pytest.approx(9 * rho))
    assert rho <= rho_of(1, "1e-6")
    assert entry.price == price.to_dict()
    assert book.remaining.delta == Fraction(4, 10**7)


def test_where_the_curve_explodes_the_stated_amounts_are_booked(place, promise):
    ledger = create(place, epsilon=3, delta="1e-5", relation="add-remove")
    noise = SampledGaussian(noise_multiplier="1/2", sampling_probability="1/50", count=400)
    near = {"relation": "add-remove"}
    ledger.charge(promise(2, "1e-6", **near), purpose="p", price=Price(events=(noise,), **near))
    assert ledger.entries()[0].form == "stated"


def test_the_exponential_mechanism_costs_a_quarter(book, promise):
    choice = Price(events=(BoundedRange(epsilon="0.1"),), relation="replace-one")
    book.charge(promise("0.1"), purpose="p", price=choice)
    book.charge(promise("0.1"), purpose="p")
    cheap, dear = book.entries()
    assert cheap.tau < dear.tau / 3


def test_a_price_in_add_remove_is_booked_over_two_steps(book, promise):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian("1/2", "1e-8", relation="add-remove"))
    once = gaussian("1/2", "1e-8").events[0].rho()
    assert book.entries()[0].tau == pytest.approx(9 * 4 * once)
    with pytest.raises(IncompatibleGuarantees, match="price must be stated for 'replace-one' neighbours"):
        book.charge(promise(1), purpose="p", price=Price(events=(Approximate(epsilon=1),), relation="local"))
    with pytest.raises(ParameterError, match="price must be a Price or None; got float"):
        book.charge(promise(1), purpose="p", price=0.5)


def test_a_price_that_no_file_could_hold_is_booked_by_its_stated_amounts(book, promise):
    noise = DiscreteGaussian(sigma_squared=Fraction(1, 10**3999), l2_squared="1e300")
    huge = Price(events=(noise,), relation="replace-one")
    book.charge(promise("0.1"), purpose="p", price=huge)
    odd = tuple(Approximate(epsilon="1/100", delta=Fraction(1, 10**3900 + number)) for number in range(3))
    book.charge(promise("0.1", "1e-7"), purpose="p", price=Price(events=odd, relation="replace-one"))
    assert [entry.form for entry in book.entries()] == ["stated", "curve"]
    assert book.verify().entries == 2


def test_what_the_readme_and_the_demo_book_is_admitted(tmp_path):
    lists = {
        "readme": ({"epsilon": 3, "delta": "1e-6"}, [(1, 0), ("0.5", 0)]),
        "census": ({"epsilon": 4, "delta": "1e-5"}, [(1, 0), ("0.5", 0), (2, "1e-6")]),
        "hospital": ({"epsilon": 2, "delta": "1e-5"}, [(1, "1e-6")]),
        "patients": ({"epsilon": 3, "delta": "1e-5"}, [("0.5", 0), (1, "1e-6"), (1, 0)]),
        "learning": ({"epsilon": 3, "delta": "1e-4"}, [(1, "1e-5"), (1, "1e-5"), (1, "1e-5")]),
    }
    for name, (budget, amounts) in lists.items():
        ledger = Ledger.create(tmp_path / name, name=name, unit="patient", **budget)
        for epsilon, delta in amounts:
            ledger.charge(Guarantee(epsilon=epsilon, delta=delta, unit="patient"), purpose="p")
        assert ledger.verify().entries == len(amounts)
        assert ledger.remaining.epsilon == Fraction(budget["epsilon"]) - sum(Fraction(part) for part, _ in amounts)


def test_the_first_release_may_take_everything_and_then_sums_count(place, promise):
    ledger = create(place, epsilon=1)
    assert ledger.remaining == Budget(Fraction(1), MILLIONTH)
    ledger.charge(promise("1/2", "1e-6"), purpose="all of delta")
    assert "by sums: the first release needed more delta" in ledger.show()
    assert ledger.remaining == Budget(Fraction(1, 2), Fraction(0))
    assert charged(ledger, promise("1/20"), 20) == 10
    assert Ledger.open(place).verify().entries == 11


def test_an_account_never_decides_how_the_whole_counts(place, promise):
    create(place, accounts={"heart": "1/2", "all": 1})
    heart = Ledger.open(place, account="heart")
    assert heart.remaining == Budget(Fraction(3, 2), Fraction(2, 10**7))
    for delta in ("3e-7", "5e-7"):  # beyond its part of the share, beyond the whole's
        with pytest.raises(BudgetExceeded, match=r"account 'heart', has delta 2e-07 of 2e-07 left"):
            heart.charge(promise("1/2", delta), purpose="p")
    with pytest.raises(BudgetExceeded, match=r"account 'all', has delta 4e-07 of 4e-07 left"):
        Ledger.open(place, account="all").charge(promise("1/2", "5e-7"), purpose="p")
    whole = Ledger.open(place)
    assert whole.to_dict()["standing"]["rule"] == "open"
    whole.charge(promise("1/2", "5e-7"), purpose="the whole may")
    assert whole.to_dict()["standing"]["rule"] == "sums"


@pytest.mark.parametrize(("delta", "rule"), [("1e-6", "sums"), ("1e-7", "shares")])
def test_a_first_reservation_that_was_voided_decides_nothing(place, promise, delta, rule):
    ledger = create(place)
    first = ledger.reserve(promise("1/2", delta), purpose="p")
    assert ledger.to_dict()["standing"]["rule"] == rule
    first.void()
    assert ledger.to_dict()["standing"]["rule"] == "open"
    assert ledger.remaining == Budget(Fraction(3), MILLIONTH)
    assert charged(ledger, promise("0.1"), 60) == 39
    assert Ledger.open(place).verify().entries == 40


def test_a_rule_stays_while_something_is_charged_under_it(place, promise):
    ledger = create(place)
    first = ledger.reserve(promise("1/2", "9e-7"), purpose="p")
    ledger.charge(promise("1/2"), purpose="second")
    first.void()
    assert ledger.to_dict()["standing"]["rule"] == "sums"
    assert ledger.remaining == Budget(Fraction(5, 2), MILLIONTH)
    assert Ledger.open(place).verify().entries == 2


@pytest.mark.parametrize("delta", ["9e-7", "1e-7"], ids=["sums", "shares"])
def test_a_rule_is_open_again_when_everything_was_given_back(place, promise, delta):
    """In whatever order: the reservation that chose the rule need not be the last one that is voided."""
    ledger = create(place)
    first, second = ledger.reserve(promise("1/2", delta), purpose="p"), ledger.reserve(promise("1/2"), purpose="q")
    first.void()
    rule = ledger.to_dict()["standing"]["rule"]
    assert rule == ("sums" if delta == "9e-7" else "shares")
    second.void()
    assert Ledger.open(place).remaining == Budget(Fraction(3), MILLIONTH)
    ledger.charge(promise("1/2", "9e-7" if rule == "shares" else "1e-7"), purpose="chooses anew")
    assert ledger.to_dict()["standing"]["rule"] == ("shares" if rule == "sums" else "sums")
    assert Ledger.open(place).verify().entries == 3


def test_a_price_far_below_its_guarantee_is_warned_of(book, promise):
    forgotten = Price(events=(DiscreteGaussian(sigma_squared=1000, l2_squared=1),), relation="replace-one")
    with pytest.warns(
        UserWarning, match=r"price of this release implies an epsilon of at most 0\.4\d*, and its guarantee says 1"
    ):
        book.charge(promise(1, "1e-7"), purpose="p", price=forgotten)
    with pytest.warns(UserWarning, match=r"implies an epsilon of at most 0\.1\d*, and its guarantee says 1"):
        book.charge(promise(1), purpose="p", price=Price(events=(Approximate(epsilon="0.1"),), relation="replace-one"))
    noise = SampledGaussian(noise_multiplier="1.029", sampling_probability="1/100", count=100)
    for guarantee, price in (
        (promise("1/2", "1e-7"), gaussian("0.26", "1e-7")),
        (promise("1/2"), Price(events=(BoundedRange(epsilon="1/2"),), relation="replace-one")),
        (promise("1/2", "1e-7"), Price(events=(Approximate(epsilon="1/2", delta="1e-7"),), relation="replace-one")),
        (promise("1/2", "1e-9"), Price(events=(noise,), relation="add-remove")),  # of other neighbours than the guarantee
        (promise(0), gaussian("0.1", "1e-7")),
    ):
        book.charge(guarantee, purpose="p", price=price)
    assert book.verify().entries == 7


def test_a_later_release_never_gets_all_of_delta(book, promise):
    book.charge(promise("0.1"), purpose="first")
    with pytest.raises(BudgetExceeded, match="has delta 4e-07 of 4e-07 left"):
        book.charge(promise("0.1", "1e-6"), purpose="second")


def test_a_voided_charge_is_given_back_in_every_total(book, promise):
    reservation = book.reserve(promise(1, "1e-7"), purpose="p")
    before = book.to_dict()["standing"]["used"]
    assert before["tau"] != "0/1"
    reservation.void()
    assert set(book.to_dict()["standing"]["used"].values()) == {"0/1"}
    assert book.remaining == Budget(Fraction(3), MILLIONTH)
    assert book.verify().entries == 1


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"order": 1}, "order must be a whole number from 2"),
        ({"order": 2.5}, "order must be a whole number from 2"),
        ({"shares": (0, 1)}, "shares must be three parts of delta"),
        ({"shares": (0, 1, 0)}, "shares must be three numbers from 0 on, together at most 1, the last above 0"),
        ({"shares": ("1/2", "1/2", "1/2")}, "shares must be three numbers"),
        ({"accounting": "best"}, "accounting must be one of"),
        ({"accounting": "sums", "order": 8}, "order and shares must be left out of a ledger that counts by sums"),
        ({"delta": 0, "order": 8}, "order and shares must be left out"),
        ({"ceiling": 2}, "ceiling must be at least epsilon"),
        ({"group": 0}, "group must be a whole number from 1"),
        ({"accounts": {"a": 2}}, "part must be above 0 and at most 1"),
        ({"accounts": {"": 1}}, "account must be a printable name"),
        ({"accounts": ["a"]}, "accounts must be a mapping"),
    ],
)
def test_terms_that_break_a_rule_make_no_file(path, terms, message):
    with pytest.raises(ParameterError, match=message):
        create(path, **terms)
    assert not path.exists()
