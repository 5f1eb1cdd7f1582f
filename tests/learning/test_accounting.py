from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.asking.evidence import ROWS, Specimen, installed
from sabun.errors import ParameterError
from sabun.learning import evidence
from sabun.learning.accounting import (
    Target,
    halved,
    joint_of_updates,
    laplace_step_epsilon,
    noise_multiplier,
    sampled_laplace_epsilon,
    training_events,
    update_epsilon,
)
from sabun.learning.poisson import PoissonPlan
from sabun.learning.recompute import recompute
from sabun.privacy import Guarantee, tight_epsilon
from sabun.privacy.events import SampledGaussian

PLAN = PoissonPlan.of(sampling_rate=0.1, epochs=10)
DELTA = Fraction(1, 10**5)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_the_multiplier_is_what_dp_accounting_asks_for(epsilon: str) -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    target = Target(epsilon=Fraction(epsilon), delta=DELTA)
    multiplier = noise_multiplier(PLAN, target, Fraction(0))
    accountant = pld_privacy_accountant.PLDAccountant()
    step = dp_event.PoissonSampledDpEvent(float(PLAN.probability), dp_event.GaussianDpEvent(float(multiplier)))
    accountant.compose(dp_event.SelfComposedDpEvent(step, PLAN.steps))
    theirs = accountant.get_epsilon(float(DELTA))
    assert 0.98 * float(target.epsilon) < theirs <= float(target.epsilon) * (1 + 1e-6)


def test_a_noisy_count_is_paid_for() -> None:
    target = Target(epsilon=Fraction(1), delta=DELTA)
    free, paid = (noise_multiplier(PLAN, target, share) for share in (Fraction(0), Fraction(1, 50)))
    assert paid > free
    assert len(training_events(PLAN, paid, Fraction(1, 50))) == 2
    assert len(training_events(PLAN, free, Fraction(0))) == 1


@settings(max_examples=30, deadline=None)
@given(st.fractions(Fraction(1, 100), 20), st.integers(4, 12))
def test_half_the_price_restated_is_within_the_whole(epsilon: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    half = halved(epsilon, delta)
    restated = Guarantee(epsilon=half.epsilon, delta=half.delta, relation="add-remove", mechanism="any").as_replace_one()
    assert restated.epsilon == epsilon
    assert restated.delta <= delta
    assert restated.delta > delta * Fraction(999, 1000)


def sampled_ratio(rate: Fraction, step: float) -> float:
    """The largest log-ratio of randomised response on a Poisson sample: one record or none."""
    keep = math.exp(step) / (1 + math.exp(step))
    with_record = {
        bit: float(rate) * (keep if bit else 1 - keep) + (1 - float(rate)) * (1 - keep if bit else keep) for bit in (0, 1)
    }
    without = {0: keep, 1: 1 - keep}
    return max(abs(math.log(with_record[bit] / without[bit])) for bit in (0, 1))


@pytest.mark.parametrize(("rate", "step"), list(itertools.product([0.01, 0.3, 1.0], [0.1, 1.0, 4.0])))
def test_amplification_holds_on_a_mechanism_that_attains_it(rate: float, step: float) -> None:
    plan = PoissonPlan.of(sampling_rate=rate, epochs=1)
    plan = PoissonPlan(threshold=plan.threshold, steps=1)
    bound = float(sampled_laplace_epsilon(plan, Fraction(step)))
    truth = sampled_ratio(plan.probability, step)
    assert truth <= bound + 1e-12
    assert bound < truth * 1.000001 + 1e-12


def test_the_step_epsilon_uses_the_whole_budget_and_no_more() -> None:
    step = laplace_step_epsilon(PLAN, Fraction(2))
    assert Fraction(1999, 1000) < sampled_laplace_epsilon(PLAN, step) <= 2


@pytest.mark.parametrize(("epsilon", "pure"), [("0.01", 55.7), ("0.1", 557), ("1", 5570), ("10", 55700)])
def test_the_papers_epsilon_adds_up_over_the_parameters(epsilon: str, pure: float) -> None:
    joint = joint_of_updates(n_weights=5570, epsilon=Fraction(epsilon), epochs=1, delta=Fraction(0))
    assert float(joint) == pytest.approx(pure)


@pytest.mark.parametrize(
    ("epsilon", "epochs", "published"), [("0.01", 1, 3.4), ("0.01", 20, 0.65), ("0.1", 20, 8.6), ("1", 500, 20)]
)
def test_many_epochs_are_cheaper_with_a_delta(epsilon: str, epochs: int, published: float) -> None:
    joint = joint_of_updates(n_weights=5570, epsilon=Fraction(epsilon), epochs=epochs, delta=DELTA)
    assert float(joint) == pytest.approx(published, rel=0.03)


def test_solving_for_a_joint_epsilon_stays_within_it() -> None:
    for delta in (Fraction(0), DELTA):
        each = update_epsilon(n_weights=212, joint_epsilon=Fraction(8), epochs=5, delta=delta)
        joint = joint_of_updates(n_weights=212, epsilon=each, epochs=5, delta=delta)
        assert Fraction(79, 10) < joint <= 8


def test_an_account_of_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ParameterError, match="rule must be one of"):
        recompute({"rule": "trust me"})
    with pytest.raises(ParameterError, match="account fields must be exactly epsilon, n_weights"):
        recompute({"rule": "weight-noise", "epsilon": "1"})
    with pytest.raises(ParameterError, match="n_weights must be a whole number >= 1"):
        recompute({"rule": "weight-noise", "epsilon": "1", "n_weights": 0})
    with pytest.raises(ParameterError, match="epsilon must be finite and >= 0"):
        recompute({"rule": "weight-noise", "epsilon": "-1", "n_weights": 2})


def test_parts_add_up() -> None:
    pure = {"rule": "parts", "pure": ["1/10", "9/10"], "rho": "0", "delta": "0"}
    assert recompute(pure) == (1, 0)
    assert recompute(pure | {"rho": "1/100", "delta": "1e-6"})[0] > 1


@pytest.mark.parametrize(
    "change", [{"noise_multiplier": "1/1000000"}, {"count": 10**9}, {"sampling_probability": "2"}, {"kind": "unheard-of"}]
)
def test_a_card_cannot_ask_for_endless_work(change: dict[str, object]) -> None:
    event = {"kind": "sampled-gaussian", "count": 10, "noise_multiplier": "2", "sampling_probability": "1/10"} | change
    with pytest.raises(ParameterError):
        recompute({"rule": "sampled-gaussian", "relation": "add-remove", "events": [event], "delta": "1e-5"})


def test_a_delta_that_pays_alone_does_not_stop_the_search() -> None:
    plan = PoissonPlan.of(sampling_rate=0.1, epochs=30)
    found = noise_multiplier(plan, Target(epsilon=Fraction(1), delta=Fraction(3, 10)), Fraction(0))
    assert tight_epsilon(training_events(plan, found, Fraction(0)), delta=Fraction(3, 10)) <= 1


@pytest.mark.parametrize(("slope", "settles"), [("1/2", True), ("2/3", True), ("99/100", False)])
def test_a_promise_for_replaced_records_is_confirmed_or_proves_nothing(
    slope: str, settles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of somebody else may be such that no digit ever settles: 1 + s e has its fixed point at 1 / (1 - s)."""
    asked: list[Fraction] = []

    def halved(epsilon: Fraction, delta: Fraction) -> Target:
        asked.append(epsilon / 2)
        return Target(epsilon=epsilon / 2, delta=delta)

    monkeypatch.setattr("sabun.learning.recompute.halved", halved)
    monkeypatch.setattr("sabun.learning.recompute.tight_epsilon", lambda events, *, delta: 1 + Fraction(slope) * asked[-1])
    found, _ = recompute(
        {
            "rule": "sampled-gaussian",
            "relation": "replace-one",
            "events": [SampledGaussian(noise_multiplier=1, sampling_probability=Fraction(1, 2), count=3).to_dict()],
            "delta": "1e-5",
        }
    )
    point = 1 / (1 - Fraction(slope))
    assert (2 * point <= found <= 2 * point * (1 + Fraction(1, 10**8))) if settles else found == math.inf


@pytest.mark.parametrize(
    "specimen", evidence.VARIANTS, ids=lambda specimen: f"{specimen.mechanisms[-1]} {specimen.setting[-40:]}"
)
def test_what_a_run_says_it_has_spent_is_in_the_end_what_it_promises(specimen: Specimen) -> None:
    if not installed(specimen.needs):
        pytest.skip("needs an extra")
    heard: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = specimen.fit(specimen.make(progress=lambda _, words: heard.append(words)), ROWS)
    spent = [Fraction(words.rsplit(" ", 1)[1]) for words in heard]
    promised = Fraction(model.guarantee_.cost[0])
    assert spent == sorted(spent)
    if "learning-first" in specimen.mechanisms:  # noise comes after the last step: nothing is spent before
        assert spent[-1] == 0
    else:
        assert Fraction(9, 10) * promised <= spent[-1] <= promised
    joint, delta = recompute(model.release_.provenance.parameters["account"])
    least = Fraction(995, 1000) if delta else 1 - Fraction(1, 10**6)
    assert least * promised <= joint <= promised, "what a card's account adds up to"
    assert delta <= Fraction(model.guarantee_.cost[1])


@pytest.mark.parametrize("step", [Fraction(1, 1000), Fraction(1, 7), Fraction(3)])
@pytest.mark.parametrize("rate", [0.001, 0.1, 1.0])
def test_sampled_laplace_steps_are_priced_no_lower_than_they_lose(step: Fraction, rate: float) -> None:
    """In forty digits: whatever is rounded, is rounded up."""
    plan = PoissonPlan.of(sampling_rate=rate, epochs=3)
    with mpmath.workdps(40):
        share, each = (mpmath.mpf(part.numerator) / part.denominator for part in (plan.probability, step))
        lost = plan.steps * mpmath.log(1 + share * mpmath.expm1(each))
        told = sampled_laplace_epsilon(plan, step)
        assert lost <= mpmath.mpf(told.numerator) / told.denominator <= lost + plan.steps * mpmath.mpf(10) ** -14
