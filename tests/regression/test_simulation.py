from __future__ import annotations

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.regression.simulation import simulate


def test_simulation_repeats_itself_and_checks_its_numbers() -> None:
    facts = {"rows": 100, "features": 2, "organisations": 2, "epsilon": 1, "repeats": 2}
    assert simulate(**facts) == simulate(**facts)
    assert simulate(**facts, random_state=1) != simulate(**facts)
    for change in ({"setting": "x"}, {"mechanism": "x"}, {"repeats": 0}, {"rows": 0}, {"random_state": -1}):
        with pytest.raises(ParameterError):
            simulate(**(facts | change))


def test_the_theory_of_the_privacy_price_has_the_measured_slope() -> None:
    """Objective perturbation: the price of privacy falls like 1/n**2 (slope -2), not like 1/n as Theorem 3 bounds it."""
    errors = [
        simulate(n_records=n, features=2, organisations=8, epsilon=1, method="objpert", repeats=6)["average"]
        for n in (400, 6400)
    ]
    slope = np.log(errors[1] / errors[0]) / np.log(16)
    assert slope < -1.2
