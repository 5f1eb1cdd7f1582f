"""The smallest budget that holds a list of releases, for the lists of docs/budget.md: by sums, by a ledger's order, by zCDP.

    python -m benchmarks.budget [PYTHON]

With PYTHON, the interpreter of an environment that has Tumult Core (`tmlt.core`), its figures stand beside (budget_tumult.py).

Sums and zCDP hold for lists that are fixed or chosen adaptively within fixed parameters; a ledger's figures also when every
release, its size and the moment of stopping are chosen from earlier answers.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sabun.ledger.shares import DEFAULT_PARTS
from sabun.privacy import Amount, Price, rho_of, zcdp_epsilon
from sabun.privacy.events import Approximate, DiscreteGaussian, Event, SampledGaussian
from sabun.privacy.renyi import best_order, threshold

_LARGEST = 100


@dataclass(frozen=True, kw_only=True)
class List:
    """A list of releases."""

    name: str
    events: tuple[Event, ...]
    sums: Fraction
    delta: Fraction
    peer: Callable[[], float] | None = None

    def cost(self, order: int) -> Amount:
        """What all of it costs at an order."""
        found = Price(events=self.events, relation="add-remove").cost(order=order)
        return math.inf if found is None else found.tau


def _noise(epsilon: str, delta: str, count: int) -> DiscreteGaussian:
    return DiscreteGaussian(sigma_squared=1 / (2 * rho_of(epsilon, delta)), l2_squared=1, count=count)


def _opendp(measurement: Callable[[Any, Any], Any], count: int) -> float:
    """Epsilon at a delta of 1e-6 by OpenDP's own composition and conversion."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    one = measurement(dp, (dp.atom_domain(T=int), dp.absolute_distance(T=int)))
    whole = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([one] * count))
    return float(whole.map(1).epsilon(1e-6))


def _tenths() -> float:
    return _opendp(lambda dp, space: dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=10.0)), 100)


def _gaussians() -> float:
    deviation = float(1 / (2 * rho_of(1, "1e-7"))) ** 0.5
    return _opendp(lambda dp, space: dp.m.make_gaussian(*space, scale=deviation), 10)


def lists() -> Iterator[List]:
    """Those of the documentation."""
    millionth = Fraction(1, 10**6)
    tenths = Approximate(epsilon=Fraction(1, 10), count=100)
    yield List(name="100 x pure 0.1", events=(tenths,), sums=Fraction(10), delta=millionth, peer=_tenths)
    ten = _noise("1", "1e-7", 10)
    yield List(name="10 x discrete Gaussian (1, 1e-7)", events=(ten,), sums=Fraction(10), delta=millionth, peer=_gaussians)
    training = SampledGaussian(noise_multiplier=Fraction("1.029"), sampling_probability=Fraction(1, 100), count=1000)
    mix = (training, _noise("0.5", "1e-7", 5), Approximate(epsilon=Fraction(1, 20), count=20))
    yield List(name="training, 5 Gaussians, 20 x pure 0.05", events=mix, sums=Fraction(11, 2), delta=Fraction(3, 2 * 10**6))


def smallest(wanted: List, *, tail: Fraction) -> tuple[Fraction, int]:
    """The smallest budget, to a hundredth, whose usual order admits the list, and that order."""
    for hundredths in range(100, 100 * _LARGEST):
        epsilon = Fraction(hundredths, 100)
        order = best_order(epsilon, tail=tail * wanted.delta)
        if wanted.cost(order) <= threshold(epsilon, order=order, tail=tail * wanted.delta):
            return epsilon, order
    raise LookupError(f"no budget below {_LARGEST} holds {wanted.name!r}.")


def _tumult(python: str) -> Iterator[str]:
    """Tumult's figures for the lists, as far as it has any."""
    script = Path(__file__).with_name("budget_tumult.py")
    done = subprocess.run([python, script, str(rho_of(1, "1e-7"))], capture_output=True, text=True, check=True)
    yield from (f"{figure:.3f}" for figure in json.loads(done.stdout))


def main(*pythons: str) -> None:
    """Prints the table."""
    tumult = (figure for python in pythons for figure in _tumult(python))
    titles = f"{'sums':>6} {'all for the order':>18} {'default shares':>15} {'zCDP':>7} {'OpenDP':>7} {'Tumult':>7}"
    print(f"{'epsilon at delta':<46} {titles}")
    for wanted in lists():
        alone, usual = (smallest(wanted, tail=part) for part in (Fraction(1), DEFAULT_PARTS[-1]))
        zcdp = zcdp_epsilon(wanted.events, delta=wanted.delta)
        peer = "-" if wanted.peer is None else f"{wanted.peer():.3f}"
        ours = [f"{float(epsilon):.2f} (a = {order})" for epsilon, order in (alone, usual)]
        known = "-" if zcdp is None else f"{float(zcdp):.3f}"
        name = f"{wanted.name}, {float(wanted.delta):g}"
        figures = f"{float(wanted.sums):>6g} {ours[0]:>18} {ours[1]:>15} {known:>7} {peer:>7} {next(tumult, '-'):>7}"
        print(f"{name:<46} {figures}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="*", help="an interpreter that has Tumult Core")
    main(*parser.parse_args().python)
