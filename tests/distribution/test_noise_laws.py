"""The law of each sampler: the true scale is accepted, a scale wrong by 30 % is rejected; OpenDP as an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sabun.asking.evidence import Bench, Check
from sabun.audit.samplers import CHECKS, NEVER, same_law, untried
from sabun.privacy import noise
from sabun.privacy.noise import discrete_gaussian, discrete_laplace, os_coin

CASES = [pytest.param(check, case, id=f"{check.claim} {number}") for check in CHECKS for number, case in enumerate(check.cases)]


@pytest.mark.parametrize(("check", "case"), CASES)
def test_a_sampler_has_its_law_and_no_other(check: Check, case: Mapping[str, Any]) -> None:
    check.try_case(Bench(), case)


def test_every_sampler_is_tried() -> None:
    assert untried(noise) == []


@pytest.mark.parametrize("scale", [3, 1000])
def test_opendp_draws_from_the_same_law(scale: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    gauss = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(scale))
    for oracle, ours, parameter in [(laplace, discrete_laplace, scale), (gauss, discrete_gaussian, scale**2)]:
        theirs = np.array(oracle([0] * 20_000))
        assert same_law(theirs, ours(parameter, coin=os_coin(), size=20_000)) > NEVER
        assert same_law(theirs, ours(parameter * 2, coin=os_coin(), size=20_000)) < NEVER
