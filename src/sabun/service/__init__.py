"""The collector: a service that devices of a key-value study report to.

    launcher ─► application (HTTP) ─► arrivals (bytes → arrays) ─► writer (one transaction for all that waits) ─► store
                                                                                                          │
                                     operators, enrolment, closing (freeze, sign, purge), picture ◄──────┘

The store keeps the same laws on SQLite and on PostgreSQL: an id counts once, what is answered is on disk, counters equal a
recount at any time. Nothing here counts or estimates: that is `sabun.keyvalue`.
"""

from __future__ import annotations
