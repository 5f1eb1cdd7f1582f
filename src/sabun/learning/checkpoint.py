"""Long runs that survive a crash: the same key gives the same noise, so what is run again releases nothing new.

The charge is on disk before the first step. `run.secret` holds the run's key (file mode 0600): whoever reads it can subtract
the noise. It is written once, into that file only, overwritten when the run ends; `run.state` holds the rest. A run goes on
only with the same bytes of data, settings and software, on a machine that computes its last step again bit for bit; anything
else is refused. Proved in checkpoint.proof.md.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from sabun import checks
from sabun.errors import DataError, LedgerError, ParameterError
from sabun.learning.dpsgd import DpSgd, State
from sabun.learning.network import Floats
from sabun.learning.stream import Stream
from sabun.learning.training import Data, Method, Progress, unheard
from sabun.ledger import Ledger
from sabun.ledger.reservation import Reservation
from sabun.ledger.statement import Receipt
from sabun.privacy import Guarantee
from sabun.privacy.noise import os_coin
from sabun.release import Provenance, Release
from sabun.release.files import read_whole, write_whole
from sabun.release.publish import purpose_of

__all__ = ["train_resumably"]

_SECRET, _STATE, _LOCK = "run.secret", "run.state", "run.lock"
_HALVES = ".run.*.part"
_KEY_BYTES = 32
_SECONDS = 5.0
_OWNER_ONLY = 0o600
_REFUSED = (
    "the run in this checkpoint folder must go on with the same data, settings, software and machine; something differs. "
    "Running it on anything else would reveal differences without noise. Start a new run in another folder: it is charged anew."
)


@final
@dataclass(frozen=True, kw_only=True)
class _Saved:
    """What the two files hold; the key is in the one, the rest in the other."""

    key: bytes
    fingerprint: str
    receipt: Receipt | None
    before: State
    now: State

    def to_json(self) -> bytes:
        """All but the key as JSON."""
        record = {
            "fingerprint": self.fingerprint,
            "receipt": None if self.receipt is None else self.receipt.to_dict(),
            "before": _state_record(self.before),
            "now": _state_record(self.now),
        }
        return json.dumps(record).encode()

    @classmethod
    def read(cls, place: Path, n_weights: int) -> _Saved:
        """Reads the key and what `to_json` wrote."""
        key = read_whole(place / _SECRET, max_bytes=_KEY_BYTES + 1)
        content = read_whole(place / _STATE, max_bytes=1 << 30)
        try:
            if len(key) != _KEY_BYTES:
                raise ValueError
            record = json.loads(content)
            receipt = record["receipt"]
            return cls(
                key=key,
                fingerprint=str(record["fingerprint"]),
                receipt=None if receipt is None else Receipt.from_dict(receipt),
                before=_state(record["before"], n_weights),
                now=_state(record["now"], n_weights),
            )
        except (ValueError, KeyError, TypeError):
            raise DataError(
                "the checkpoint files must be whole; they cannot be read. Start a new run in another folder."
            ) from None


def train_resumably(
    folder: str | os.PathLike[str],
    *,
    kind: str,
    method: Method,
    data: Data,
    ledger: Ledger | None,
    progress: Progress,
    schema_hash: str | None,
) -> Release:
    """Trains from the beginning, or from where an interrupted run in that folder stopped; charges once.

    Raises:
        DataError: The folder is in use, or its run cannot go on with what was given.
        LedgerError: The run's charge is not in this ledger, or its result was already handed over.
        BudgetExceeded: A new run does not fit; nothing was trained.
    """
    checks.require(isinstance(method, DpSgd), "'dp-sgd' when there is a checkpoint", method=type(method).__name__)
    assert isinstance(method, DpSgd)
    place, known = Path(folder), data.labelled()
    place.mkdir(parents=True, exist_ok=True)
    facts = {"method": "dp-sgd", **method.parameters, "account": method.account}
    with _only_one(place / _LOCK):
        _clean(place)
        reservation = None
        if (place / _SECRET).exists():
            saved = _continued(place, method, known, ledger, facts)
        else:
            reservation, saved = _begun(place, kind, method, known, ledger, facts)
        last = _run(place / _STATE, method, known, saved, progress)
        release = _released(kind, method, facts, saved.receipt, schema_hash, last.weights)
        if reservation is not None:
            reservation.commit(release.to_json())
        elif ledger is not None and saved.receipt is not None:
            _hand_over(place, ledger, saved.receipt, method.guarantee, release.to_json())
        _wipe(place)  # proof: key-erased
    return release


def _begun(
    place: Path, kind: str, method: DpSgd, data: Data, ledger: Ledger | None, facts: Mapping[str, Any]
) -> tuple[Reservation | None, _Saved]:
    """Charges, then writes the key, then the first checkpoint."""
    reservation = None
    if ledger is not None:
        reservation = ledger.reserve(method.guarantee, purpose=purpose_of(kind, facts))  # proof: charge-first
        reservation.touch()
    stream = Stream.fresh(os_coin())  # proof: fresh-key
    weights = method.network.initial()
    first = State(step=0, weights=weights, velocity=np.zeros_like(weights))
    saved = _Saved(
        key=stream.key,
        fingerprint=_fingerprint(stream.key, data, facts),
        receipt=None if reservation is None else reservation.receipt,
        before=first,
        now=first,
    )
    _write_key(place / _SECRET, stream.key)  # proof: key-in-one-place
    write_whole(place / _STATE, saved.to_json(), mode=_OWNER_ONLY)
    return reservation, saved


def _continued(place: Path, method: DpSgd, data: Data, ledger: Ledger | None, facts: Mapping[str, Any]) -> _Saved:
    """The saved run, once everything about it was found the same."""
    saved = _Saved.read(place, method.network.n_weights)
    _must_be_charged(place, saved.receipt, ledger)
    if not hmac.compare_digest(saved.fingerprint, _fingerprint(saved.key, data, facts)):  # proof: same-everything
        raise DataError(_REFUSED)
    if saved.now.step > saved.before.step:
        replayed = next(method.states(data, Stream(saved.key), progress=unheard, start=saved.before))
        if replayed.weights.tobytes() != saved.now.weights.tobytes():  # proof: bit-for-bit
            raise DataError(_REFUSED)
    return saved


def _must_be_charged(place: Path, receipt: Receipt | None, ledger: Ledger | None) -> None:
    """Refuses a run whose charge is not open in that ledger; a run that was handed over loses its key here at the latest."""
    if (receipt is None) != (ledger is None):
        raise DataError("ledger must be given exactly when the interrupted run had one. Pass the one it was charged to.")
    if receipt is None or ledger is None:
        return
    entries = ledger.entries()
    states = [entry.state for entry in entries if entry.entry_hash == receipt.entry_hash]
    closed = any(entry.key == _marker(receipt) and entry.state == "committed" for entry in entries)
    if states == ["reserved"] and not closed:  # proof: one-result
        return
    if closed or states == ["committed"]:
        _wipe(place)  # proof: cleaned-after-a-crash
        raise LedgerError(
            f"ledger {ledger.name!r} must hold the open charge of this run; the run's result was already handed over. "
            "Its key was erased now. Start a new run: it is charged anew."
        )
    raise LedgerError(f"ledger {ledger.name!r} must hold the open charge of this run; it does not. It is another ledger.")


def _marker(receipt: Receipt) -> str:
    return f"checkpoint handed over {receipt.entry_hash}"


def _hand_over(place: Path, ledger: Ledger, receipt: Receipt, promise: Guarantee, payload: bytes) -> None:
    """Keeps a resumed run's result under a key of its own, at no cost: only the process that reserved can close the charge."""
    free = Guarantee(epsilon=0, relation=promise.relation, unit=promise.unit, mechanism="none: the charge was booked before")
    purpose = f"result of entry {receipt.entry}, after an interruption"
    try:
        ledger.reserve(free, purpose=purpose, key=_marker(receipt)).commit(payload)  # proof: marked
    except ParameterError:
        _wipe(place)
        raise LedgerError(
            f"ledger {ledger.name!r} must hold the open charge of this run; the run's result was already handed over. "
            "Another copy of the checkpoint folder was faster."
        ) from None


def _run(file: Path, method: DpSgd, data: Data, saved: _Saved, progress: Progress) -> State:
    """All remaining steps, saved every few seconds and when interrupted."""
    before, now = saved.before, saved.now
    written = time.monotonic()
    try:
        for state in method.states(data, Stream(saved.key), progress=progress, start=saved.now):
            before, now = now, state
            if time.monotonic() - written > _SECONDS:
                _write(file, saved, before, now)
                written = time.monotonic()
    except BaseException:
        _write(file, saved, before, now)
        raise
    _write(file, saved, before, now)
    return now


def _write(file: Path, saved: _Saved, before: State, now: State) -> None:
    content = dataclasses.replace(saved, before=before, now=now).to_json()
    write_whole(file, content, overwrite=True, mode=_OWNER_ONLY)


def _released(
    kind: str, method: DpSgd, facts: Mapping[str, Any], receipt: Receipt | None, schema_hash: str | None, weights: Floats
) -> Release:
    guarantee = method.guarantee
    origin = Provenance(kind=kind, mechanism=guarantee.mechanism, parameters=facts, receipt=receipt, schema_hash=schema_hash)
    return Release(value={"weights": weights}, guarantee=guarantee, provenance=origin)


def _fingerprint(key: bytes, data: Data, facts: Mapping[str, Any]) -> str:
    """A keyed digest of everything the result depends on; without the key it says nothing about the data."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    surroundings = [sys.version, platform.platform(), platform.machine(), np.__version__, str(os.cpu_count())]
    surroundings += [repr(np.show_config(mode="dicts"))]
    surroundings += [
        f"{name}={os.environ.get(name)}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    ]
    for part in (repr(sorted(facts.items(), key=lambda item: item[0])), *surroundings, str(data.rows.shape)):
        digest.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    digest.update(np.ascontiguousarray(data.rows).tobytes())
    digest.update(np.ascontiguousarray(data.labels).tobytes())
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
    with contextlib.suppress(OSError), open(file, "r+b") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.write(bytes(size))  # zeros tell the next call that the key is gone
        opened.flush()
        os.fsync(opened.fileno())
    file.unlink(missing_ok=True)


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """One run at a time; the operating system lets go when a process dies."""
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(lock, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"{lock.parent} must be used by one run at a time; another one is at it.") from None
        yield
    finally:
        os.close(handle)


def _state_record(state: State) -> dict[str, Any]:
    parts = {"weights": state.weights, "velocity": state.velocity}
    return {"step": state.step} | {name: base64.b64encode(part.tobytes()).decode() for name, part in parts.items()}


def _state(record: Mapping[str, Any], n_weights: int) -> State:
    parts = {name: np.frombuffer(base64.b64decode(record[name]), dtype=np.float64) for name in ("weights", "velocity")}
    if any(part.shape != (n_weights,) for part in parts.values()):
        raise ValueError
    return State(step=int(record["step"]), **parts)
