"""A secret stream of random words that can be asked again: AES-256 in counter mode under a key drawn for one training run.

Each purpose and each step has a stream of its own, so that the words of one step never depend on how many another step used.
Whoever has the key can subtract the noise: it is never released, and it is erased when a run ends (see `checkpoint`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import InternalError
from sabun.privacy.noise import Coin

__all__ = ["BATCH", "COUNT", "NOISE", "REFINE", "Stream"]

BATCH, NOISE, REFINE, COUNT = 1, 2, 3, 4
"""Purposes: who is in a batch, the noise of a step, further bits of that noise, the noise on a count."""

_KEY_BYTES = 32


@final
class Stream:
    """Uniform words as a function of (key, purpose, step).

    Args:
        key: 32 secret bytes.

    Example:
        >>> stream = Stream(bytes(32))
        >>> bool((stream.words(NOISE, 5, 4) == stream.words(NOISE, 5, 9)[:4]).all())
        True
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise InternalError(f"a stream's key has {_KEY_BYTES} bytes.")
        self._key = key
        self._drawn: dict[int, int] = {}

    @classmethod
    def fresh(cls, coin: Coin) -> Stream:
        """A stream under a new key of 256 bits of the coin."""
        return cls(coin.bits(8 * _KEY_BYTES).to_bytes(_KEY_BYTES, "little"))

    @property
    def key(self) -> bytes:
        """The secret, for the checkpoint alone."""
        return self._key

    def bytes(self, purpose: int, step: int, count: int) -> bytes:
        """The first bytes of one purpose's stream at one step."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        start = purpose.to_bytes(1, "big") + step.to_bytes(7, "big") + bytes(8)
        return Cipher(algorithms.AES(self._key), modes.CTR(start)).encryptor().update(bytes(count))

    def words(self, purpose: int, step: int, count: int) -> NDArray[np.uint64]:
        """The first 64-bit words of that stream."""
        return np.frombuffer(self.bytes(purpose, step, 8 * count), dtype="<u8")

    def coin(self, purpose: int, step: int) -> StreamCoin:
        """A coin that reads that stream from its beginning."""
        return StreamCoin(self, purpose, step)

    def once(self, purpose: int, draw: Callable[[Coin], int]) -> int:
        """A number that a run draws once: with the coin of that purpose's first step when it is first asked for."""
        if purpose not in self._drawn:
            self._drawn[purpose] = draw(self.coin(purpose, 0))
        return self._drawn[purpose]

    def __repr__(self) -> str:
        return "Stream(key hidden)"


@final
class StreamCoin(Coin):
    """A coin for the samplers of `sabun.privacy.noise`; as private as the key of its stream."""

    private = True

    def __init__(self, stream: Stream, purpose: int, step: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        start = purpose.to_bytes(1, "big") + step.to_bytes(7, "big") + bytes(8)
        self._source = Cipher(algorithms.AES(stream.key), modes.CTR(start)).encryptor()

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next words of the stream."""
        return np.frombuffer(self._source.update(bytes(8 * count)), dtype="<u8")
