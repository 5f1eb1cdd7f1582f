"""Carrying signed release files with Flower (extra `flower`): an app that reads an outbox, never data.

Why noise and ledger are not in the app: Flower ships the app's code from whoever submits the run to every node, where it is
executed. Another app could read whatever the node can read, so a ledger inside an app could be left out by the next one.
What makes a release private therefore runs before, in the installed package, under the organisation's control; the app
only moves files that were signed already. Run the SuperNode in a container or account that can read the outbox and
nothing else, with TLS and node authentication.
"""

from sabun.regression.carrier.delivery import received, write_app

__all__ = ["received", "write_app"]
