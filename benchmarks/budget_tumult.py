"""What Tumult Core needs for two lists of docs/budget.md; run in an environment of its own that has `tmlt.core`, not Sabun.

    python benchmarks/budget_tumult.py RHO     (the rho of one Gaussian release; `benchmarks.budget` gives it)

Tumult composes one measure at a time: pure epsilons by their sum, zCDP by rho, turned into (epsilon, delta) at the end. It has
no noise on a Poisson sample, so that the third list has only its sum of (epsilon, delta) there.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from typing import Any

_DELTA = Fraction(1, 10**6)


def main(rho: Fraction) -> None:
    """Prints the epsilons at 1e-6, to a thousandth, as JSON."""
    import sympy
    from tmlt.core.measurements.composition import Composition
    from tmlt.core.measurements.converters import PureDPToRhoZCDP, RhoZCDPToApproxDP
    from tmlt.core.measurements.noise_mechanisms import AddDiscreteGaussianNoise, AddGeometricNoise

    def exact(number: Fraction) -> Any:
        return sympy.Rational(number.numerator, number.denominator)

    def least(measurements: list[Any]) -> float:
        whole, low, high = RhoZCDPToApproxDP(Composition(measurements)), 0, 20_000
        while high - low > 1:
            middle = (low + high) // 2
            fits = whole.privacy_relation(1, (exact(Fraction(middle, 1000)), exact(_DELTA)))
            low, high = (low, middle) if fits else (middle, high)
        return high / 1000

    tenths = [PureDPToRhoZCDP(AddGeometricNoise(10))] * 100
    noise = AddDiscreteGaussianNoise(sigma_squared=exact(1 / (2 * rho)))
    print(json.dumps([least(tenths), least([noise] * 10)]))


if __name__ == "__main__":
    main(Fraction(sys.argv[1]))
