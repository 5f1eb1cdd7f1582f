"""Long runs that survive a crash: the same key gives the same noise, so what is run again releases nothing new.

The charge is on disk before the first step. `run.secret` holds the run's key (file mode 0600): whoever reads it can subtract
the noise. It is written once, into that file only, overwritten when the run ends; `run.state` holds the rest, under a tag that
only the key can make. A run goes on only with the same bytes of data, settings and software, on a machine that computes its
last step again bit for bit; anything else is refused. Proved in checkpoint.proof.md.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

import numpy as np

from sabun.errors import DataError, LedgerError, ParameterError
from sabun.foreign import parse_json
from sabun.learning.accounting import price_in
from sabun.learning.run_files import NO_LINK, gone_if_refused, must_be_plain, only_one, state_bytes
from sabun.learning.stream import Stream
from sabun.learning.training import Progress, State, one_thread, unheard
from sabun.ledger import Ledger
from sabun.ledger.reservation import Reservation
from sabun.ledger.statement import Receipt
from sabun.privacy import Guarantee
from sabun.privacy.noise import os_coin
from sabun.release import Draft, Release
from sabun.release.files import read_whole, write_whole
from sabun.release.publish import kept

__all__ = ["Resumable", "train_resumably"]

_SECRET, _STATE, _LOCK = "run.secret", "run.state", "run.lock"
_HALVES = ".run.*.part"
_KEY_BYTES = 32
_SECONDS = 5.0
_WRITING_SHARE = 20
_OWNER_ONLY = 0o600
_DOMAIN = b"sabun checkpoint state\n"
"""Stands before what is tagged; what is fingerprinted under the same key begins with a length, never with these letters."""
_SETTINGS = ("OMP_", "OPENBLAS_", "MKL_", "NPY_", "NUMBA_")
_REFUSED = (
    "the run in this checkpoint folder must go on with the same data, settings, software and machine; something differs. "
    "Running it on anything else would reveal differences without noise. Start a new run in another folder: it is charged anew."
)
_CHANGED = (
    "run.state must be as this run wrote it; it was changed since, and who changed it may have read the key beside it. "
    "If it was damaged by accident, remove its first line: the run then starts again from its first step, and is not charged "
    "again."
)


class Resumable(Protocol):
    """A training run whose every step is a function of its inputs, a stream, the state before."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise about what `value` returns."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The public parameters of the release, `method` and `account` among them."""

    def fingerprint(self) -> Iterable[bytes]:
        """All that the steps depend on, in order: every setting that is not in `facts`, every private input."""

    def first(self) -> State:
        """Before the first step; public."""

    def states(self, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step; nothing after the last one."""

    def value(self, last: State, stream: Stream) -> Mapping[str, Any]:
        """What the release holds; a function of the last state, public facts, and what was drawn once for the whole run."""


@final
@dataclass(frozen=True, kw_only=True)
class _Saved:
    """What the two files hold; the key is in the one, the rest in the other."""

    key: bytes
    fingerprint: str
    receipt: Receipt | None
    before: State
    now: State

    def to_bytes(self) -> bytes:
        """A tag, a line break, all but the key as JSON in one line."""
        record = {
            "fingerprint": self.fingerprint,
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            "before": self.before.to_dict(),
            "now": self.now.to_dict(),
        }
        body = json.dumps(record).encode()
        return _tag(self.key, body) + b"\n" + body

    @classmethod
    def read(cls, place: Path, first: State) -> _Saved:
        """Reads the key and what `to_bytes` wrote: states of the same shape as the first one.

        A file without a tag is one of an older version. Its states cannot be told from forged ones, so they are not used: the
        run starts again from its first step, under its key and its charge. Its fingerprint is keyed, and vouches for itself.
        """
        key = read_whole(place / _SECRET, max_bytes=_KEY_BYTES + 1)
        tag, _, body = state_bytes(place / _STATE, like=first).partition(b"\n")
        tagged = bool(body)
        if tagged and not hmac.compare_digest(tag, _tag(key, body)):  # proof: authentic
            raise DataError(_CHANGED)
        try:
            if len(key) != _KEY_BYTES:
                raise ValueError
            record = parse_json(body if tagged else tag, what=_STATE, error=DataError)
            receipt = record["receipt"]
            before, now = (State.from_dict(record[name], like=first) for name in ("before", "now"))
            return cls(
                key=key,
                fingerprint=bytes.fromhex(record["fingerprint"]).hex(),
                receipt=None if receipt is None else Receipt.from_dict(receipt),
                before=before if tagged else first,  # proof: from-the-start
                now=now if tagged else first,
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(
                "the checkpoint files must be whole; they cannot be read. Start a new run in another folder."
            ) from None


def _tag(key: bytes, body: bytes) -> bytes:
    """What only a holder of the key can write before that body."""
    return hmac.new(key, _DOMAIN + body, hashlib.sha256).hexdigest().encode()


# Whatever the caller asked numpy to do about rounding: such an error would speak of private cells.
@np.errstate(all="ignore")  # proof: quiet
def train_resumably(
    folder: str | os.PathLike[str],
    *,
    kind: str,
    run: Resumable,
    ledger: Ledger | None,
    progress: Progress,
    schema_hash: str | None,
    subject: Sequence[str] = (),
) -> Release:
    """Trains from the beginning, or from where an interrupted run in that folder stopped; charges once.

    Raises:
        DataError: The folder is in use, or its run cannot go on with what was given.
        LedgerError: The run's charge is not in this ledger, or its result was already handed over.
        BudgetExceeded: A new run does not fit; nothing was trained.
    """
    place = Path(folder)
    made = [each for each in (place, *place.parents) if not each.exists()]
    draft = Draft(kind=kind, promise=run.guarantee, facts=run.facts, subject=subject, schema_hash=schema_hash)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{place} must be a folder that can be made; the system says: {error.strerror}.") from None
    must_be_plain((*(place / name for name in (_SECRET, _STATE, _LOCK)), *place.glob(_HALVES)))  # proof: plain-files
    with only_one(place / _LOCK):
        _clean(place)
        reservation = None
        if (place / _SECRET).exists():
            saved = _continued(place, run, ledger, draft.purpose)
        else:
            with gone_if_refused(made, _LOCK):
                reservation, saved = _begun(place, run, ledger, draft.purpose)
        stream = Stream(saved.key)
        last = _run(place / _STATE, run, saved, stream, progress)
        release = draft.paid(saved.receipt).filled(run.value(last, stream))
        if reservation is not None:
            reservation.commit(kept(release.to_json()))
        elif ledger is not None and saved.receipt is not None:
            _hand_over(place, ledger, saved.receipt, draft.promise, kept(release.to_json()))
        _wipe(place)  # proof: key-erased
    return release


def _begun(place: Path, run: Resumable, ledger: Ledger | None, purpose: str) -> tuple[Reservation | None, _Saved]:
    """Charges, then writes the key, then the first checkpoint; what may fail while the run is described fails before that."""
    stream, first = Stream.fresh(os_coin()), run.first()  # proof: fresh-key
    fingerprint, reservation = _fingerprint(stream.key, run, purpose), None
    if ledger is not None:
        price = price_in(run.facts["account"])
        reservation = ledger.reserve(run.guarantee, purpose=purpose, price=price)  # proof: charge-first
        reservation.touch()
    saved = _Saved(
        key=stream.key,
        fingerprint=fingerprint,
        receipt=None if reservation is None else reservation.receipt,
        before=first,
        now=first,
    )
    _write_key(place / _SECRET, stream.key)  # proof: key-in-one-place
    write_whole(place / _STATE, saved.to_bytes(), mode=_OWNER_ONLY)
    return reservation, saved


def _continued(place: Path, run: Resumable, ledger: Ledger | None, purpose: str) -> _Saved:
    """The saved run, once everything about it was found the same."""
    saved = _Saved.read(place, run.first())
    _must_be_charged(place, saved.receipt, ledger)
    if not hmac.compare_digest(saved.fingerprint, _fingerprint(saved.key, run, purpose)):  # proof: same-everything
        raise DataError(_REFUSED)
    if saved.now.step > saved.before.step:
        with one_thread():
            replayed = next(run.states(Stream(saved.key), progress=unheard, start=saved.before), None)
        if replayed is None or replayed.bits != saved.now.bits:  # proof: bit-for-bit
            raise DataError(_REFUSED)
    return saved


def _must_be_charged(place: Path, receipt: Receipt | None, ledger: Ledger | None) -> None:
    """Refuses a run whose charge is not open in that ledger; a run that was handed over loses its key here at the latest."""
    if (receipt is None) != (ledger is None):
        raise DataError("ledger must be given exactly when the interrupted run had one. Pass the one it was charged to.")
    if receipt is None or ledger is None:
        return
    state, attempts = _state_in(ledger, receipt), _attempts(ledger, receipt)
    if state == "reserved" and "committed" not in attempts:  # proof: one-result
        return
    if "committed" in (state, *attempts):
        raise _handed_over(place, ledger, "Its key was erased now. The ledger keeps the release; a new run is charged anew.")
    raise LedgerError(f"ledger {ledger.name!r} must hold the open charge of this run; it does not. It is another ledger.")


def _state_in(ledger: Ledger, receipt: Receipt) -> str | None:
    """How that very charge stands in the ledger; None where it is not there."""
    try:
        entry = ledger.entry(receipt.entry)
    except ParameterError:
        return None
    return entry.state if entry.entry_hash == receipt.entry_hash else None


def _attempts(ledger: Ledger, receipt: Receipt) -> list[str]:
    """The states of the entries under which the result of that charge was to be kept; a crash may leave some open."""
    states: list[str] = []
    number = 1
    # Whoever books one takes a number at most one above how many there are (two copies at once may take the same): when the
    # numbers up to that were looked up, none is left.
    while number <= len(states) + 1:
        states += [entry.state for entry in ledger.with_key(_marker(receipt, number))]  # proof: every-attempt
        number += 1
    return states


def _marker(receipt: Receipt, attempt: int) -> str:
    return f"checkpoint handed over {receipt.entry_hash}, attempt {attempt}"


def _handed_over(place: Path, ledger: Ledger, more: str) -> LedgerError:
    """Erases a run whose result is out; says so."""
    _wipe(place)  # proof: cleaned-after-a-crash
    return LedgerError(
        f"ledger {ledger.name!r} must hold the open charge of this run; the run's result was already handed over. {more}"
    )


def _hand_over(place: Path, ledger: Ledger, receipt: Receipt, promise: Guarantee, payload: bytes) -> None:
    """Keeps a resumed run's result under a key of its own, at no cost: only the process that reserved can close the charge."""
    free = Guarantee(epsilon=0, relation=promise.relation, unit=promise.unit, mechanism="none: the charge was booked before")
    purpose = f"result of entry {receipt.entry}, after an interruption"
    attempts, faster = _attempts(ledger, receipt), "Another copy of the checkpoint folder was faster."
    if "committed" in attempts:
        raise _handed_over(place, ledger, faster)
    try:
        entry = ledger.reserve(free, purpose=purpose, key=_marker(receipt, len(attempts) + 1))
    except ParameterError:  # another copy took that key just now
        raise _handed_over(place, ledger, faster) from None
    entry.commit(payload)  # proof: marked


def _run(file: Path, run: Resumable, saved: _Saved, stream: Stream, progress: Progress) -> State:
    """All remaining steps, saved every few seconds and when interrupted."""
    before, now = saved.before, saved.now
    due = time.monotonic() + _SECONDS
    try:
        with one_thread():
            for state in run.states(stream, progress=progress, start=saved.now):
                before, now = now, state
                if time.monotonic() > due:
                    began = time.monotonic()
                    _write(file, saved, before, now)
                    took = time.monotonic() - began
                    due = time.monotonic() + max(_SECONDS, _WRITING_SHARE * took)  # large models: not all the time
    except BaseException:
        _write(file, saved, before, now)
        raise
    _write(file, saved, before, now)
    return now


def _write(file: Path, saved: _Saved, before: State, now: State) -> None:
    content = dataclasses.replace(saved, before=before, now=now).to_bytes()
    write_whole(file, content, overwrite=True, mode=_OWNER_ONLY)


def _fingerprint(key: bytes, run: Resumable, purpose: str) -> str:
    """A keyed digest of everything the result depends on; without the key it says nothing about the data."""
    from threadpoolctl import threadpool_info

    digest = hmac.new(key, digestmod=hashlib.sha256)
    surroundings = [sys.version, platform.platform(), platform.machine(), np.__version__, str(os.cpu_count())]
    surroundings += [repr(np.show_config(mode="dicts"))]
    settings = sorted(name for name in os.environ if name.startswith(_SETTINGS))
    surroundings += [f"{name}={os.environ[name]}" for name in settings]
    # Which loops a matrix library runs depends on the processor it finds, or is told to find.
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    ours = [library for library in libraries if "numpy" in library["filepath"]] or libraries
    surroundings += sorted(
        {str([library.get(fact) for fact in ("internal_api", "version", "architecture")]) for library in ours}
    )
    for part in itertools.chain((text.encode() for text in (purpose, repr(run.guarantee), *surroundings)), run.fingerprint()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _write_key(file: Path, key: bytes) -> None:
    """Writes the key straight into its own file, so that no second copy of it can be left behind by a crash."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with open(handle, "wb") as opened:
            opened.write(key)
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise DataError(f"{file} must be a place that can be written; the system says: {error.strerror}.") from None


def _clean(place: Path) -> None:
    """Removes what a crash left behind: half-written files, a key that was never used, the rest of a finished run.

    Raises:
        DataError: There was the rest of a run whose key is gone.
    """
    for half in sorted(place.glob(_HALVES)):
        if half.stat().st_nlink > 1:  # a second name of the finished file: overwriting it would spoil the run
            half.unlink()
        else:
            _erase(half)
    secret, started = place / _SECRET, (place / _STATE).exists()
    keyed = secret.exists() and any(read_whole(secret, max_bytes=_KEY_BYTES + 1))
    if keyed and started:
        return
    _wipe(place)  # proof: no-half-run
    if started:
        raise DataError(
            "the run in this checkpoint folder must still have its key; it has none, since it was finished or the key was "
            "removed. What was left was erased now. Call again to start a new run: it is charged anew."
        )


def _wipe(place: Path) -> None:
    """Erases the key first, then the rest."""
    for file in (place / _SECRET, *sorted(place.glob(_HALVES)), place / _STATE):
        _erase(file)


def _erase(file: Path) -> None:
    """Overwrites a file with zeros in place before it goes away; a journal or a backup may still hold it."""
    with contextlib.suppress(OSError), open(os.open(file, os.O_RDWR | NO_LINK), "r+b") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.write(bytes(size))  # zeros tell the next call that the key is gone
        opened.flush()
        os.fsync(opened.fileno())
    file.unlink(missing_ok=True)
