"""A ledger that counts by sums or by a Rényi order, with accounts, a ceiling and groups."""

from __future__ import annotations

import dataclasses
import json
import threading
from fractions import Fraction

import pytest

from ledger.test_model import MemoryStore
from sabun import Guarantee
from sabun.errors import BudgetExceeded, IncompatibleGuarantees, LedgerError, ParameterError
from sabun.ledger import Budget, Ledger
from sabun.ledger.address import with_account
from sabun.ledger.row import Row
from sabun.ledger.together import together
from sabun.privacy import Price, discrete_gaussian_variance, rho_of
from sabun.privacy.events import Approximate, BoundedRange, DiscreteGaussian, SampledGaussian
from sabun.privacy.renyi import best_order, pure_cost

MILLIONTH = Fraction(1, 10**6)
ALL_FOR_THE_ORDER = (0, 0, 1)


@pytest.fixture
def book(place):
    return Ledger.create(place, name="clinic-2026", unit="patient", epsilon=3, delta="1e-6")


def gaussian(epsilon, delta, *, relation="replace-one"):
    """The price of discrete Gaussian noise calibrated to (epsilon, delta)."""
    variance = discrete_gaussian_variance(l2_squared=1, epsilon=epsilon, delta=delta)
    return Price(events=(DiscreteGaussian(sigma_squared=variance, l2_squared=1),), relation=relation)


def create(place, **terms):
    return Ledger.create(place, **({"name": "x", "unit": "patient", "epsilon": 3, "delta": "1e-6"} | terms))


def charged(ledger, guarantee, times, **more):
    """How many of so many tries are admitted before the first refusal."""
    for done in range(times):
        try:
            ledger.charge(guarantee, purpose="p", **more)
        except BudgetExceeded:
            return done
    return times


# --- what is admitted


def test_small_questions_go_further_than_their_sum(book, promise):
    assert charged(book, promise("0.1"), 60) == 39
    assert book.spent.epsilon == Fraction(39, 10) > book.budget.epsilon
    assert book.verify().entries == 39
    assert 0.97 < book.share_used <= 1


def test_by_sums_a_ledger_is_what_it_was(place, promise):
    ledger = create(place, accounting="sums")
    assert charged(ledger, promise("0.1"), 60) == 30
    rows = [row.record for row in _rows(ledger)]
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


# --- what a look and a whole reading find


def _rows(ledger):
    with ledger._store.reading() as view:
        return list(view.rows())


def _rewritten(place, edit, change):
    """Writes a ledger anew with one record changed and every later hash fitting."""
    rows, previous = _rows(Ledger.open(place)), None
    statements = ["DELETE FROM book"]
    for row in rows:
        record = json.loads(row.record)
        change(record)
        if previous is not None:
            record["previous"] = previous.hash
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        spent = Budget(*(Fraction(record["spent"][name]) for name in ("epsilon", "delta")))
        made = dataclasses.replace(row, body=record["body"], previous=record["previous"], spent=spent)
        standing = type(row.standing).from_dict(record["standing"])
        made = dataclasses.replace(made, standing=standing)
        assert made.record == text
        previous = made
        key = "NULL" if made.key is None else f"'{made.key}'"
        statements.append(f"INSERT INTO book VALUES ({made.sequence}, {made.entry}, {key}, '{made.record}', '{made.hash}')")
    edit(place, *statements)


def test_a_forged_price_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def cheaper(record):
        if "tau" in record["body"]:
            record["body"]["tau"] = "1/1000"
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1000"

    _rewritten(place, edit, cheaper)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_delta_below_that_of_the_guarantee_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def lower(record):
        if record["kind"] == "reserve":
            record["body"]["delta"] = "0/1"
        if record["sequence"]:
            record["spent"]["delta"] = "0/1"

    _rewritten(place, edit, lower)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_row_by_sums_that_keeps_a_price_is_found_on_every_look(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def by_sums(record):
        if record["kind"] == "reserve":
            record["body"]["rule"] = "sums"
        if record["sequence"]:
            record["standing"]["rule"] = "sums"

    _rewritten(place, edit, by_sums)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_row_by_shares_without_a_price_is_found_on_every_look(book, place, promise, edit):
    book.charge(promise(1), purpose="p")

    def bare(record):
        for name in ("tau", "loose", "extra", "form"):
            record["body"].pop(name, None)
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1"

    _rewritten(place, edit, bare)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_price_in_a_ledger_without_an_order_is_found_on_every_look(place, promise, edit):
    create(place, accounting="sums", accounts={"heart": "1/2"}).charge(promise(1), purpose="p")

    def priced(record):
        if record["kind"] == "reserve":
            record["body"] |= {"tau": "1/1", "loose": "0/1", "extra": "0/1", "form": "stated"}

    _rewritten(place, edit, priced)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_simulated_guarantee_in_a_row_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1), purpose="p")

    def simulated(record):
        if record["kind"] == "reserve":
            record["body"]["guarantee"]["simulated"] = True

    _rewritten(place, edit, simulated)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_dearer_price_of_another_version_is_accepted(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def dearer(record):
        if "tau" in record["body"]:
            record["body"]["tau"] = "1/1"
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1"

    _rewritten(place, edit, dearer)
    assert Ledger.open(place).verify().entries == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda standing: standing["used"].update(tau="0/1"), "must stand where the rows before it lead"),
        (lambda standing: standing.update(limit="9/1"), "must stand where the rows before it lead"),
        (lambda standing: standing["shares"].update(tail="1/2"), "must stand where the rows before it lead"),
    ],
)
def test_a_forged_standing_is_found_on_every_look(book, place, promise, edit, change, message):
    book.charge(promise(1), purpose="p")

    def forge(record):
        if record["sequence"] == 2:
            change(record["standing"])

    _rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match=message):
        Ledger.open(place)


def test_shares_beyond_delta_are_no_beginning(book, place, edit):
    _rewritten(place, edit, lambda record: record["standing"]["shares"].update(tail="1/2"))
    with pytest.raises(LedgerError, match="row 0 must open the book with limits within its budget"):
        Ledger.open(place)


# --- conversion


def test_an_old_ledger_is_converted_and_old_charges_keep_their_epsilon(place, promise):
    ledger = create(place, accounting="sums")
    ledger.charge(promise("1/2", "1e-7"), purpose="before")
    waiting = ledger.reserve(promise("1/2"), purpose="still open")
    ledger.convert(reason="many small questions from now on")
    standing = ledger.to_dict()["standing"]
    assert standing["used"] == {"epsilon": "1/1", "loose": "1/10000000", "extra": "0/1", "tau": "1/1"}
    assert sum(Fraction(standing["shares"][name]) for name in ("sums", "stated", "tail")) == MILLIONTH
    before = Fraction(standing["used"]["tau"])
    ledger.charge(promise("0.05"), purpose="after")
    waiting.void()
    used = Fraction(ledger.to_dict()["standing"]["used"]["tau"])
    assert used == before - Fraction(1, 2) + pure_cost(Fraction(1, 20), order=standing["shares"]["order"])
    assert Ledger.open(place).verify().entries == 3
    with pytest.raises(ParameterError, match="must count by sums and have some delta left"):
        ledger.convert(reason="again")


def test_a_converted_ledger_goes_further(promise):
    ledger = create(MemoryStore(), accounting="sums")
    ledger.charge(promise("0.1"), purpose="before")
    ledger.convert(reason="more", shares=ALL_FOR_THE_ORDER)
    assert charged(ledger, promise("0.05"), 200) > 58


def test_a_ledger_without_delta_cannot_be_converted(place):
    with pytest.raises(ParameterError, match="must count by sums and have some delta left"):
        create(place, delta=0).convert(reason="more")


def test_a_conversion_that_an_account_could_not_keep_is_refused(place, promise):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    Ledger.open(place, account="heart").charge(promise("0.1", "5e-7"), purpose="all of its delta")
    waiting = ledger.reserve(promise("0.1"), purpose="still open")
    for parts in (None, ALL_FOR_THE_ORDER, (0, "9/10", "1/10")):
        with pytest.raises(ParameterError, match=r"every account must have used at most its part of the delta .* got 'heart'"):
            ledger.convert(reason="more", shares=parts)
    ledger.charge(promise("0.1"), purpose="by sums as before")
    waiting.touch()
    waiting.commit(b"r")
    assert Ledger.open(place).verify().entries == 3


def test_a_conversion_is_made_with_shares_that_every_account_keeps(place, promise):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    heart = Ledger.open(place, account="heart")
    heart.charge(promise("0.1", "4e-7"), purpose="before")
    with pytest.raises(ParameterError, match="got 'heart'"):
        ledger.convert(reason="more")
    ledger.convert(reason="more", shares=(0, "9/10", "1/10"))
    heart.charge(promise("0.1"), purpose="after")
    assert Ledger.open(place).verify().entries == 2


def test_a_forged_conversion_that_an_account_breaks_is_found(place, promise, edit):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    Ledger.open(place, account="heart").charge(promise("0.1", "4e-7"), purpose="before")
    ledger.convert(reason="more", shares=(0, "9/10", "1/10"))

    def forge(record):
        if record["body"].get("change") == "convert":
            for shares in (record["body"]["shares"], record["standing"]["shares"]):
                shares["stated"] = "1/2000000"

    _rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match="row 3 must have the fields of its kind"):
        Ledger.open(place)


# --- ceiling, accounts, groups


def test_a_budget_is_raised_to_its_ceiling_and_never_above(place, promise):
    ledger = create(place, epsilon=1, delta=0, ceiling=2)
    assert ledger.promised == Budget(Fraction(2), Fraction(0))
    assert charged(ledger, promise("1/2"), 3) == 2
    head = ledger.verify().head_hash
    ledger.raise_to("3/2", reason="the board agreed on 12 May")
    assert (ledger.budget.epsilon, ledger.remaining.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert charged(Ledger.open(place), promise("1/2"), 3) == 1
    for wrong in (1, "3/2", 3):
        with pytest.raises(ParameterError, match="epsilon must be above 3/2 and at most the ceiling 2/1"):
            ledger.raise_to(wrong, reason="more")
    with pytest.raises(ParameterError, match="reason must be a non-empty string"):
        ledger.raise_to(2, reason=" ")
    assert ledger.verify(expect_head=head).entries == 3
    assert "ceiling   epsilon 2, which every promise is made for" in ledger.show()


def test_a_ledger_without_a_ceiling_never_grows(book):
    with pytest.raises(ParameterError, match="was created without a ceiling"):
        book.raise_to(4, reason="please")
    assert len(_rows(book)) == 1


def test_a_forged_raise_is_found(place, edit):
    ledger = create(place, epsilon=1, ceiling=2)
    ledger.raise_to(2, reason="r")

    def forge(record):
        if record["sequence"] == 1:
            record["body"]["epsilon"] = record["standing"]["limit"] = "5/1"

    _rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_an_account_keeps_its_limit_and_the_whole_its_own(place, promise):
    create(place, epsilon=2, delta=0, accounts={"heart": "1/2", "lung": "3/4"})
    heart, lung = Ledger.open(place, account="heart"), Ledger.open(place, account="lung")
    assert heart.remaining.epsilon == 1
    assert charged(heart, promise("1/2"), 3) == 2
    with pytest.raises(BudgetExceeded, match=r"'x', account 'heart', has epsilon 0 of 1 left; this release needs 0\.5"):
        heart.charge(promise("1/2"), purpose="p")
    assert lung.remaining.epsilon == 1  # of its 3/2, what the whole has left
    assert charged(lung, promise("1/2"), 9) == 2
    whole = Ledger.open(place)
    assert whole.remaining.epsilon == 0
    assert whole.accounts() == {"heart": 1, "lung": Fraction(2, 3)}
    assert [entry.account for entry in whole.entries()] == ["heart", "heart", "lung", "lung"]
    assert whole.verify().entries == 4


def test_an_account_counts_by_its_part_of_the_order_too(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "1/2"})
    heart = Ledger.open(store, account="heart")
    assert charged(heart, promise("0.05"), 100) == 72
    assert heart.share_used > Fraction(95, 100)
    assert Ledger.open(store).forecast("0.05").left == 72


def test_what_an_account_is_told_it_has_left_the_whole_has_too(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "9/10", "lung": "9/10"})
    heart, lung = (Ledger.open(store, account=name) for name in ("heart", "lung"))
    assert charged(heart, promise("0.1"), 100) == 35
    assert lung.share_used == Ledger.open(store).share_used > Fraction(8, 10)
    assert lung.accounts()["lung"] == 0
    last = lung.rest(delta="1e-7")
    lung.reserve(promise(last.epsilon, last.delta), purpose="p", price=gaussian(last.epsilon, last.delta)).void()
    left = lung.forecast("0.1").left
    assert charged(lung, promise("0.1"), 40) == left == 4


def test_the_last_release_of_an_account_fits_the_whole_however_each_counts(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "1/2"}, shares=("1/4", "1/4", "1/2"))
    whole, heart = Ledger.open(store), Ledger.open(store, account="heart")
    whole.charge(promise("2.5"), purpose="by sums, beyond what the order allows")
    for delta in (None, "1e-7", "1e-8"):
        last = heart.rest(delta=delta)
        assert last.epsilon <= Fraction(1, 2)
        price = gaussian(last.epsilon, last.delta)
        heart.reserve(promise(last.epsilon, last.delta), purpose="p", price=price).void()
    with pytest.raises(ParameterError, match="there is nothing for one"):
        heart.rest(delta="3e-7")


def test_accounts_are_opened_later_with_a_reason(book, place, promise):
    book.charge(promise(1), purpose="before")
    book.open_account("heart", "1/4", reason="a new project")
    for wrong in ("heart", ""):
        with pytest.raises(ParameterError):
            book.open_account(wrong, "1/4", reason="again")
    with pytest.raises(ParameterError, match="account must be an account of 'clinic-2026'"):
        Ledger.open(place, account="lung")
    assert charged(Ledger.open(place, account="heart"), promise("1/4"), 9) == 3
    assert book.verify().entries == 4


def test_an_account_is_charged_by_the_name_after_its_ledger(place, promise):
    create(place, epsilon=2, delta=0, accounts={"heart": "1/2"})
    where, account = with_account(f"{place}::heart")
    assert (where, account) == (str(place), "heart")
    assert charged(Ledger.open(where, account=account), promise("1/4"), 9) == 4


def test_racing_accounts_overspend_neither_themselves_nor_the_whole(place, promise):
    create(place, epsilon=1, delta=0, accounts={"a": "1/2", "b": "1"})
    handles = [Ledger.open(place, account=name) for name in ("a", "a", "b", "b")]
    runs = [threading.Thread(target=charged, args=(one, promise("0.1"), 8)) for one in handles]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    whole = Ledger.open(place)
    assert whole.spent.epsilon == 1
    used = [sum(entry.epsilon for entry in whole.entries() if entry.account == name) for name in ("a", "b")]
    assert used[0] <= Fraction(1, 2)
    assert sum(used) == 1
    whole.verify()


def test_a_group_is_priced_at_the_door(place, promise):
    ledger = create(place, group=4, epsilon=12, delta="1e-3")
    ledger.charge(promise(1, "1e-9"), purpose="p")
    [entry] = ledger.entries()
    assert entry.epsilon == 4
    assert float(entry.delta) == pytest.approx(1e-9 * (1 + 2.718281828 + 7.389056099 + 20.085536923))
    assert entry.note == "restated for groups of 4"
    price = gaussian("1/10", "1e-9")
    ledger.charge(promise("1/10", "1e-9"), purpose="p", price=price)
    order = best_order(Fraction(12), tail=Fraction(1, 2000))
    assert ledger.entries()[1].tau == pytest.approx(16 * order * price.events[0].rho())
    assert ledger.forecast(1).left == 1  # (12 - 4 - 0.4) / 4, by sums
    assert ledger.verify().entries == 2


def test_ledgers_that_price_for_groups_say_so_together(promise):
    books = [create(MemoryStore(), group=2), create(MemoryStore(), group=2, epsilon=1)]
    found = together(books)
    assert (found.epsilon, found.delta) == (4, 2 * MILLIONTH)
    assert "for groups of 2 'patient' together" in found.assumptions
    assert not any("groups" in words for words in together([create(MemoryStore())]).assumptions)
    with pytest.raises(IncompatibleGuarantees, match="must protect the same unit in the same way"):
        together([*books, create(MemoryStore())])


# --- what is shown


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
    for row in _rows(book):
        assert Row.read(row.record, row.hash, place="here") == row
