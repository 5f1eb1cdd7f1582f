from __future__ import annotations

import copy
import json
import math
import os
import pickle
from fractions import Fraction
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, clone

from sabun.errors import (
    BudgetExceeded,
    IncompatibleGuarantees,
    LedgerError,
    ParameterError,
    SimulatedError,
)
from sabun.ledger import Budget, Ledger, Receipt


def test_ten_tenths_fit_a_budget_of_one_and_the_eleventh_is_refused(place, promise):
    ledger = Ledger.create(place, name="one", unit="patient", epsilon=1)
    for _ in range(10):
        ledger.charge(promise(0.1), purpose="a tenth")
    assert ledger.remaining == Budget(Fraction(0), Fraction(0))
    with pytest.raises(BudgetExceeded, match=r"'one' has epsilon 0 of 1 left; this release needs 0\.1\."):
        ledger.charge(promise(0.1), purpose="the eleventh")
    assert ledger.spent == ledger.budget == Budget(Fraction(1), Fraction(0))


def test_a_refusal_says_what_is_left_and_leaves_nothing(ledger, promise):
    ledger.charge(promise(1.7), purpose="first")
    before = ledger.to_dict()
    with pytest.raises(BudgetExceeded) as caught:
        ledger.reserve(promise(0.5), purpose="second")
    assert str(caught.value) == (
        "'clinic-2026' has epsilon 0.3 of 2 left; this release needs 0.5. Nothing was released, nothing was charged. "
        "Ask for a smaller epsilon."
    )
    assert caught.value.remaining_epsilon == Fraction(3, 10)
    assert caught.value.requested_epsilon == Fraction(1, 2)
    assert ledger.to_dict() == before


def test_a_refusal_for_delta_speaks_of_delta(ledger, promise):
    with pytest.raises(BudgetExceeded, match=r"has delta 1e-06 of 1e-06 left; this release needs 2e-06\."):
        ledger.charge(promise(0.1, "2e-6"), purpose="too loose")
    with pytest.raises(BudgetExceeded, match=r"epsilon 2 of 2 and delta 1e-06 of 1e-06 left; .* epsilon 3 and delta 1e-05\."):
        ledger.charge(promise(3, "1e-5"), purpose="both")


def test_both_epsilon_and_delta_are_summed(ledger, promise):
    ledger.charge(promise(0.5, "1e-7"), purpose="a")
    ledger.charge(promise("1/3", "3e-7"), purpose="b")
    assert ledger.spent == Budget(Fraction(5, 6), Fraction(4, 10**7))
    assert ledger.remaining == Budget(Fraction(7, 6), Fraction(6, 10**7))


def test_an_infinite_epsilon_is_always_refused(ledger, promise):
    with pytest.raises(BudgetExceeded, match=r"needs infinity .*no finite epsilon bounds all it publishes together"):
        ledger.charge(promise(math.inf), purpose="everything")
    assert ledger.entries() == ()


def test_the_joint_figure_of_a_per_parameter_guarantee_is_booked(ledger, promise):
    receipt = ledger.charge(promise(0.1, scope="per-parameter", joint_epsilon=0.7), purpose="coefficients")
    assert receipt.epsilon == Fraction(7, 10) == ledger.spent.epsilon
    with pytest.raises(BudgetExceeded):
        ledger.charge(promise(0.1, scope="per-parameter", joint_epsilon=math.inf), purpose="unbounded together")


def test_a_simulated_guarantee_is_refused(ledger, promise):
    for attempt in (ledger.reserve, ledger.charge):
        with pytest.raises(SimulatedError, match=r"must come from OS entropy; got a simulated guarantee \(NOT PRIVATE\)"):
            attempt(promise().as_simulated(), purpose="seeded")
    assert ledger.entries() == ()


def test_another_unit_is_refused_with_a_way_out(ledger, promise):
    with pytest.raises(
        IncompatibleGuarantees, match=r"unit must be 'patient', as in ledger 'clinic-2026'; got 'visit'.*k times"
    ):
        ledger.charge(promise(unit="visit"), purpose="visits")


def test_an_add_remove_guarantee_is_restated_in_a_replace_one_ledger(ledger, promise):
    declared = promise(0.25, "1e-8", relation="add-remove")
    receipt = ledger.charge(declared, purpose="sum")
    assert (receipt.epsilon, receipt.delta) == declared.as_replace_one().cost
    assert receipt.epsilon == Fraction(1, 2)
    assert receipt.relation == "replace-one"
    assert receipt.note.startswith("restated from add-remove to replace-one")
    [entry] = ledger.entries()
    assert entry.note == receipt.note
    assert entry.guarantee["relation"] == "add-remove"
    assert "restated from add-remove" in ledger.show()


@pytest.mark.parametrize(
    ("of_ledger", "of_guarantee", "advice"),
    [
        ("add-remove", "replace-one", "use a ledger with relation='replace-one'"),
        ("add-remove", "local", "ledger with relation='local'"),
        ("replace-one", "local", "ledger with relation='local'"),
        ("local", "replace-one", "use a ledger with relation='replace-one'"),
        ("local", "add-remove", "Use a ledger with relation='add-remove' or relation='replace-one'"),
    ],
)
def test_relations_that_do_not_convert_are_refused(place, promise, of_ledger, of_guarantee, advice):
    ledger = Ledger.create(place, name="x", unit="patient", relation=of_ledger, epsilon=1)
    model = "local" if of_guarantee == "local" else "central"
    rule = f"relation must be '{of_ledger}', as in ledger 'x'; got '{of_guarantee}'.*{advice}"
    with pytest.raises(IncompatibleGuarantees, match=rule):
        ledger.charge(promise(relation=of_guarantee, model=model), purpose="p")


def test_a_local_ledger_takes_local_guarantees(place, promise):
    ledger = Ledger.create(place, name="device", unit="patient", relation="local", epsilon=1)
    ledger.charge(promise(relation="local", model="local"), purpose="report")
    assert ledger.remaining.epsilon == Fraction(1, 2)


def test_only_a_guarantee_can_be_charged(ledger):
    with pytest.raises(ParameterError, match="guarantee must be a Guarantee; got float"):
        ledger.charge(0.5, purpose="p")


def test_amounts_too_long_to_write_are_refused_in_words(ledger, path, promise):
    long = Fraction(1, 3**2_000)
    with pytest.raises(ParameterError, match="epsilon must be a fraction of numbers of at most 2048 bits; got one of 3170"):
        ledger.charge(promise(long), purpose="p")
    with pytest.raises(ParameterError, match="epsilon and delta must be fractions of numbers of at most 2048 bits"):
        Ledger.create(path.with_suffix(".other"), name="x", epsilon=long)


def test_sums_of_awkward_fractions_stay_writable_and_never_fall_below_the_truth(place, promise):
    ledger = Ledger.create(place, name="x", unit="patient", epsilon=1)
    parts = [Fraction(1, 3 * (2**1024 + 2 * step + 1)) for step in range(3)]
    for part in parts:
        ledger.charge(promise(part), purpose="p")
    assert sum(parts) <= ledger.spent.epsilon <= sum(parts) + Fraction(3, 2**2048)
    assert ledger.spent.epsilon.denominator.bit_length() <= 2049
    ledger.verify()


@pytest.mark.parametrize("purpose", ["", "  ", None, 3])
def test_a_purpose_is_words(ledger, promise, purpose):
    with pytest.raises(ParameterError, match="purpose must be a non-empty string; got"):
        ledger.reserve(promise(), purpose=purpose)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": " "}, "name must be a non-empty string"),
        ({"unit": ""}, "unit must be a non-empty string"),
        ({"relation": "swap"}, "relation must be one of 'replace-one'"),
        ({"epsilon": 0}, "epsilon must be finite and > 0; got 0"),
        ({"epsilon": -1.5}, r"epsilon must be finite and > 0; got -1\.5"),
        ({"epsilon": math.inf}, "epsilon must be finite and > 0; got inf"),
        ({"epsilon": "lots"}, "epsilon must be a number"),
        ({"delta": 1}, "delta must be at least 0 and below 1; got 1"),
        ({"delta": -1e-9}, "delta must be at least 0 and below 1"),
    ],
)
def test_terms_that_break_a_rule_make_no_file(path, wrong, message):
    with pytest.raises(ParameterError, match=message):
        Ledger.create(path, **({"name": "x", "epsilon": 1} | wrong))
    assert not path.exists()


def test_create_refuses_a_path_that_is_taken(ledger, path):
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"needs a free path; .* exists\. Open that one, or choose another path"):
        Ledger.create(path, name="x", epsilon=1)
    assert path.read_bytes() == before
    Path(f"{path}.new-wal").write_bytes(b"left over")
    with pytest.raises(LedgerError, match=r"new-wal' exists"):
        Ledger.create(f"{path}.new", name="x", epsilon=1)


@pytest.mark.parametrize("nowhere", [3, "", b"x", "a\0b", None])
def test_a_path_is_a_path(nowhere):
    with pytest.raises(ParameterError, match="path must be a file path; got"):
        Ledger.open(nowhere)


def test_open_refuses_a_missing_file(path):
    with pytest.raises(LedgerError, match=r"no ledger at .*clinic\.ledger'\. Make one first, or check the path") as caught:
        Ledger.open(path)
    assert caught.value.exit_code == 4
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"name,age\nada,36\n" * 100, b"SQLite format 3\0" + b"\0" * 5000])
def test_open_refuses_a_foreign_file(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"is not a Sabun ledger\. Check the path"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_folder_is_not_a_ledger(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "no" / "such" / "folder", name="x", epsilon=1)


def test_an_opened_ledger_has_the_terms_it_was_created_with(ledger, place, promise):
    ledger.charge(promise(), purpose="p")
    again = Ledger.open(str(place))
    assert (again.name, again.unit, again.relation) == ("clinic-2026", "patient", "replace-one")
    assert again.budget == Budget(Fraction(2), Fraction(1, 10**6))
    assert again.to_dict() == ledger.to_dict()


@pytest.mark.parametrize("name", ["O'Brien; DROP TABLE book", "診療所 🏥", 'a "b"\nc\x1b[31m', "%s ?#&=%20"])
def test_unusual_names_are_kept(tmp_path, promise, name):
    place = tmp_path / "100% a?b#c 診'療"
    Ledger.create(place, name=name, unit=name, epsilon=1)
    ledger = Ledger.open(place)
    receipt = ledger.charge(promise(unit=name), purpose=name)
    assert ledger.name == ledger.unit == receipt.ledger_name == ledger.entries()[0].purpose == name
    assert "\x1b" not in ledger.show()
    ledger.verify()


def test_a_relative_path_means_the_same_file_after_a_change_of_folder(tmp_path, monkeypatch, promise):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("here.ledger", name="x", unit="patient", epsilon=1)
    monkeypatch.chdir(os.path.sep)
    ledger.charge(promise(), purpose="p")
    assert Ledger.open(tmp_path / "here.ledger").remaining.epsilon == Fraction(1, 2)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copied_handle_spends_from_the_same_budget(ledger, promise, duplicate):
    ledger.charge(promise(1), purpose="before")
    other = duplicate(ledger)
    other.charge(promise(0.75), purpose="through the copy")
    assert ledger.remaining == other.remaining == Budget(Fraction(1, 4), Fraction(1, 10**6))
    with pytest.raises(BudgetExceeded):
        ledger.charge(promise(0.5), purpose="too much")


def test_a_cloned_estimator_spends_from_the_same_budget(ledger, promise):
    class Estimator(BaseEstimator):
        def __init__(self, *, ledger=None):
            self.ledger = ledger

    clone(Estimator(ledger=ledger)).ledger.charge(promise(), purpose="clone")
    assert ledger.spent.epsilon == Fraction(1, 2)


def test_a_closed_handle_refuses_but_its_reservations_can_commit(ledger, place, promise):
    with ledger as same:
        reservation = same.reserve(promise(), purpose="p")
    with pytest.raises(LedgerError, match=r"handle of ledger 'clinic-2026' must be open; it was closed"):
        ledger.charge(promise(), purpose="p")
    reservation.commit(b"kept")
    assert [entry.state for entry in Ledger.open(place).entries()] == ["committed"]


def test_a_receipt_survives_json(ledger, promise):
    receipt = ledger.charge(promise("1/3"), purpose="p")
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt
    assert receipt.to_dict()["epsilon"] == "1/3"
    assert (receipt.ledger_name, receipt.entry, receipt.unit, receipt.note) == ("clinic-2026", 1, "patient", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "receipt must have exactly the fields .* check \\['extra'\\]"),
        ({"entry": True}, "receipt must hold text, with a whole number for entry and group; check \\['entry'\\]"),
        ({"epsilon": "0.5"}, r"receipt epsilon must be exact text such as '1/10'; got '0\.5'"),
        ({"delta": "1/0"}, "receipt delta must be exact text"),
    ],
)
def test_a_damaged_receipt_is_refused(ledger, promise, change, message):
    record = ledger.charge(promise(), purpose="p").to_dict() | change
    with pytest.raises(ParameterError, match=message):
        Receipt.from_dict(record)
    with pytest.raises(ParameterError, match="receipt must be a JSON object; got list"):
        Receipt.from_dict([])


def test_show_is_a_page_a_person_can_read(ledger, promise):
    assert "No entries yet." in ledger.show()
    ledger.charge(promise("1/3", "1e-7"), purpose="count of visits")
    ledger.reserve(promise(0.5), purpose="model").void()
    lines = ledger.show().splitlines()
    assert lines[0] == "Ledger 'clinic-2026'"
    assert "epsilon   2 budget, 0.333334 spent, 1.66666 left" in lines
    assert "delta     1e-06 budget, 1e-07 spent, 9e-07 left" in lines
    assert [line.split()[3:6] for line in lines[-2:]] == [["committed", "0.333334", "1e-07"], ["voided", "0.5", "0"]]
    assert lines[-2].endswith("count of visits")


def test_to_dict_is_json_with_exact_amounts(ledger, promise):
    ledger.charge(promise("1/3"), purpose="p", key="k")
    record = json.loads(json.dumps(ledger.to_dict()))
    assert record["remaining"] == {"epsilon": "5/3", "delta": "1/1000000"}
    assert record["entries"][0]["epsilon"] == "1/3"
    assert record["head_hash"] == ledger.verify().head_hash
    assert (record["entries"][0]["state"], record["entries"][0]["key"]) == ("committed", "k")


def test_words_that_no_file_can_hold_are_refused_before_the_charge(ledger, path, promise):
    for words in ({"name": "\ud800"}, {"name": "x", "unit": "\ud800"}):
        with pytest.raises(
            ParameterError, match=f"{list(words)[-1]} must be valid Unicode text; got one with a lone surrogate"
        ):
            Ledger.create(f"{path}.new", epsilon=1, **words)
    for field, words in (("unit", "\ud800"), ("mechanism", "\ud800"), ("assumptions", ("fine", "\ud800"))):
        with pytest.raises(ParameterError, match=f"{field} must be valid Unicode text"):
            ledger.reserve(promise(**{field: words}), purpose="p")
    with pytest.raises(ParameterError, match="purpose must be valid Unicode text"):
        ledger.reserve(promise(), purpose="\ud800")
    assert ledger.spent.epsilon == 0


def test_a_handle_knows_the_charges_it_made(ledger, place, promise):
    assert ledger.receipts == ()
    receipt = ledger.charge(promise(0.1), purpose="a count")
    assert ledger.receipts == (receipt,)
    assert Ledger.open(place).receipts == ()


def test_a_remark_is_kept_with_each_charge_but_is_no_part_of_its_purpose(ledger, place, promise):
    noted = Ledger.open(place, remark="annual report")
    noted.reserve(promise(0.1), purpose="a count", key="monday").commit(b"bytes")
    ledger.charge(promise(0.1), purpose="another")
    assert [entry.remark for entry in ledger.entries()] == ["annual report", ""]
    assert "annual report: a count" in ledger.show()
    receipt, payload = Ledger.open(place, remark="monthly").recall("monday", guarantee=promise(0.1), purpose="a count")
    assert (receipt.entry, payload) == (1, b"bytes")
    ledger.verify()
    with pytest.raises(ParameterError, match="remark must be a text; got 3"):
        Ledger.open(place, remark=3)


def test_kept_bytes_come_back_by_the_number_of_their_charge(ledger, promise):
    ledger.reserve(promise(0.1), purpose="a").commit(b"bytes")
    ledger.charge(promise(0.1), purpose="b")
    ledger.reserve(promise(0.1), purpose="c")
    assert ledger.kept(1) == b"bytes"
    for entry in (0, 2, 3, 4):
        with pytest.raises(ParameterError, match=f"entry must be an entry of 'clinic-2026' with a kept result; got {entry}"):
            ledger.kept(entry)


def test_a_ledger_without_a_delta_says_so(place, promise):
    none = Ledger.create(place, name="none", unit="patient", epsilon=1)
    with pytest.raises(BudgetExceeded, match="Use a ledger that has a delta, or a mechanism that needs none"):
        none.charge(promise(0.1, delta="1e-5"), purpose="a")


def test_an_open_charge_is_explained(ledger, promise):
    ledger.charge(promise(0.1), purpose="a")
    assert "reserved:" not in ledger.show()
    ledger.reserve(promise(0.1), purpose="b")
    assert ledger.show().endswith("Records may have been read, so it cannot be given back.")


def test_a_delta_that_does_not_fit_comes_with_a_way_out(place, promise):
    small = Ledger.create(place, name="small", unit="patient", epsilon=1, delta="1e-6")
    with pytest.raises(BudgetExceeded, match=r"needs 1e-05\..* Ask for a smaller delta, or use a mechanism that needs none"):
        small.charge(promise(0.1, delta="1e-5"), purpose="a")
