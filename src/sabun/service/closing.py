"""The end of a round: closed, counted again, signed, its key destroyed; some time later its reports are deleted.

Each step is a transaction of its own and can be asked for again after a crash; nothing happens twice.
"""

from __future__ import annotations

import json
import logging

from sabun.errors import DataError, SabunError
from sabun.release import Release
from sabun.service.log import say
from sabun.service.report_store import Round, Served, Store
from sabun.service.served import require_equal

__all__ = ["close_round", "purge_expired", "purge_round", "scrub", "tidy"]


def close_round(store: Store, served: Served, number: int, *, abandon: bool = False) -> Release | None:
    """Closes a round for good and signs what it learned; the next one opens.

    Args:
        store: The store.
        served: The study.
        number: The round; one that was closed before gives the same release again.
        abandon: For a round that will never have enough reports: nothing is released and its reports are deleted.

    Returns:
        The signed release; None for an abandoned round.

    Raises:
        TooFew: It has fewer reports than the study's `min_batch`; it stays open.
        DataError: It was never opened, there is no key to sign with (it stays open), or its counters are not what a recount
            gives (it stays closed); nothing is released.
    """
    opened = store.round(served, number)
    if opened is None:
        raise DataError("a round must be open to be closed; this one waits for the one before.")
    if not abandon:
        _ = store.keys.signing  # a round that cannot be signed stays open
    if opened.state == "open" or (abandon and opened.state == "closed"):
        _shut(store, served, opened, abandon=abandon)
        opened = store.round(served, number) or opened
    if opened.abandoned or (abandon and opened.release is None):
        purge_round(store, served, opened)
        _open_next(store, served, number)
        return None
    release = None if opened.release is None else Release.from_json(opened.release)
    if opened.state == "closed":
        release = _freeze(store, served, opened)
    store.keys.destroy_round(served.task, number)
    _open_next(store, served, number)
    return release


def _shut(store: Store, served: Served, opened: Round, *, abandon: bool) -> None:
    """No report is added any more: waits for those that are being added, and keeps others out."""
    with store.database.change() as session:
        session.hold(opened.round, alone=True)
        if abandon:  # marked: whoever tidies up after a crash deletes, and does not release
            update = "UPDATE round SET state = 'abandoned' WHERE round = ? AND state IN ('open', 'closed')"
            session.rows(update, opened.round)
            return
        store.require_batch(served, opened.number, store.counters_in(session, served, opened.number))
        session.rows("UPDATE round SET state = 'closed' WHERE round = ? AND state = 'open'", opened.round)


def _freeze(store: Store, served: Served, opened: Round) -> Release:
    number = opened.number
    require_equal(store.recount(served, number), store.counters(served, number))
    release = store.tally(served, number).estimate().release().sign(store.keys.signing)
    with store.database.change() as session:
        session.rows(
            "UPDATE round SET state = 'frozen', frozen_day = ?, release = ? WHERE round = ? AND state = 'closed'",
            *(store.today, release.to_json(), opened.round),
        )
    kept = store.round(served, number)  # another process may have been quicker: there is one release
    return release if kept is None or kept.release is None else Release.from_json(kept.release)


def _open_next(store: Store, served: Served, number: int) -> None:
    kept = store.round(served, number)
    released = kept is not None and kept.release is not None
    if number + 1 >= served.study.terms.rounds or (served.together and not released):
        return  # PrivKVM cannot go on without the means of the round before
    means = None
    if served.together:
        published = store.tally(served, number).published_means()
        means = json.dumps([published[key] for key in served.study.terms.keys])
    store.open_round(served, number + 1, means)


def purge_round(store: Store, served: Served, opened: Round) -> None:
    """Deletes the reports of a round that is over; counters and release stay.

    Marked as purged after the deletion: one that fails is repeated by whoever tidies up or keeps house.
    """
    store.keys.destroy_round(served.task, opened.number)
    with store.database.change() as session:  # apart: dropping a table waits for whoever adds to any round
        session.drop_place(opened.round)
    with store.database.change() as session:
        session.rows("UPDATE round SET state = 'purged' WHERE round = ? AND state <> 'open'", opened.round)
    scrub(store)


def scrub(store: Store) -> None:
    """Empties what the database keeps of deleted rows and of the order of new ones; whoever keeps house does so again."""
    if not store.database.scrub():
        say("store", "the log of the store is in use and is emptied later", level=logging.WARNING)


def purge_expired(store: Store, *, retention_days: int) -> int:
    """Deletes the reports of rounds that were frozen that many days ago or earlier, and finishes deletions that failed.

    Returns:
        Of how many rounds.

    Raises:
        SabunError: Some could not be deleted, for the first of these reasons; the others were.
        OSError: Likewise.
    """
    purged, failed = 0, list[Exception]()
    for served in store.all_served():
        for opened in store.rounds(served):
            old = opened.frozen_day is not None and store.today - opened.frozen_day >= retention_days
            if (opened.state == "frozen" and old) or opened.abandoned or _left_over(store, opened):
                try:
                    purge_round(store, served, opened)
                    _open_next(store, served, opened.number)
                except (SabunError, OSError) as error:  # the time of the others is over all the same
                    failed.append(error)
                else:
                    purged += 1
    if failed:
        raise failed[0]
    return purged


def _left_over(store: Store, opened: Round) -> bool:
    """Whether a round has reports though it is said to have none."""
    if opened.state != "purged":
        return False
    with store.database.look() as session:
        return bool(session.rows("SELECT 1 FROM report WHERE round = ? LIMIT 1", opened.round))


def tidy(store: Store) -> None:
    """Finishes what a crash may have left: rounds that were closed but not frozen, keys of rounds that are over."""
    for served in store.all_served():
        for opened in store.rounds(served):
            if opened.state == "closed":
                try:
                    close_round(store, served, opened.number, abandon=opened.abandoned)
                except DataError as error:  # other studies are served all the same
                    say("error", f"a closed round cannot be frozen: {error}", level=logging.ERROR)
            elif opened.state != "open":
                store.keys.destroy_round(served.task, opened.number)
                if _left_over(store, opened):
                    purge_round(store, served, opened)
                _open_next(store, served, opened.number)
