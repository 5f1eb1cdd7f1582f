"""Tokens: kept as hashes, ended by time or by hand, for one study and some things only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.service.operators import add_operator, operators, revoke_operator, who
from sabun.service.report_store import Store
from service.devices import KV3


def test_a_token_holds_for_its_scopes_and_its_study(store: Store) -> None:
    mine, other = store.register(KV3), store.register(Study(keys=["a", "b"], epsilon=1))
    reader = who(store, add_operator(store, "alice", scopes=["read"], served=mine))
    admin = who(store, add_operator(store, "bob", scopes=["admin"]))
    assert reader is not None
    assert admin is not None
    assert [reader.may(scope, served) for scope in ("read", "close") for served in (mine, other)] == [True, False, False, False]
    assert not reader.may("read", None)
    assert all(admin.may(scope, served) for scope in ("read", "close", "admin") for served in (mine, other, None))


def test_a_token_ends_by_time_by_hand_and_by_a_new_one(opened: Callable[..., Store]) -> None:
    now = [1_800_000_000.0]
    store = opened(clock=lambda: now[0])
    token = add_operator(store, "alice", days=10)
    assert who(store, token) is not None
    newer = add_operator(store, "alice", days=10)
    assert who(store, token) is None
    assert who(store, newer) is not None
    now[0] += 10 * 86_400
    assert who(store, newer) is None
    third = add_operator(store, "alice")
    revoke_operator(store, "alice")
    assert who(store, third) is None
    assert operators(store) == []
    with pytest.raises(ParameterError, match="name"):
        revoke_operator(store, "alice")


def test_a_name_belongs_to_a_study_or_to_the_server(store: Store) -> None:
    mine, other = store.register(KV3), store.register(Study(keys=["a", "b"], epsilon=1))
    tokens = [add_operator(store, "alice", served=served) for served in (mine, other, None)]
    assert [found.study for token in tokens if (found := who(store, token))] == [mine.number, other.number, None]
    revoke_operator(store, "alice", served=mine)
    assert [who(store, token) is None for token in tokens] == [True, False, False]
    with pytest.raises(ParameterError, match="name"):
        revoke_operator(store, "alice", served=mine)


@pytest.mark.parametrize(
    "wrong", [{"scopes": ["write"]}, {"scopes": []}, {"days": 91}, {"days": 0}, {"name": ""}, {"name": "a\nb"}]
)
def test_a_bad_operator_is_refused(store: Store, wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        add_operator(store, **({"name": "alice"} | wrong))  # type: ignore[arg-type]
    assert operators(store) == []


def test_the_store_keeps_no_token(store: Store) -> None:
    token = add_operator(store, "alice")
    with store.database.look() as session:
        kept = repr(session.rows("SELECT * FROM operator"))
    assert token not in kept
    assert token.removeprefix("sabun-") not in kept
    assert bytes.fromhex(token.removeprefix("sabun-")).hex() not in kept


@pytest.mark.parametrize("guess", ["", "sabun-", "\ud800", "x" * 100_000])
def test_a_guess_is_nobodys(store: Store, guess: str) -> None:
    add_operator(store, "alice")
    assert who(store, guess) is None
