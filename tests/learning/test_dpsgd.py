from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from learning.learning_samples import data, problem
from sabun.learning.dpsgd import DpSgd
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.poisson import PoissonPlan
from sabun.learning.recompute import recompute
from sabun.learning.stream import Stream
from sabun.learning.training import Data, one_thread, train, unheard
from sabun.privacy.noise import os_coin, seeded_coin


def run(kind: type = DpSgd, **changes: object) -> DpSgd:
    given = problem(**{name: value for name, value in changes.items() if name in {"relation", "epsilon", "delta", "n_public"}})
    values = {
        "problem": given,
        "network": given.network(()),
        "plan": PoissonPlan.of(sampling_rate=0.2, epochs=4),
        "clip_norm": 1.0,
        "learning_rate": 1.0,
        "momentum": 0.9,
    }
    return kind(**values)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", [DpSgd, LaplaceSgd])
def test_the_account_proves_the_promise_and_little_less(kind: type, relation: str) -> None:
    method = run(kind, relation=relation, delta=Fraction(1, 10**5) if kind is DpSgd else Fraction(0))
    epsilon, delta = recompute(method.account)
    assert epsilon <= method.guarantee.epsilon
    assert epsilon > method.guarantee.epsilon * Fraction(98, 100)
    assert delta <= method.guarantee.delta
    assert method.guarantee.relation == relation


def test_replacing_costs_more_noise_than_adding() -> None:
    assert run(relation="replace-one").multiplier > 1.8 * run(n_public=100).multiplier


def test_less_epsilon_means_more_noise() -> None:
    assert run(epsilon=Fraction(1, 10)).multiplier > 5 * run(epsilon=Fraction(1)).multiplier


def test_an_empty_table_gives_noise_and_no_error() -> None:
    for kind in (DpSgd, LaplaceSgd):
        weights = train(
            run(kind), Data(rows=np.empty((0, 3)), labels=np.empty(0, dtype=np.int64)), coin=os_coin(), progress=unheard
        )["weights"]
        assert np.isfinite(weights).all()
        assert np.abs(weights).max() > 0


def test_no_step_is_skipped() -> None:
    method = replace(run(), plan=PoissonPlan(threshold=2**30, steps=7))
    assert [state.step for state in method.states(data(), Stream(bytes(32)), progress=unheard, start=method.first())] == list(
        range(1, 8)
    )


def test_rows_without_a_known_label_count_as_absent() -> None:
    method, whole = run(), data(60)
    some = Data(rows=np.concatenate([whole.rows, np.ones((5, 3))]), labels=np.concatenate([whole.labels, np.full(5, -1)]))
    both = [train(method, table, coin=seeded_coin(3), progress=unheard)["weights"] for table in (whole, some)]
    assert (both[0] == both[1]).all()


def test_progress_tells_what_was_spent_so_far() -> None:
    heard: list[tuple[float, str]] = []

    def listen(share: float, words: str) -> None:
        heard.append((share, words))

    train(run(), data(), coin=seeded_coin(1), progress=listen)
    assert heard[-1][0] == 1.0
    assert "epsilon so far at most 0.99" in heard[-1][1] or "epsilon so far at most 1" in heard[-1][1]
    spent = [float(words.rsplit(" ", 1)[1]) for _, words in heard]
    assert spent == sorted(spent)
    assert len(set(spent)) == 10
    assert len(heard) == 20


def test_the_divisor_is_a_public_or_a_noisy_number() -> None:
    assert run(n_public=500)._divisor(data(100), Stream(bytes(32))) == pytest.approx(100.0)
    noisy = {run()._divisor(data(100), Stream.fresh(os_coin())) for _ in range(8)}
    assert len(noisy) > 1


def test_laplace_scale_covers_the_rounding() -> None:
    method = run(LaplaceSgd, delta=Fraction(0))
    assert method.scale * method.step_epsilon >= 2**30 + method.network.n_weights


def test_two_runs_under_one_key_are_equal_and_under_two_keys_are_not() -> None:
    method = run()
    first, again = (train(method, data(), coin=seeded_coin(5), progress=unheard)["weights"] for _ in range(2))
    other = train(method, data(), coin=os_coin(), progress=unheard)["weights"]
    assert (first == again).all()
    assert (first != other).any()


def test_the_matrix_library_is_held_to_one_thread_and_let_go() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        for _ in range(2):  # the libraries are looked for once
            with one_thread():
                assert threads() == {1}
            assert threads() == {2}
