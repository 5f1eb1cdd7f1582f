"""Everything the outlier paper describes, where it is here, and the test that runs it."""

from __future__ import annotations

from sabun.telling.reproduction import Item

__all__ = ["ITEMS"]

_T = "tests/outliers/"
_RUN = f"{_T}test_reproduction.py::test_a_quick_reproduction_has_all_its_parts"
_EXAMPLES = f"{_T}test_reproduction.py::test_the_examples_are_what_their_words_say"
_WHERE = "a notion of the introduction; nothing to compute"

ITEMS: tuple[Item, ...] = (
    Item(item="Section 1.1, related work (Grubbs' test, SVM, k-anonymity)", reason=_WHERE),
    Item(
        item="Definition 1, (1): outliers",
        place="sabun.outliers.inspect_outliers",
        test=f"{_T}test_owner.py::test_the_owner_sees_exact_facts_with_a_warning",
    ),
    Item(
        item="(2): the number of outliers",
        place="sabun.outliers.OutlierCount",
        test=f"{_T}test_count.py::test_a_count_equals_the_plain_definition_whatever_the_cover",
    ),
    Item(
        item="Definition 2, (3): Hamming distance, neighbours",
        place="sabun.outliers.OutlierCount",
        test=f"{_T}test_laws.py::test_the_whole_mechanism_keeps_epsilon_on_every_pair_of_tiny_tables",
    ),
    Item(
        item="Definition 3, (4): (epsilon, delta)-differential privacy",
        place="sabun.Guarantee",
        test=f"{_T}test_laws.py::test_the_smooth_laws_keep_delta_at_the_worst_shift_and_stretch",
    ),
    Item(
        item="Definition 4, (5): global sensitivity",
        place="sabun.outliers.global_bound",
        test=f"{_T}test_ladder.py::test_the_global_bound_is_reached_on_the_line_and_never_broken",
    ),
    Item(
        item="Theorem 1, (6): Gaussian noise on the global sensitivity",
        place="sabun.outliers.paper.theorem_one_sigma",
        test=f"{_T}test_paper.py::test_theorems_1_and_2_have_their_printed_constants",
    ),
    Item(
        item="Definition 5, (7): local sensitivity",
        place="sabun.outliers.local_sensitivity",
        test=f"{_T}test_paper.py::test_theorem_4_and_its_candidates_hold_on_every_small_line",
    ),
    Item(
        item="Definition 6, (8): smooth sensitivity",
        place="sabun.outliers.smooth_bound",
        test=f"{_T}test_ladder.py::test_replace_one_bound_is_sound_and_smooth_everywhere",
    ),
    Item(
        item="Theorem 2, (9): Gaussian noise on a smooth sensitivity",
        place="sabun.outliers.paper.theorem_two",
        test=f"{_T}test_paper.py::test_theorems_1_and_2_have_their_printed_constants",
    ),
    Item(
        item="Definition 7, (10): degree",
        place="sabun.outliers.outlier_degrees",
        test=f"{_T}test_count.py::test_a_count_equals_the_plain_definition_whatever_the_cover",
    ),
    Item(
        item="Theorem 3, (11): lower bound of the global sensitivity",
        place="sabun.outliers.paper.printed_global_bound",
        test=f"{_T}test_reproduction.py::test_theorem_3_fails_between_k_and_2k_on_a_line",
    ),
    Item(item="Example 1", place="reproduction: examples", test=_EXAMPLES),
    Item(item="Figure 1", place="reproduction: figure-1", test=_EXAMPLES),
    Item(
        item="Definition 8, (12)-(14): candidates OC and IC",
        place="sabun.outliers.local_candidates",
        test=f"{_T}test_paper.py::test_theorem_4_and_its_candidates_hold_on_every_small_line",
    ),
    Item(
        item="Theorem 4, (15): upper bound of the local sensitivity",
        place="sabun outliers sensitivity --exact --owner-only",
        test=f"{_T}test_verbs.py::test_the_owner_alone_sees_the_sensitivity_of_the_table",
    ),
    Item(
        item="(16): the equality in the proof of Theorem 4",
        place="sabun.outliers.local_candidates",
        test=f"{_T}test_ladder.py::test_the_papers_equality_is_too_small_on_its_own_terms",
    ),
    Item(item="Example 2", place="reproduction: examples", test=_EXAMPLES),
    Item(item="Figure 2", place="reproduction: figure-2", test=_EXAMPLES),
    Item(
        item="Algorithm 1, as printed and repaired",
        place="sabun.outliers.enumerate_balls",
        test=f"{_T}test_enclosing.py::test_algorithm_1_as_printed_never_looks_at_the_last_two_records",
    ),
    Item(
        item="Section 4.2: cost of (12), (14) and an enclosing ball",
        reason="Counts of steps; how many records Algorithm 1 meets is judged among the claims. O(d²) for an enclosing ball "
        "leaves out how many points it encloses.",
    ),
    Item(
        item="Section 4.3: cost of (20) and (22), exponential in t",
        reason="Counts of steps; how far Algorithm 2 has to go is judged among the claims.",
    ),
    Item(
        item="(17)-(23): candidates after t moves",
        place="sabun.outliers.paper.PrintedRungs",
        test=f"{_T}test_paper.py::test_the_first_printed_rung_is_theorem_4_where_records_are_the_best_places",
    ),
    Item(
        item="(24): upper bound of the smooth sensitivity",
        place="sabun outliers count --method paper",
        test=f"{_T}test_verbs.py::test_the_papers_formula_is_reached_by_both_names_and_promises_nothing",
    ),
    Item(item="Example 3", place="reproduction: examples", test=_EXAMPLES),
    Item(item="Figure 3", place="reproduction: figure-3", test=_EXAMPLES),
    Item(
        item="(25), Algorithm 2",
        place="sabun.outliers.paper.algorithm_two",
        test=f"{_T}test_paper.py::test_algorithm_2_stops_before_the_largest_step_of_24",
    ),
    Item(
        item="Section 5.1: the two data sets and the radius of best accuracy",
        place="reproduction: radius",
        test=f"{_T}test_reproduction.py::test_the_papers_radii_make_every_record_an_outlier_on_z_scored_data",
    ),
    Item(
        item="Table 1, (26): accuracy",
        place="reproduction: table-1",
        test=f"{_T}test_reproduction.py::test_table_1_adds_up_to_the_accuracy",
    ),
    Item(item="Section 5.2: noise on both data sets", place="reproduction: noise-wdbc", test=_RUN),
    Item(
        item="Figure 4",
        place="reproduction: figure-4",
        test=f"{_T}test_reproduction.py::test_figures_4_and_5_show_the_count_with_its_noise_at_the_best_radius",
    ),
    Item(
        item="Figure 5",
        place="reproduction: figure-5",
        test=f"{_T}test_reproduction.py::test_figures_4_and_5_show_the_count_with_its_noise_at_the_best_radius",
    ),
    Item(
        item="Section 6: outliers by region, left for later there",
        place="sabun.outliers.RegionCount",
        test=f"{_T}test_regions.py::test_a_large_epsilon_gives_the_exact_counts",
    ),
    Item(
        item="Section 6: outliers by dimension, left for later there",
        place="sabun.outliers.SubspaceChoice",
        test=f"{_T}test_subspace.py::test_the_subspace_with_the_outliers_is_chosen",
    ),
)
