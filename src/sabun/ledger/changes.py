"""The terms of a ledger at its beginning, what may be changed of them later, and what is left under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.errors import BudgetExceeded, ParameterError
from sabun.ledger.admission import Asked, check_words
from sabun.ledger.amounts import write_amount
from sabun.ledger.chain import Book
from sabun.ledger.row import Row, next_row
from sabun.ledger.shares import Held, Shares
from sabun.ledger.standing import Account, Standing, changed
from sabun.ledger.statement import LARGEST_GROUP, Budget, Terms
from sabun.ledger.wording import refusal
from sabun.privacy.amounts import AmountLike, exact, exact_positive

__all__ = [
    "beginning",
    "ceiling_of",
    "change_row",
    "converted",
    "group_of",
    "held_to",
    "opened",
    "raised",
    "refused",
    "remaining",
    "whole",
]

_MOST_ACCOUNTS = 100
_LONGEST_NAME = 100


def ceiling_of(ceiling: AmountLike | None, budget: Budget) -> Fraction | None:
    """The ceiling of a new ledger."""
    if ceiling is None:
        return None
    top = exact_positive(ceiling, name="ceiling")
    checks.require(top >= budget.epsilon, "at least epsilon", ceiling=ceiling)
    return top


def group_of(group: object) -> int:
    """The size of group that a new ledger protects."""
    good = isinstance(group, int) and not isinstance(group, bool) and 1 <= group <= LARGEST_GROUP
    checks.require(good, f"a whole number from 1 to {LARGEST_GROUP}", group=group)
    assert isinstance(group, int)
    return group


def beginning(
    terms: Terms,
    *,
    accounts: Mapping[str, AmountLike] | None,
    accounting: str,
    order: int | None,
    shares: Sequence[AmountLike] | None,
) -> Standing | None:
    """Where a new ledger stands; None for one whose sums say it all, which earlier versions can read.

    Raises:
        ParameterError: A term breaks its rule.
    """
    checks.one_of(("shares", "sums"), accounting=accounting)
    by_shares = accounting == "shares" and terms.budget.delta > 0
    if not by_shares and (order is not None or shares is not None):
        raise ParameterError("order and shares must be left out of a ledger that counts by sums; got one of them.")
    checks.require(accounts is None or isinstance(accounts, Mapping), "a mapping from names to parts", accounts=accounts)
    named = {_account_name(name): Account(part=_part(part)) for name, part in (accounts or {}).items()}
    checks.require(len(named) <= _MOST_ACCOUNTS, f"at most {_MOST_ACCOUNTS} accounts", accounts=len(named))
    if not by_shares and not named and terms.ceiling is None and terms.group == 1:
        return None
    split = Shares.of(*terms.budget, order=order, parts=shares) if by_shares else None
    rule = "open" if by_shares else "sums"
    return Standing(rule=rule, limit=terms.budget.epsilon, delta=terms.budget.delta, shares=split, accounts=named)


def raised(terms: Terms, standing: Standing, epsilon: AmountLike) -> dict[str, Any]:
    """The change that raises a budget."""
    if terms.ceiling is None:
        raise ParameterError(
            f"epsilon must stay as it is: {terms.name!r} was created without a ceiling. Make a new ledger for what comes after."
        )
    limit = exact_positive(epsilon, name="epsilon")
    rule = f"above {write_amount(standing.limit)} and at most the ceiling {write_amount(terms.ceiling)}"
    checks.require(standing.limit < limit <= terms.ceiling, rule, epsilon=epsilon)
    return {"change": "raise", "epsilon": write_amount(limit)}


def opened(standing: Standing, name: str, part: AmountLike) -> dict[str, Any]:
    """The change that opens an account."""
    free = _account_name(name) not in standing.accounts and len(standing.accounts) < _MOST_ACCOUNTS
    checks.require(free, f"a name that is free, of at most {_MOST_ACCOUNTS} accounts", name=name)
    return {"change": "account", "account": name, "part": write_amount(_part(part))}


def converted(standing: Standing, *, order: int | None, shares: Sequence[AmountLike] | None) -> dict[str, Any]:
    """The change that takes up counting by shares of what is left of delta."""
    if standing.rule != "sums" or standing.used.loose >= standing.delta:
        raise ParameterError(
            "a ledger must count by sums and have some delta left to be converted; this one does not. Nothing was changed."
        )
    split = Shares.of(standing.limit, standing.delta, order=order, parts=shares, used=standing.used.loose)
    over = [name for name, own in standing.accounts.items() if own.used.loose > own.part * split.stated]
    if over:
        raise ParameterError(
            f"every account must have used at most its part of the delta for stated releases; got {over[0]!r}, which has not. "
            "Give that share (the second of three) more, or go on by sums. Nothing was changed."
        )
    return {"change": "convert", "shares": split.to_dict()}


def change_row(book: Book, body: Mapping[str, Any]) -> Row:
    """The row of a change of terms."""
    nothing = Budget(Fraction(0), Fraction(0))
    standing = changed(book.standing, body, ceiling=book.terms.ceiling)
    return next_row(book.head, kind="change", entry=0, body=body, amount=nothing, standing=standing)


def held_to(standing: Standing, account: str) -> tuple[Held, ...]:
    """What a charge is held against, with what was used of it: the whole, and the account it goes to.

    An undecided ledger is as one by shares.
    """
    rule = "shares" if standing.rule == "open" else standing.rule
    own = [standing.accounts[account]] if account else []
    return (standing.limits(rule), standing.used), *((standing.limits(rule, part=one.part), one.used) for one in own)


def remaining(standing: Standing, account: str) -> Budget:
    """The largest epsilon and delta of one more release of which nothing else is known."""
    if standing.rule == "open" and not account:
        return Budget(standing.limit, standing.delta)
    return Budget(*map(min, zip(*(limits.left(used) for limits, used in held_to(standing, account)), strict=True)))


def whole(standing: Standing, account: str) -> Budget:
    """What `remaining` begins with under the rule that is in force."""
    part = standing.accounts[account].part if account else Fraction(1)
    by_sums = standing.rule == "sums" or (standing.rule == "open" and not account)
    split = None if by_sums else standing.shares
    return Budget(part * standing.limit, part * (standing.delta if split is None else split.stated))


def refused(terms: Terms, standing: Standing, wanted: Asked, account: str) -> BudgetExceeded:
    """The error for a charge that does not fit."""
    return refusal(terms, remaining(standing, account), wanted, whole=whole(standing, account), account=account)


def _account_name(name: object) -> str:
    good = isinstance(name, str) and len(name.strip()) > 0 and len(name) <= _LONGEST_NAME and name.isprintable()
    checks.require(good, f"a printable name of at most {_LONGEST_NAME} characters", account=name)
    assert isinstance(name, str)
    check_words(account=name)
    return name


def _part(part: AmountLike) -> Fraction:
    read = exact(part, name="part")
    checks.require(isinstance(read, Fraction) and 0 < read <= 1, "above 0 and at most 1", part=part)
    return Fraction(read)
