"""Asks the audit itself, without its digests of proofs, which of the faults of `mutants_laws.py` it notices.

    python tests/audit/faults.py                every fault (some minutes)
    python tests/audit/faults.py "one draw"     those with these words in their name

Nothing is copied: each fault is a process of its own in which one module is read with one line changed.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import runpy
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "numpy",
    "scipy.optimize",
    "scipy.stats",
    "pandas",
    "sklearn.base",
    "cryptography",
    "dp_accounting.pld",
    "numba",
    "torch",
)
PATIENCE = 400


def changed(file: str, edits: tuple[tuple[str, str], ...]) -> None:
    """Lets one module of the package be read with its lines changed; nothing of it may be loaded yet."""
    target = str(ROOT / "src" / "sabun" / file)
    loader: Any = importlib.machinery.SourceFileLoader
    read, stats = loader.get_data, loader.path_stats

    def get_data(self: Any, path: str) -> bytes:
        content: bytes = read(self, path)
        if path != target:
            return content
        text = content.decode()
        for old, new in edits:
            if text.count(old) != 1:
                raise SystemExit(f"{file}: {old!r} must stand there once; it does {text.count(old)} times.")
            text = text.replace(old, new)
        return text.encode()

    def path_stats(self: Any, path: str) -> Any:
        if path == target:
            raise OSError  # so that no compiled file stands in for it
        return stats(self, path)

    loader.get_data, loader.path_stats = get_data, path_stats


def noticed(name: str) -> str:
    """What notices it: the first check about that name, or with it in its claim, that fails; empty where none does."""
    from sabun.audit.catalogue import catalogue, known
    from sabun.audit.running import _asked, _claims

    exact = name.lower() in map(str.lower, known())
    # Laws first: they are cheap, and they are what these faults are for.
    for one in sorted(catalogue(), key=lambda one: not any("specimen" in case for case in one.check.cases)):
        about = _asked(one, name) if exact else _claims(one, name)
        if not about or one.check.thorough or "proof" in one.check.claim or "commands" in one.check.mechanisms:
            continue
        found = one.check.run(one.room)
        if found.passed is False:
            return f"{found.claim}: {found.evidence[:160]}"
    return ""


def main() -> None:
    """Prints a line for each fault."""
    sys.path.insert(0, str(ROOT / "src"))
    for module in HEAVY:
        importlib.import_module(module)
    warnings.simplefilter("ignore")
    faults = runpy.run_path(str(Path(__file__).with_name("mutants_laws.py")))["FAULTS"]
    words, missed = sys.argv[1:] or [""], []
    for name, audited, file, old, new, *more in faults:
        if not any(word in name for word in words):
            continue
        began, (reading, writing) = time.monotonic(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                changed(file, ((old, new), *more))
                told = noticed(audited)
            except BaseException as error:  # the fault broke the package where the audit is made: that shows, too
                told = f"{type(error).__name__}: {error}"
            os.write(writing, told.encode()[:4000])
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read().decode(errors="replace")
        os.waitpid(child, 0)
        if not told:
            missed.append(name)
        print(f"{'caught' if told else 'MISSED'} {name} [{time.monotonic() - began:.0f} s] {told}", flush=True)
    print(f"{len(missed)} missed: {', '.join(missed) or 'none'}")
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
