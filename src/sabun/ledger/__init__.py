"""What was spent: an append-only, durable book of privacy charges.

    Ledger.create / Ledger.open ─► reserve ─► (noise is drawn here) ─► commit(bytes) ─► Receipt

The order is the point: a charge is on disk before any coin is tossed, so a crash can waste budget but never release for free.
"""

from __future__ import annotations

from sabun.ledger.ledger import Ledger
from sabun.ledger.prospects import Forecast, Rest
from sabun.ledger.reservation import Reservation
from sabun.ledger.statement import Budget, Entry, Receipt, Verification
from sabun.ledger.together import together
from sabun.ledger.view import View

__all__ = ["Budget", "Entry", "Forecast", "Ledger", "Receipt", "Reservation", "Rest", "Verification", "View", "together"]
