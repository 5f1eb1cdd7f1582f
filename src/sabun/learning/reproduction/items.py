"""Everything the learning paper describes, where Sabun has it, and the test that runs it."""

from __future__ import annotations

from sabun.telling.reproduction import Item

__all__ = ["ITEMS"]

_AGAIN = "tests/learning/test_reproduction.py"
_QUICK = f"{_AGAIN}::test_a_quick_run_has_every_table_and_figure"
_NETWORK = "tests/learning/test_network.py"
_PAPER = "tests/learning/test_paper_methods.py"
_RANGES = "tests/learning/test_ranges.py"
_WRONG = "tests/learning/test_counterexamples.py"

ITEMS: tuple[Item, ...] = (
    Item(item="Section 1 (introduction)", reason="Motivation; its claim that no method exists is judged as erratum L10."),
    Item(
        item="Section 2-1 and Figure 1 (a model goes to others)",
        place="sabun learning train",
        test="tests/learning/test_verbs.py",
    ),
    Item(item="Section 2-2 and Figure 2 (the network, (1))", place="sabun.learning.network.Network", test=_NETWORK),
    Item(item="Equations (2) to (4) (errors and changes)", place="sabun.learning.network.Network", test=_NETWORK),
    Item(
        item="Equations (5) and (6) (updates, lambda)",
        place="sabun.learning.plain_training.PlainTraining",
        test=f"{_RANGES}::test_decay_shrinks_weights_and_leaves_biases",
    ),
    Item(
        item="Section 2-3, Definitions 1 and 2, Theorem 1 (Laplace mechanism, (7), (8))",
        place="sabun.privacy.noise.discrete_laplace",
        test=f"{_RANGES}::test_the_law_of_each_kind_is_that_of_its_own_width",
    ),
    Item(
        item="Section 3-1 (private networks of others, Abadi et al.)",
        place="sabun learning train --method dp-sgd",
        test="tests/learning/test_dpsgd.py",
    ),
    Item(
        item="Section 3-2 (private tables of others)",
        place="sabun.learning.synthesis.bayes_net.BayesNet",
        test="tests/learning/test_synthesis.py",
    ),
    Item(
        item="Section 4-1 and Theorem 2 (a definition: epsilon per parameter, (9))",
        place="sabun.privacy.Guarantee",
        test="tests/learning/test_accounting.py::test_the_papers_epsilon_adds_up_over_the_parameters",
    ),
    Item(item="Section 4-2 and Figure 3 (three approaches)", place="reproduction: three-approaches", test=_QUICK),
    Item(
        item="Section 4-2 (1) (AnonymizingFirst)",
        place="sabun learning train --method anonymizing-first",
        test="tests/learning/test_synthesis.py",
    ),
    Item(
        item="Section 4-2 (2) (LearningFirst: least and largest weight and bias)",
        place="sabun learning train --method learning-first --set weight-range=-0.5:0.5 --set bias-range=-1:1 "
        "--allow-per-parameter",
        test=f"{_RANGES}::test_learning_first_keeps_weights_and_biases_in_ranges_of_their_own",
    ),
    Item(
        item="Theorem 3 (LearningFirst)",
        place="sabun.learning.learning_first.LearningFirst",
        test=f"{_PAPER}::test_the_joint_figure_of_learning_first_is_tight",
    ),
    Item(
        item="Lemma 1 ((10) to (15), cutting after noise)",
        place="sabun.learning.ranges.noisy_within",
        test=f"{_WRONG}::test_the_papers_printed_lemma_1_is_a_constant",
    ),
    Item(
        item="Section 4-2 (3) ((16) to (19), softmax, cross-entropy, rectifier)",
        place="sabun.learning.network.Network",
        test=_NETWORK,
    ),
    Item(
        item="Equations (20) to (26) (intervals of changes)",
        place="sabun.learning.update_bounds.update_intervals",
        test="tests/learning/test_update_bounds.py",
    ),
    Item(
        item="Equations (20) to (26) as thresholds in training",
        reason="The printed algorithm does not use them either: its noise has the constants that are set as thresholds after "
        "them. "
        "They depend on the current weights, and as thresholds (or as cuts after the noise) would tell of one weight what the "
        "others hold: the promise per parameter then fails for a single batch (L9). They stand on the card, beside the "
        "threshold.",
    ),
    Item(
        item="Section 4-2 (3) (AnonymizedLearning: least and largest change of weight and bias)",
        place="sabun learning train --method anonymized-learning --set update-range=-0.1:0.1 --set bias-update-range=-0.5:0.5 "
        "--allow-per-parameter",
        test=f"{_RANGES}::test_anonymized_learning_has_a_range_for_changes_of_biases",
    ),
    Item(
        item="Theorem 4 (AnonymizedLearning)",
        place="reproduction: theorem-4",
        test=f"{_WRONG}::test_theorem_4_is_false_for_four_batches",
    ),
    Item(
        item="Lemma 2 (composition per parameter)",
        place="sabun.learning.accounting.joint_of_updates",
        test=f"{_PAPER}::test_a_weight_is_worth_batches_times_epsilon_and_not_epsilon",
    ),
    Item(
        item="Section 5-1 (Adult, 45,222 records)", place="sabun.datasets.load_adult", test="tests/datasets/test_adult_full.py"
    ),
    Item(item="Section 5-1 (network, accuracy 0.85, F-measure 0.79)", place="reproduction: baseline", test=_QUICK),
    Item(
        item="Section 5-1 (rate 0.01, lambda 0.001, 500 epochs, with noise)",
        place="reproduction: literal",
        test=f"{_AGAIN}::test_the_papers_own_setting_is_run_as_printed",
    ),
    Item(item="Section 5-2 and Figure 5 (comparison of the approaches)", place="reproduction: three-approaches", test=_QUICK),
    Item(item="Figure 4", reason="There is none in the paper: its figures are numbered 1, 2, 3 and 5."),
    Item(
        item="Section 6 (conclusion: better than the baseline at the same level)",
        place="reproduction: joint",
        test=f"{_AGAIN}::test_at_a_joint_epsilon_of_one_dp_sgd_is_far_ahead_of_the_paper",
    ),
)
