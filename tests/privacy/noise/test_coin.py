from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy.noise import coin_for, discrete_laplace, os_coin, seeded_coin

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def _noise(coin: Any) -> list[int]:
    return [discrete_laplace(1 << 100, coin=coin) for _ in range(4)]


def test_os_coin_is_private_while_a_seeded_one_is_not() -> None:
    assert os_coin().private is True
    assert seeded_coin(0).private is False


def test_a_seed_repeats_its_draws() -> None:
    assert _noise(seeded_coin(5)) == _noise(seeded_coin(5))
    assert _noise(seeded_coin(5)) != _noise(seeded_coin(6))


def test_os_coin_does_not_repeat() -> None:
    assert not set(_noise(os_coin())) & set(_noise(os_coin()))


def test_a_seeded_stream_is_the_same_on_every_machine() -> None:
    assert seeded_coin(1).bits(64) == int(np.random.Philox(1).random_raw())


def test_words_have_the_asked_length_in_every_cut() -> None:
    for coin in (os_coin(), seeded_coin(3)):
        assert [coin.words(n).size for n in (0, 1, 5)] == [0, 1, 5]
        assert [coin.halfwords(n).size for n in (0, 1, 5)] == [0, 1, 5]
        assert coin.words(3).dtype == np.uint64
        assert all(0 <= coin.bits(n) < 1 << n for n in (0, 1, 63, 64, 65, 300))


@needs_fork
def test_a_forked_child_never_repeats_its_parents_bits() -> None:
    coin = os_coin()
    coin.words(3)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.write(writer, coin.words(8).tobytes())
        os._exit(0)
    mine = coin.words(8)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 64), dtype=np.uint64)
    os.close(reader)
    os.close(writer)
    assert theirs.size == 8
    assert not np.isin(theirs, mine).any()


@needs_fork
def test_pool_workers_never_share_bits() -> None:
    coin = os_coin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            drawn = pool.map(_noise, [coin, coin, coin])
    everything = [value for part in [*drawn, _noise(coin)] for value in part]
    assert len(set(everything)) == len(everything)


def test_pickling_the_os_coin_carries_no_state() -> None:
    coin = os_coin()
    coin.words(1)
    copy = pickle.loads(pickle.dumps(coin))
    assert vars(copy) == {}
    assert copy.private
    assert coin.bits(64) != copy.bits(64)


def test_printing_a_coin_shows_no_state() -> None:
    assert repr(os_coin()) == "os_coin()"
    assert repr(seeded_coin(123)) == "seeded_coin(NOT PRIVATE)"


def test_random_state_chooses_the_coin() -> None:
    assert coin_for(None).private
    assert not coin_for(4).private
    assert coin_for(np.int64(4)).bits(64) == seeded_coin(4).bits(64)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 0.5, True, "0", np.random.default_rng(0)])
def test_any_other_random_state_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"random_state must be None or a whole number >= 0; got .* NOT PRIVATE\."):
        coin_for(bad)


def test_a_bad_seed_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"seed must be a whole number >= 0; got -1\."):
        seeded_coin(-1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint64, int])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 127])
def test_a_count_of_any_integer_type_gives_that_many_bits(kind: Any, count: int) -> None:
    for coin in (seeded_coin(1), os_coin()):
        assert len(coin.words(kind(count))) == count
        assert len(coin.halfwords(kind(count))) == count
        assert type(coin.bits(kind(count))) is int
    assert seeded_coin(1).bits(kind(count)) == seeded_coin(1).bits(count)
    assert max((os_coin().bits(kind(count)) for _ in range(40)), default=0).bit_length() > count - 40
