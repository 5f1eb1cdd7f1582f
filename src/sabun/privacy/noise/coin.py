"""Where randomness comes from: the operating system, or a seed that makes the result NOT PRIVATE."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks

__all__ = ["Coin", "coin_for", "os_coin", "seeded_coin"]


class Coin(ABC):
    """A source of independent uniform bits.

    Attributes:
        private: Whether the bits are unpredictable, so that a result may be called private.
    """

    private: ClassVar[bool]

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """That many fresh 64-bit words."""

    @final
    def halfwords(self, count: int) -> NDArray[np.uint16]:
        """That many fresh 16-bit words, cut from 64-bit ones; what is left of the last word is thrown away."""
        count = int(count)  # a small numpy integer would wrap around
        return self.words(-(-count // 4)).astype("<u8", copy=False).view("<u2")[:count]

    @final
    def bits(self, count: int) -> int:
        """A whole number of that many fresh bits."""
        count = int(count)
        drawn = self.words(-(-count // 64)).astype("<u8", copy=False).tobytes()
        return int.from_bytes(drawn, "little") & ((1 << count) - 1)


@final
class _OsCoin(Coin):
    """Asks the operating system each time; holds no bit back, so a forked or unpickled copy shares nothing."""

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * int(count)), dtype="<u8")  # proof: no-buffer

    def __repr__(self) -> str:
        return "os_coin()"


@final
class _SeededCoin(Coin):
    """Philox stream of a seed."""

    private = False  # proof: never-private

    def __init__(self, seed: int) -> None:
        self._stream = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self._stream.random_raw(int(count)), dtype=np.uint64)

    def __repr__(self) -> str:
        return "seeded_coin(NOT PRIVATE)"


def os_coin() -> Coin:
    """The coin of private results: each word comes fresh from the operating system's generator.

    Example:
        >>> os_coin().private
        True
    """
    return _OsCoin()


def seeded_coin(seed: int) -> Coin:
    """The coin of simulations: the same seed gives the same draws. NOT PRIVATE.

    Args:
        seed: A whole number >= 0.

    Raises:
        ParameterError: If the seed is anything else.

    Example:
        >>> seeded_coin(1).bits(64) == seeded_coin(1).bits(64)
        True
    """
    checks.whole(minimum=0, seed=seed)
    return _SeededCoin(int(seed))


def coin_for(random_state: int | None) -> Coin:
    """The coin a `random_state` asks for: None is the operating system, a whole number is a seed (NOT PRIVATE).

    Raises:
        ParameterError: If `random_state` is neither.
    """
    if random_state is None:
        return os_coin()
    checks.require(
        isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0,
        "None or a whole number >= 0",
        "None draws from the operating system; a number gives a simulation that is NOT PRIVATE.",
        random_state=random_state,
    )
    return seeded_coin(int(random_state))
