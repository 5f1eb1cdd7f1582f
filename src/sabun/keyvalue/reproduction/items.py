"""Everything the key-value paper describes, where Sabun has it, and the test that runs it."""

from __future__ import annotations

from sabun.telling.reproduction import Item

__all__ = ["ITEMS"]

_CLASSIC = "tests/keyvalue/client/test_classic.py"
_LAW = "tests/keyvalue/client/test_law.py"
_AGAIN = "tests/keyvalue/test_reproduction.py"
_QUICK = f"{_AGAIN}::test_a_quick_run_has_every_table_and_figure"
_ESTIMATES = "tests/keyvalue/test_estimates.py"

ITEMS: tuple[Item, ...] = (
    Item(
        item="Section 1 (introduction)",
        reason="Motivation; nothing is defined or claimed in it that later sections do not have.",
    ),
    Item(
        item="Section 2.0.1 (users, keys, values)",
        place="sabun.keyvalue.Study",
        test="tests/keyvalue/test_study.py",
    ),
    Item(item="Definition 1 (local differential privacy)", place="sabun.privacy.Guarantee", test=_LAW),
    Item(
        item="Section 2.2 and Theorem 1 (randomized response)",
        place="sabun.keyvalue.RandomizedResponse",
        test=_CLASSIC,
    ),
    Item(item="Section 2.3 and Theorem 2 (Harmony, VPP)", place="sabun.keyvalue.Harmony", test=_CLASSIC),
    Item(
        item="Section 2.4 (PrivKV: perturbation)",
        place="sabun keyvalue study --protocol privkv",
        test=_LAW,
    ),
    Item(
        item="Theorem 3 (composition, epsilon = epsilon 1 + epsilon 2)",
        place="sabun.keyvalue.client.probabilities.certified_epsilon",
        test="tests/keyvalue/client/test_probabilities.py::test_privkv_promises_more_than_its_paper_says",
    ),
    Item(
        item="Section 2.4 (PrivKV: frequencies and means)",
        place="sabun keyvalue estimate --method ye",
        test=f"{_ESTIMATES}::test_the_published_estimator_pulls_rare_means_to_zero_for_every_n",
    ),
    Item(
        item="Section 2.4.1 (PrivKVM, c rounds)",
        place="sabun keyvalue means",
        test="tests/keyvalue/test_rounds.py::test_privkvm_runs_from_round_to_round",
    ),
    Item(
        item="Section 3.1 (EM: start, iteration, threshold eta)",
        place="sabun keyvalue estimate --method em --eta --start --iterations",
        test=f"{_ESTIMATES}::test_start_threshold_and_iterations_of_em_are_choices",
    ),
    Item(
        item="Section 3.2 (EM for PrivKV, four states)",
        place="sabun.keyvalue.em.four_states",
        test=f"{_ESTIMATES}::test_the_four_state_em_ends_where_it_starts",
    ),
    Item(
        item="Section 3.2 (numerical example, 0.387455)",
        place="reproduction: example",
        test=f"{_AGAIN}::test_the_numerical_example_of_the_paper",
    ),
    Item(item="Figure 1 (the system)", reason="A drawing of devices and a collector; `docs/jobs/keyvalue.md` tells the same."),
    Item(item="Section 4 and 4.0.1, Table 1 (data sets)", place="reproduction: table-1", test=_QUICK),
    Item(item="Section 4.1 (mean squared errors)", place="sabun.keyvalue.reproduction.measure", test=_AGAIN),
    *(
        Item(item=f"Table {number} (frequencies by epsilon, section 4.2.1)", place=f"reproduction: table-{number}", test=_QUICK)
        for number in (2, 3, 4)
    ),
    *(
        Item(item=f"Figure {number} (means by epsilon, section 4.2.1)", place=f"reproduction: figure-{number}", test=_QUICK)
        for number in (2, 3, 4)
    ),
    Item(item="Figure 5 (means by key, epsilon 3)", place="reproduction: figure-5", test=_QUICK),
    *(
        Item(item=f"Table {number} (frequencies by people, section 4.2.2)", place=f"reproduction: table-{number}", test=_QUICK)
        for number in (5, 6, 7)
    ),
    *(
        Item(item=f"Figure {number} (means by people, section 4.2.2)", place=f"reproduction: figure-{number}", test=_QUICK)
        for number in (6, 7, 8)
    ),
    Item(
        item="Section 4.2.2 (the gap grows with n)",
        place="sabun.keyvalue.reproduction.claims.claims",
        test=f"{_AGAIN}::test_the_headline_gains_are_computed_from_the_run",
    ),
    Item(
        item="Section 5 (best on the power law; rare keys still worst)",
        place="sabun.keyvalue.reproduction.claims.claims",
        test=f"{_AGAIN}::test_the_headline_gains_are_computed_from_the_run",
    ),
    Item(
        item="Section 5 (gains of 69.5 % and 85.2 %)",
        place="sabun.keyvalue.reproduction.claims.claims",
        test=f"{_AGAIN}::test_the_headline_gains_are_computed_from_the_run",
    ),
)
