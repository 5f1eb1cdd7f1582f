"""The synthetic data of the papers: simulated people, not noise that protects anybody."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun import checks

__all__ = ["DensityPaper", "KeyValuePopulation", "density_paper", "keyvalue_population"]


class KeyValuePopulation(NamedTuple):
    """What is true of a population of key-value holders: one entry for each of 50 keys.

    Attributes:
        frequencies: Share of people who hold the key.
        means: Mean value in [-1, 1] among those who hold it.
    """

    frequencies: NDArray[np.float64]
    means: NDArray[np.float64]


class DensityPaper(NamedTuple):
    """Two samples of real numbers: a small public one and a large private one.

    Attributes:
        public: 50 draws from N(1, 1).
        private: 2,000 draws from N(2, 1/4), a variance of one quarter.
    """

    public: NDArray[np.float64]
    private: NDArray[np.float64]


def keyvalue_population(shape: str) -> KeyValuePopulation:
    """The frequencies and means of the key-value paper's synthetic sets (d = 50 keys).

    Notation:
        ``gaussian``: f = exp(-x²/200) for x = -25 … 24, m = 2f - 1.
        ``power``: f = (1 + x/100)⁻¹¹ for x = 0 … 49, m = 2f - 1. The formula printed in the paper, (1 + x/10)^(-11/10), does
        not give its Table 1; this one, the generalised Pareto density with shape 0.1 and scale 10, does.
        ``linear``: f = k/50 for k = 1 … 50, m evenly spaced from -1 to 1.

    Args:
        shape: ``gaussian``, ``power`` or ``linear``.

    Example:
        >>> frequencies, means = keyvalue_population("linear")
        >>> round(float(frequencies.mean()), 6), round(float(means.var()), 6)
        (0.51, 0.346939)
    """
    checks.one_of(("gaussian", "power", "linear"), shape=shape)
    if shape == "linear":
        return KeyValuePopulation(np.arange(1, 51) / 50, np.linspace(-1, 1, 50))
    places = np.arange(50, dtype=np.float64)
    frequencies = np.exp(-((places - 25) ** 2) / 200) if shape == "gaussian" else (1 + 0.01 * places) ** -11.0
    return KeyValuePopulation(frequencies, 2 * frequencies - 1)


def density_paper(random_state: int) -> DensityPaper:
    """Draws the two samples of the density-ratio paper's experiment.

    Args:
        random_state: Seed, a whole number; equal seeds give equal samples.

    Example:
        >>> public, private = density_paper(0)
        >>> public.shape, private.shape
        ((50,), (2000,))
    """
    checks.whole(minimum=0, random_state=random_state)
    generator = np.random.default_rng(random_state)
    return DensityPaper(public=generator.normal(1.0, 1.0, size=50), private=generator.normal(2.0, 0.5, size=2000))
