"""Everything the density-ratio paper describes, where it is here, and the test that runs it."""

from __future__ import annotations

from sabun.telling.reproduction import Item

__all__ = ["ITEMS"]

_T = "tests/density/"
_PAPER = f"{_T}test_paper.py::"
_RUN = f"{_T}test_reproduction.py::"
_REACHED = f"{_T}test_verbs.py::test_every_method_is_reached_with_the_guarantee_that_is_true_of_it"

ITEMS: tuple[Item, ...] = (
    Item(item="Table 1: methods with and without privacy", place="sabun.density.DensityRatio", test=_REACHED),
    Item(
        item="Definition 1, (1): ε-differential privacy",
        place="sabun.Guarantee",
        test=f"{_PAPER}test_every_method_releases_weights_with_its_true_guarantee",
    ),
    Item(
        item="Definition 2, (2): sensitivity",
        place="sabun.density.paper.FixedBasis",
        test=f"{_PAPER}test_kernel_sums_stay_inside_the_papers_sensitivity",
    ),
    Item(
        item="Theorem 1, (3)-(4): the Laplace mechanism",
        place="sabun.density.mechanism.ManhattanNoise",
        test=f"{_PAPER}test_methods_b_and_c_spend_epsilon_on_h",
    ),
    Item(
        item="Section 2.2, (5)-(8): importance weighting",
        place="sabun.density.DensityRatio",
        test=f"{_RUN}test_the_true_ratio_has_mean_one_under_the_public_density",
    ),
    Item(
        item="Section 2.2: the mechanism of Ji and Elkan",
        place="sabun density weights --method ji-elkan",
        test=_REACHED,
    ),
    Item(
        item="Section 2.3, (9)-(11): linear and kernel models",
        place="sabun.density.UlsifParametricSettings",
        test=f"{_PAPER}test_every_method_releases_weights_with_its_true_guarantee",
    ),
    Item(
        item="Section 2.3, (12)-(20): uLSIF",
        place="sabun.density.ULSIF",
        test=f"{_T}test_ulsif.py::test_weights_equal_those_of_densratio",
    ),
    Item(
        item="Section 2.3: analytic leave-one-out cross-validation",
        place="sabun.density.ULSIF",
        test=f"{_T}test_ulsif.py::test_leave_one_out_equals_brute_force",
    ),
    Item(
        item="Section 3.1, (21)-(22): the parametric model",
        place="sabun density weights --method ulsif-parametric --basis 1 --setting basis_bounds=0:1",
        test=_REACHED,
    ),
    Item(
        item="Section 3.2, method A",
        place="sabun density weights --method ulsif-a",
        test=f"{_T}test_verbs.py::test_method_a_takes_its_box_from_the_declared_bounds",
    ),
    Item(
        item="Section 3.2, (23): amplification by sampling",
        place="sabun.density.paper.amplified",
        test=f"{_PAPER}test_amplification_of_the_published_setting",
    ),
    Item(item="Section 3.2, method B", place="sabun density weights --method ulsif-b", test=_REACHED),
    Item(
        item="Section 3.2, method C",
        place="sabun density weights --method ulsif-c --accept-publishing-raw-records",
        test=_REACHED,
    ),
    Item(
        item="Definition 3, (24): (ε, δ)-differential privacy",
        place="sabun.Guarantee",
        test=f"{_PAPER}test_every_method_releases_weights_with_its_true_guarantee",
    ),
    Item(
        item="Section 4: noise in α over λ, n, ε and b",
        place="reproduction: section-4",
        test=f"{_RUN}test_the_noise_in_alpha_is_of_the_stated_order",
    ),
    Item(
        item="Section 5: the experiment",
        place="reproduction: section-5-curves",
        test=f"{_RUN}test_medians_agree_with_an_independent_implementation",
    ),
    Item(
        item="Figure 1",
        place="reproduction: figure-1",
        test=f"{_RUN}test_figures_show_whole_curves_of_the_median_data_set",
    ),
    Item(
        item="Figure 2",
        place="reproduction: figure-2",
        test=f"{_RUN}test_figures_show_whole_curves_of_the_median_data_set",
    ),
    Item(
        item="Figure 3, with its brown line",
        place="reproduction: figure-3",
        test=f"{_RUN}test_figures_show_whole_curves_of_the_median_data_set",
    ),
    Item(
        item="Figure 4",
        place="reproduction: figure-4",
        test=f"{_RUN}test_figures_show_whole_curves_of_the_median_data_set",
    ),
    Item(
        item="Section 6: comparison with the earlier method, left for later there",
        place="reproduction: ours-by-epsilon",
        test=f"{_RUN}test_the_default_beats_its_rivals",
    ),
    Item(
        item="Section 6: objective perturbation, left for later there",
        reason="it is the mechanism of section 3.1 again: the objective is linear in h and its Hessian is public (erratum D10)",
    ),
)
