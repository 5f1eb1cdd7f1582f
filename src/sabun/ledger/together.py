"""One person in several ledgers: what all of them promise together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sabun import checks
from sabun.errors import IncompatibleGuarantees
from sabun.privacy.composition import compose
from sabun.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from sabun.ledger.ledger import Ledger

__all__ = ["together"]


def together(ledgers: Sequence[Ledger]) -> Guarantee:
    """The promise for somebody whose data are in the tables of several ledgers.

    Guarantee: the sums of what the ledgers promise (their budgets, or ceilings where they have some), now and for ever: what
    was charged so far is less, and no promise. It holds however questions to one ledger are chosen from answers of another
    (`ledger.proof.md`), for as many units together as each ledger prices its charges for.

    Raises:
        ParameterError: There are none.
        IncompatibleGuarantees: Units, relations or groups differ.
    """
    checks.require(len(ledgers) > 0, "at least one ledger", ledgers=len(ledgers))
    first = ledgers[0]
    for other in ledgers:
        if (other.unit, other.relation, other.group) != (first.unit, first.relation, first.group):
            raise IncompatibleGuarantees(
                f"ledgers must protect the same unit in the same way; {first.name!r} protects {first.group} {first.unit!r} "
                f"({first.relation}), {other.name!r} {other.group} {other.unit!r} ({other.relation}). Sum them by themselves."
            )
    assumptions = (
        f"each ledger was the only one charged for its table; a {first.unit!r} is the same {first.unit!r} in all of them",
        *((f"for groups of {first.group} {first.unit!r} together",) if first.group > 1 else ()),
    )
    return compose(
        Guarantee(
            epsilon=ledger.promised.epsilon,
            delta=ledger.promised.delta,
            relation=ledger.relation,
            unit=ledger.unit,
            model="local" if ledger.relation == "local" else "central",
            assumptions=assumptions,
            mechanism=f"all releases of {ledger.name!r}",
        )
        for ledger in ledgers
    )
