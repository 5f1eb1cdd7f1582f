from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import IncompatibleGuarantees, ParameterError
from sabun.privacy import Guarantee

AMOUNTS = st.fractions(min_value=0, max_value=100)
DELTAS = st.fractions(min_value=0, max_value=1)
SENTENCES = st.lists(st.text(min_size=1, max_size=30), max_size=3)


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    local = draw(st.booleans())
    per_parameter = draw(st.booleans())
    epsilon = draw(st.one_of(AMOUNTS, st.just(math.inf)))
    delta = draw(DELTAS)
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        relation="local" if local else draw(st.sampled_from(["replace-one", "add-remove"])),
        model="local" if local else "central",
        unit=draw(st.sampled_from(["record", "patient", "利用者"])),
        scope="per-parameter" if per_parameter else "joint",
        joint_epsilon=epsilon * 3 if per_parameter else None,
        joint_delta=min(3 * delta, Fraction(1)) if per_parameter else None,
        assumptions=tuple(draw(SENTENCES)),
        mechanism="test",
        simulated=draw(st.booleans()),
    )


@given(guarantees())
def test_json_round_trip_is_exact(guarantee: Guarantee) -> None:
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert json.loads(guarantee.to_json()) == guarantee.to_dict()


@given(guarantees())
def test_every_guarantee_can_be_read_aloud(guarantee: Guarantee) -> None:
    words = str(guarantee)
    assert ("NOT PRIVATE" in words) == guarantee.simulated
    assert ("together" in words) == (guarantee.scope == "per-parameter")


def test_plain_words() -> None:
    guarantee = Guarantee(
        epsilon=0.5, delta=1e-6, unit="patient", mechanism="discrete Gaussian", assumptions=("bounds are public",)
    )
    assert str(guarantee) == (
        "epsilon = 0.5, delta = 1e-06 (replace-one): no outcome becomes more than 1.649 times as likely when one patient is "
        "replaced by any other, up to an added probability of 1e-06.\nAssumes: bounds are public."
    )
    assert "no bound holds" in str(Guarantee(epsilon=math.inf, mechanism="paper"))
    assert "e^1E+3999 times" in str(Guarantee(epsilon="1e3999", mechanism="m"))  # type: ignore[arg-type]


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=11))
def test_the_factor_in_words_is_never_optimistic(epsilon: Fraction) -> None:
    words = str(Guarantee(epsilon=epsilon, mechanism="m"))
    factor = float(words.split("more than ")[1].split(" times")[0])
    assert math.exp(epsilon) <= factor * (1 + 1e-12) <= math.exp(epsilon) * 1.002


def test_ten_tenths_are_one() -> None:
    tenth = Guarantee(epsilon=0.1, delta=1e-7, mechanism="m")
    total = sum([tenth] * 9, start=tenth)
    assert (total.epsilon, total.delta) == (1, Fraction(1, 10**6))
    assert total.mechanism == "m"


def test_a_guarantee_cannot_be_changed() -> None:
    guarantee = Guarantee(epsilon=1, mechanism="m")
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.epsilon = Fraction(0)  # type: ignore[misc]
    assert guarantee == Guarantee(epsilon=1.0, mechanism="m")
    assert len({guarantee, Guarantee(epsilon="1", mechanism="m")}) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": -1.0}, r"epsilon must be >= 0; got -1\.0"),
        ({"epsilon": math.nan}, r"epsilon must be a number; got nan"),
        ({"epsilon": True}, r"epsilon must be a number; got True"),
        ({"delta": 1.5}, r"delta must be >= 0 and <= 1; got 1\.5"),
        ({"relation": "neighbour"}, r"relation must be one of 'replace-one', 'add-remove', 'local'; got 'neighbour'"),
        ({"model": "cloud"}, r"model must be one of 'central', 'local'; got 'cloud'"),
        ({"model": "local"}, r"model must be 'local' exactly when relation is 'local'; got 'local'"),
        ({"scope": "each"}, r"scope must be one of 'joint', 'per-parameter'; got 'each'"),
        ({"unit": " "}, r"unit must be a non-empty string; got ' '"),
        ({"mechanism": ""}, r"mechanism must be a non-empty string; got ''"),
        ({"assumptions": "words"}, r"assumptions must be a tuple of sentences; got 'words'"),
        ({"scope": "per-parameter"}, r"joint_epsilon must be given when scope is 'per-parameter'; got None\. Say what"),
        ({"scope": "per-parameter", "joint_epsilon": 0.5}, r"joint_epsilon must be >= epsilon"),
        (
            {"scope": "per-parameter", "joint_epsilon": 5, "delta": 0.1},
            r"joint_delta must be given when scope is 'per-parameter' and delta is not 0; got None",
        ),
        (
            {"scope": "per-parameter", "joint_epsilon": 5, "delta": 0.1, "joint_delta": 0},
            r"joint_delta must be >= delta; got 0",
        ),
        ({"joint_epsilon": 7}, r"joint_epsilon must be left out when scope is 'joint'; got 7"),
        ({"simulated": 1}, r"simulated must be True or False; got 1"),
    ],
)
def test_bad_fields_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Guarantee(**({"epsilon": 1, "mechanism": "m"} | fields))  # type: ignore[arg-type]


def test_different_relations_units_and_scopes_do_not_add() -> None:
    base = Guarantee(epsilon=1, mechanism="m")
    with pytest.raises(IncompatibleGuarantees, match=r"units must agree to compose; got 'record' and 'patient'\. Restate"):
        base + dataclasses.replace(base, unit="patient")
    with pytest.raises(
        IncompatibleGuarantees, match=r"relations must agree .*as_replace_one\(\) first; no other direction is sound"
    ):
        base + dataclasses.replace(base, relation="add-remove")
    with pytest.raises(IncompatibleGuarantees, match=r"only joint guarantees compose; .* \.as_joint\(\) first"):
        base + Guarantee(epsilon=1, scope="per-parameter", joint_epsilon=5, mechanism="m")
    with pytest.raises(TypeError):
        base + 1  # type: ignore[operator]


def test_add_remove_implies_replace_one_at_twice_the_price() -> None:
    pure = Guarantee(epsilon=0.5, relation="add-remove", mechanism="m").as_replace_one()
    assert (pure.epsilon, pure.delta, pure.relation) == (1, 0, "replace-one")
    approximate = Guarantee(epsilon=1, delta=1e-6, relation="add-remove", mechanism="m").as_replace_one()
    assert approximate.epsilon == 2
    assert 1 + math.e <= approximate.delta * 10**6 <= 1 + math.e + 1e-9
    assert "restated from add-remove" in approximate.assumptions[-1]
    assert pure.as_replace_one() is pure
    with pytest.raises(IncompatibleGuarantees, match=r"a local guarantee must stay local"):
        Guarantee(epsilon=1, relation="local", model="local", mechanism="m").as_replace_one()
    unbounded = Guarantee(epsilon=math.inf, delta=1e-6, relation="add-remove", mechanism="m").as_replace_one()
    assert (unbounded.epsilon, unbounded.delta) == (math.inf, 1)


@given(
    st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=3, max_size=3),
    st.fractions(min_value=0, max_value=3),
)
def test_group_of_two_holds_for_random_mechanisms(rows: list[list[int]], epsilon: Fraction) -> None:
    """Three databases in a chain D - D° - D': the pair (D, D') keeps (2 eps, (1 + e^eps) delta) for the least true delta."""
    chain = [[Fraction(weight, sum(row)) for weight in row] for row in rows]
    delta = max(_least_delta(chain[i], chain[j], epsilon) for i, j in [(0, 1), (1, 0), (1, 2), (2, 1)])
    stated = Guarantee(epsilon=epsilon, delta=min(delta, Fraction(1)), relation="add-remove", mechanism="m").as_replace_one()
    for left, right in [(0, 2), (2, 0)]:
        assert _least_delta(chain[left], chain[right], Fraction(stated.epsilon)) <= stated.delta + Fraction(1, 10**12)


def _least_delta(p: list[Fraction], q: list[Fraction], epsilon: Fraction) -> Fraction:
    factor = Fraction(math.exp(epsilon))
    events = [subset for size in range(4) for subset in combinations(range(3), size)]
    return max(sum((p[i] - factor * q[i] for i in event), Fraction(0)) for event in events)


def test_per_parameter_promises_carry_their_joint_price() -> None:
    guarantee = Guarantee(epsilon=1, scope="per-parameter", joint_epsilon=5570, mechanism="learning-first")
    assert guarantee.cost == (5570, 0)
    assert guarantee.as_joint().epsilon == 5570
    assert "all of them together: epsilon = 5570" in str(guarantee)


def test_files_with_other_fields_are_refused() -> None:
    record = Guarantee(epsilon=1, mechanism="m").to_dict()
    with pytest.raises(ParameterError, match=r"exactly the fields .* check \['colour'\]"):
        Guarantee.from_dict(record | {"colour": "red"})
    with pytest.raises(ParameterError, match=r"joint_epsilon must equal epsilon when scope is 'joint'"):
        Guarantee.from_dict(record | {"joint_epsilon": "7"})
    with pytest.raises(ParameterError, match=r"guarantee must be valid JSON"):
        Guarantee.from_json("{")
    with pytest.raises(ParameterError, match=r"guarantee must be a JSON object; got list"):
        Guarantee.from_json("[]")


@pytest.mark.parametrize(
    "amount",
    ["1e4500", 10**4500, Fraction(10**4500), Fraction(1, 10**4500), -(10**4500)],
    ids=lambda amount: type(amount).__name__,
)
def test_an_amount_that_no_file_can_hold_is_refused_when_it_is_promised(amount: Any) -> None:
    with pytest.raises(ParameterError, match="epsilon must be") as caught:
        Guarantee(epsilon=amount)
    assert len(str(caught.value)) < 200
    with pytest.raises(ParameterError, match="delta must be"):
        Guarantee(epsilon=1, delta=amount)


def test_the_longest_amounts_can_be_written_shown_and_read() -> None:
    promise = Guarantee(epsilon=Fraction(10**3999), delta=Fraction(1, 10**3999))
    assert Guarantee.from_json(promise.to_json()) == promise
    assert str(promise)


def test_a_sum_that_grew_too_long_says_how_to_shorten_it() -> None:
    parts = [Guarantee(epsilon=Fraction(1, 10**2500 + step)) for step in (1, 7)]
    with pytest.raises(ParameterError, match="rounded_up"):
        parts[0] + parts[1]


def test_foreign_words_in_a_promise_stay_on_their_line() -> None:
    promise = Guarantee(epsilon=1, unit="person\nSigned", assumptions=("a\nb", "c"))
    assert len(str(promise).splitlines()) == 2
