"""Laws of what leaves the house: charge first, one draw, whole files, and no field of it can be altered unseen."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import sabun
from sabun.asking.evidence import Bench, Checklist
from sabun.audit.altered import altered
from sabun.errors import BudgetExceeded, SabunError, SimulatedError
from sabun.ledger import Ledger
from sabun.privacy import Guarantee
from sabun.privacy.noise import coin_for
from sabun.release import Release, publish
from sabun.release.encoding import canonical
from sabun.release.outsiders import Statement, state

__all__ = ["CHECKS", "order_of_writing"]

CHECKS = Checklist()

_PROMISE = Guarantee(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), unit="record", mechanism="made up")


@contextmanager
def _ledger(epsilon: float = 1) -> Iterator[tuple[Ledger, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book"
        yield Ledger.create(path, name="book", unit="record", epsilon=epsilon, delta=Fraction(1, 100), accounting="sums"), path


def _published(ledger: Ledger | None, draw: Any, **how: Any) -> Release:
    facts: dict[str, Any] = {"kind": "made.up", "guarantee": _PROMISE, "parameters": {"k": 1}, "coin": coin_for(None)}
    return publish(**(facts | {"draw": draw, "ledger": ledger} | how))


@CHECKS("publishing")
def _the_charge_is_in_the_book_when_the_value_is_drawn_and_it_is_drawn_once(bench: Bench) -> None:
    seen: list[Any] = []
    with _ledger() as (ledger, path):

        def draw() -> dict[str, Any]:
            seen.append(Ledger.open(path).spent.epsilon)
            return {"count": 1}

        release = _published(ledger, draw, key="k")
        bench.must(seen == [Fraction(1, 2)], f"drawn {len(seen)} times, with {seen} in the book.")
        again = _published(ledger, draw, key="k")
        bench.must(again.to_json() == release.to_json() and len(seen) == 1, "a retry drew again.")
        [entry] = Ledger.open(path).entries()
        bench.must(entry.state == "committed", "the result is not kept.")
        receipt = release.provenance.receipt
        bench.must(receipt is not None and receipt.epsilon == Fraction(1, 2), "the receipt is about another charge.")


@CHECKS("publishing")
def _a_draw_that_fails_stays_charged_and_releases_nothing(bench: Bench) -> None:
    with _ledger() as (ledger, path):

        def broken() -> dict[str, Any]:
            raise RuntimeError("in the middle of private rows")

        try:
            _published(ledger, broken)
        except RuntimeError:
            bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 2), "data was read for free.")
        else:
            bench.fail("something was released.")


@CHECKS("publishing")
def _a_refused_budget_draws_nothing_and_a_seeded_coin_is_never_charged(bench: Bench) -> None:
    def drawn() -> dict[str, Any]:
        bench.fail("it was drawn.")

    with _ledger(epsilon=0.1) as (ledger, path):
        before = path.read_bytes()
        for refusal, how in ((BudgetExceeded, {}), (SimulatedError, {"coin": coin_for(1)})):
            try:
                _published(ledger, drawn, **how)
            except refusal:
                bench.must(path.read_bytes() == before, "a refusal wrote to the book.")
            else:
                bench.fail("it was not refused.")
    seeded = _published(None, lambda: {"count": 1}, coin=coin_for(1))
    bench.must(seeded.guarantee.simulated, "a seeded result calls itself private.")
    for leave in (seeded.to_json, lambda: seeded.save(os.devnull)):
        try:
            leave()
        except SimulatedError:
            continue
        bench.fail("a seeded result left the house.")


@CHECKS("signed releases")
def _every_altered_field_of_a_promise_a_receipt_or_a_value_is_refused(bench: Bench) -> str:
    """Each field of a signed file, changed, left out or added, written as carefully as the package itself would."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, tried, kinds = Ed25519PrivateKey.generate(), 0, set[str]()
    with _ledger() as (ledger, _):
        release = _published(ledger, lambda: {"count": 41, "interval": [30, 52], "share": 0.25}).sign(key)
    for changed in altered(json.loads(release.to_json())):
        try:
            Release.from_json(canonical(changed.record)).verify(key.public_key())
        except SabunError:
            tried += 1
            kinds.add(changed.way.split("]")[0])
            continue
        bench.fail(f"a file with another {changed.way} was taken for the signed one.")
    bench.must(release.verify(key.public_key()).trusted, "the true one was refused.")
    bench.must(tried > 40, "too few fields were found.")
    return f"{tried} changes, all refused"


@CHECKS("promises")
def _every_altered_field_of_an_unsigned_receipt_that_pays_too_little_is_refused(bench: Bench) -> None:
    with _ledger() as (ledger, _):
        record = json.loads(_published(ledger, lambda: {"count": 41}).to_json())
    receipt = record["provenance"]["receipt"]
    for name, less in (("epsilon", "1/4"), ("delta", "0"), ("relation", "add-remove"), ("unit", "visit")):
        changed = json.loads(json.dumps(record))
        changed["provenance"]["receipt"] = receipt | {name: less}
        try:
            Release.from_json(canonical(changed))
        except SabunError:
            continue
        bench.fail(f"a receipt with {name} {less} pays for a promise of {_PROMISE}.")


@CHECKS("signed releases")
def _every_altered_field_of_a_signed_statement_is_refused(bench: Bench) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, tried = Ed25519PrivateKey.generate(), 0
    with _ledger() as (ledger, path):
        _published(ledger, lambda: {"count": 41})
        file = path.with_name("statement")
        stated = state(ledger).sign(key)
        stated.save(file)
        for changed in altered(json.loads(file.read_bytes())):
            file.write_bytes(canonical(changed.record))
            try:
                Statement.load(file).verify(key.public_key())
            except SabunError:
                tried += 1
                continue
            bench.fail(f"a statement with another {changed.way} was taken for the signed one.")
    bench.must(stated.verify(key.public_key()).trusted, "the true one was refused.")
    return f"{tried} changes, all refused"


_FINE = re.compile(r"\d:\d\d(:\d\d)?")


@CHECKS("publishing")
def _no_time_that_is_kept_or_told_is_finer_than_a_second(bench: Bench) -> str:
    """A finer one would tell how long the work on private rows took."""
    with _ledger() as (ledger, path):
        release = _published(ledger, lambda: {"count": 1})
        texts = [release.to_json().decode(), str(release), *ledger.records(), ledger.show(), json.dumps(ledger.to_dict())]
        state(ledger).save(path.with_name("statement"))
        texts += [path.with_name("statement").read_text(encoding="utf-8"), *map(repr, (*ledger.receipts, *ledger.entries()))]
    times = [text[found.start() : found.end() + 2] for text in texts for found in _FINE.finditer(text)]
    finer = [time for time in times if re.search(r":\d\d[.,]\d", time)]
    bench.must(len(times) >= len(texts) - 1, "too few times were found.")
    bench.must(not finer, f"a time is told as …{finer[:1]}.")
    return f"{len(times)} times"


def order_of_writing(bench: Bench, module: Any) -> list[str]:
    """What is done to files from now on by way of a module's `os`: synced, named, removed; in order."""
    steps: list[str] = []
    for name in ("fsync", "replace", "rename", "link", "unlink", "remove"):
        true = getattr(os, name)

        def step(*given: Any, name: str = name, true: Any = true, **how: Any) -> Any:
            folder = name == "fsync" and Path(f"/proc/self/fd/{given[0]}").is_dir()
            steps.append("fsync folder" if folder else name)
            return true(*given, **how)

        bench.replace(module.os, name, step)
    return steps


@CHECKS("files", overwrite=[False, True])
def _a_file_is_on_disk_before_it_has_its_name(bench: Bench, overwrite: bool) -> str:
    from sabun.release import files

    steps = order_of_writing(bench, files)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        if overwrite:
            path.write_bytes(b"old")
        release = _published(None, lambda: {"count": 1})
        release.save(path, overwrite=overwrite)
        bench.must(path.read_bytes() == release.to_json(), "other bytes were saved.")
        bench.must([file.name for file in Path(folder).iterdir()] == ["out.json"], "something else was left there.")
    named = next((place for place, step in enumerate(steps) if step in ("replace", "rename", "link")), None)
    bench.must(named is not None, "the file was written in place: a crash leaves half of it.")
    bench.must("fsync" in steps[:named], "it had its name before it was on disk.")
    bench.must("fsync folder" in steps[named:] or os.name != "posix", "its name was never brought to disk.")
    return ", ".join(steps)


@CHECKS("files")
def _a_file_that_is_there_stays_as_it_is(bench: Bench) -> None:
    release = _published(None, lambda: {"count": 1})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        path.write_bytes(b"precious")
        try:
            release.save(path)
        except SabunError:
            bench.must([file.read_bytes() for file in Path(folder).iterdir()] == [b"precious"], "a refusal changed files.")
            return
        bench.fail("a file was written over.")


@CHECKS("files")
def _a_name_that_is_taken_while_the_file_is_written_stays_with_whoever_took_it(bench: Bench) -> None:
    """Two writers who looked at once: the second is refused, and what the first wrote stays."""
    true = os.fsync
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"

        def quicker(handle: int) -> None:
            if not path.exists():
                path.write_bytes(b"precious")
            true(handle)

        bench.replace(os, "fsync", quicker)
        try:
            _published(None, lambda: {"count": 1}).save(path)
        except SabunError:
            bench.must([file.read_bytes() for file in Path(folder).iterdir()] == [b"precious"], "a refusal changed files.")
            return
        bench.fail("a file of another writer was written over.")


_NAMING = re.compile(r"os\.(?:link|replace|rename)\(|\.rename\(")
_OUTSIDE = {"engine/scratch.py", "datasets/adult_full.py"}
"""They name what may be lost with the power: scratch files, and copies of public tables."""


def _saved(folder: Path, elsewhere: Path) -> None:
    del folder
    _published(None, lambda: {"count": 1}).save(elsewhere / "out.json")


def _backed_up(folder: Path, elsewhere: Path) -> None:
    Ledger.create(folder / "book", name="book", unit="record", epsilon=1).backup(elsewhere / "copy")


def _begun(folder: Path, elsewhere: Path) -> None:
    del folder
    Ledger.create(elsewhere / "book", name="book", unit="record", epsilon=1)


def _reported(folder: Path, elsewhere: Path) -> None:
    del folder
    from sabun.keyvalue.batches import write_reports

    write_reports(elsewhere / "reports", [b"one"])


def _waiting(folder: Path, elsewhere: Path) -> None:
    del folder
    from sabun.keyvalue.client.outbox import Outbox

    Outbox(elsewhere).promise("task", "ticket")


_NAMED_BY: dict[str, Callable[[Path, Path], None]] = {
    "release/files.py": _saved,
    "ledger/sqlite_store.py": _backed_up,
    "ledger/sqlite_store.py, a new book": _begun,
    "keyvalue/batches.py": _reported,
    "keyvalue/client/outbox.py": _waiting,
}
"""Every module that gives a finished file its name, with a call that has it do so."""


@CHECKS("files", module=tuple(_NAMED_BY))
def _the_folder_of_a_new_name_is_brought_to_disk_after_it(bench: Bench, module: str) -> None:
    package = Path(sabun.__file__).parent
    naming = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "audit" not in path.parts and _NAMING.search(path.read_text(encoding="utf-8"))
    }
    bench.must(naming <= _NAMED_BY.keys() | _OUTSIDE, f"other modules name files: {sorted(naming - _NAMED_BY.keys())}.")
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as other:
        steps: list[str] = []
        place = os.stat(other)
        for name in ("link", "replace", "rename"):
            true = getattr(os, name)

            def named(source: Any, target: Any, *more: Any, true: Any = true, **how: Any) -> Any:
                if Path(os.path.dirname(os.path.abspath(target))).samefile(other):
                    steps.append("named")
                return true(source, target, *more, **how)

            bench.replace(os, name, named)
        opened, sync = os.open, os.fsync

        def made(path: Any, flags: int, *more: Any, **how: Any) -> int:
            handle = opened(path, flags, *more, **how)
            if flags & os.O_EXCL and Path(path).parent.samefile(other):
                steps.append("named")
            return handle

        bench.replace(os, "open", made)

        def synced(handle: int) -> None:
            if os.path.samestat(os.fstat(handle), place):
                steps.append("synced")
            sync(handle)

        bench.replace(os, "fsync", synced)
        _NAMED_BY[module](Path(own), Path(other))
    bench.must("named" in steps, "nothing was named there.")
    bench.must(steps[-1] == "synced" or os.name != "posix", f"its folder is not synced after it: {steps}.")


@CHECKS("files", module=tuple(_NAMED_BY))
def _the_bytes_of_a_new_name_are_brought_to_disk_before_it(bench: Bench, module: str) -> None:
    brought, early, sync = set[tuple[int, int, int]](), list[str](), os.fsync

    def content(facts: os.stat_result) -> tuple[int, int, int]:
        return facts.st_dev, facts.st_ino, facts.st_size

    def synced(handle: int) -> None:
        sync(handle)
        brought.add(content(os.fstat(handle)))

    bench.replace(os, "fsync", synced)
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as other:
        for name in ("link", "replace", "rename"):
            true = getattr(os, name)

            def named(source: Any, target: Any, *more: Any, true: Any = true, **how: Any) -> Any:
                if content(os.stat(source)) not in brought:
                    early.append(Path(target).name)
                return true(source, target, *more, **how)

            bench.replace(os, name, named)
        _NAMED_BY[module](Path(own), Path(other))
    bench.must(not early, f"named before it was on disk: {early}.")


_ANOTHER: dict[str, Any] = {
    "kind": "made.otherwise",
    "guarantee": Guarantee(epsilon=Fraction(1, 3), unit="record", mechanism="made up"),
    "parameters": {"k": 2},
    "subject": ("age",),
    "schema_hash": "0" * 64,
    "notes": ("A note.",),
    "apart": "another public table",
}
_NO_QUESTION = {"draw", "ledger", "coin", "key", "price"}
"""What publishes, and where; not what is asked."""


@CHECKS("publishing", part=tuple(name for name in signature(publish).parameters if name not in _NO_QUESTION))
def _questions_that_differ_in_anything_public_get_answers_of_their_own(bench: Bench, part: str) -> None:
    """About a table of a public name, without a key: only the very same question gets the same answer again, for nothing."""
    bench.must(part in _ANOTHER, "no question that differs in it is tried.")
    drawn: list[int] = []

    def draw() -> dict[str, Any]:
        drawn.append(1)
        return {"count": len(drawn)}

    with tempfile.TemporaryDirectory() as folder:
        terms: dict[str, Any] = {"epsilon": 9, "delta": Fraction(1, 100), "accounting": "sums"}
        Ledger.create(Path(folder) / "book", name="book", unit="record", **terms)
        ledger = Ledger.open(Path(folder) / "book", table="patients")
        for how in ({}, {part: _ANOTHER[part]}) * 2:
            _published(ledger, draw, **how)
        bench.must(len(drawn) == 2 == len(ledger.entries()), f"two questions, {len(drawn)} draws.")
