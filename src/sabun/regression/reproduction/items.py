"""Everything the regression paper describes, where Sabun has it, and the test that runs it."""

from __future__ import annotations

from sabun.telling.reproduction import Item

__all__ = ["ITEMS"]

_AGAIN = "tests/regression/test_reproduction.py::test_the_reproduction_runs_and_shows_what_it_claims"
_BOUND = "tests/regression/test_risk_bound.py"

ITEMS: tuple[Item, ...] = (
    Item(
        item="Section 1 (introduction)", reason="Motivation; its claim that exchange helps is judged with those of section 4."
    ),
    Item(
        item="Section 2.1 (linear regression, ridge, (1) to (3))",
        place="sabun.regression.PrivateRidge",
        test="tests/regression/test_pooling.py::test_without_noise_the_pool_is_a_ridge_regression",
    ),
    Item(
        item="Section 2.2 (data in several organisations, narrow regions)",
        place="sabun regression simulate --setting narrow",
        test="tests/regression/test_simulation.py",
    ),
    Item(
        item="Section 2.3 and Definition 1 (differential privacy, (4))",
        place="sabun.privacy.Guarantee",
        test="tests/regression/test_neighbours.py",
    ),
    Item(
        item="Section 3.1 and Figure 1 (flow of estimates between organisations)",
        place="sabun regression combine",
        test="tests/regression/test_combining.py::test_the_papers_own_pipeline_runs_as_printed",
    ),
    Item(
        item="Section 3.1.1 ((5) to (7), objective perturbation)",
        place="sabun regression fit --method objpert",
        test="tests/regression/test_perturbation.py",
    ),
    Item(
        item="Equation (8) (the estimate as printed)",
        place="sabun regression fit --method paper",
        test="tests/regression/test_paper.py",
    ),
    Item(
        item="Section 3.1.1, posterior sampling [Wang 15] (cited as the alternative)",
        reason="No sampler of it is both exact and sure to end. Without a bound on the coefficients the normal posterior is "
        "private "
        "for no epsilon (R10). Cut to a ball, one draw at temperature epsilon / (2 (B + 1)^2) is epsilon-private, but: a "
        "Markov "
        "chain is exact only in the limit; rejection from the normal law is exact, and accepts with a probability that data "
        "can "
        "make as small as they like, so that its running time has no bound and tells the data; giving up after some tries "
        "releases how often it failed, whose ratio between neighbours no epsilon bounds. It would not pay either: its excess "
        "risk "
        "falls like p (B + 1)^2 / (epsilon n), that of objective perturbation and of noisy sums like 1/n^2.",
    ),
    Item(
        item="Section 3.1.2 ((9), (10), mirror averaging)",
        place="sabun regression combine --method mirror",
        test="tests/regression/test_mirror.py",
    ),
    Item(
        item="Section 3.2 ((11), generalisation error)",
        place="sabun.regression.simulation.errors_of",
        test="tests/regression/test_simulation.py",
    ),
    Item(
        item="Assumption 2 (bounded rows and coefficients, sub-Gaussian noise)",
        place="sabun.regression.Study",
        test="tests/regression/test_study.py",
    ),
    Item(item="Equation (12) (approximation error A2)", place="sabun.regression.risk_bound", test=_BOUND),
    Item(item="Theorem 3, (13)", place="sabun regression risk-bound", test=_BOUND),
    Item(item="Theorem 3 beside what is measured", place="reproduction: theorem-3", test=_AGAIN),
    Item(
        item="Proof of Theorem 3 (cited theorems)",
        reason="A sketch that names four theorems of others; their constants are in `sabun.regression.risk_bound`.",
    ),
    Item(item="Section 4 (conclusion: what to study next)", place="reproduction: methods", test=_AGAIN),
)
