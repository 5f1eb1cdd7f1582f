"""Runs the fuzzers: from `tests`, `python -m fuzz --seconds 60 --out FILE`, or `--runs 2000` for a first look.

With `--until 10000000` they take turns until so many inputs were tried altogether; what a target found worth keeping stays for
its next turn. Everything is imported once, instrumented; each target then gets a process of its own, because the fuzzer ends
the one it runs in. Exit code 1 where a target crashed, with the input that did it in `--crashes`.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import mmap
import os
import platform
import struct
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["sabun"]):
    from fuzz.targets import TARGETS, Target

_COUNTS = struct.Struct("qq")
_SLOWEST_S = 120


def fuzzed(name: str, target: Target, *, runs: int, seconds: int, crashes: Path, corpus: Path, turn: int = 1) -> dict[str, Any]:
    """Fuzzes one target in a child; what became of its inputs."""
    shared = mmap.mmap(-1, _COUNTS.size)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            tempfile.tempdir = folder  # whatever the target writes goes when the child has ended
            limits = [f"-runs={runs}", f"-max_total_time={seconds}", f"-seed={turn}"]
            _fuzz(name, target, shared, limits=limits, crashes=crashes, corpus=corpus)
        _, status = os.waitpid(child, 0)
    taken, refused = _COUNTS.unpack_from(shared)
    return {
        "inputs": taken + refused,
        "taken": taken,
        "refused": refused,
        "crashes": int(status != 0),  # the first one ends a target's run
        "seconds": round(time.monotonic() - began, 1),
    }


def _fuzz(name: str, target: Target, shared: mmap.mmap, *, limits: list[str], crashes: Path, corpus: Path) -> None:
    """The child: never returns."""
    counts = [0, 0]

    def one(content: bytes) -> None:
        try:
            counts[not target.taken(content)] += 1
        except BaseException:
            (crashes / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}").write_bytes(content)
            raise
        _COUNTS.pack_into(shared, 0, *counts)

    folder = corpus / name
    folder.mkdir(exist_ok=True)
    with (crashes / f"{name}.log").open("ab") as log:
        for place, seed in enumerate(target.seeds()):
            (folder / str(place)).write_bytes(seed)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        limits += [f"-timeout={_SLOWEST_S}", "-report_slow_units=600", "-rss_limit_mb=0", "-max_len=16384"]
        atheris.Setup([name, str(folder), *limits, f"-artifact_prefix={crashes}/{name}-"], one)
        try:
            atheris.Fuzz()
        finally:
            os._exit(1)  # reached only where the fuzzer could not start


def main() -> int:
    """Runs the chosen targets one after another; writes and prints what became of them."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz everything that reads bytes from elsewhere.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, unless some are named")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target")
    parser.add_argument("--seconds", type=int, default=0, help="seconds for each target")
    parser.add_argument("--until", type=int, default=0, help="take turns until so many inputs were tried altogether")
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--crashes", type=Path, default=None, help="folder for inputs that crash")
    asked = parser.parse_args()
    if asked.runs < 0 and asked.seconds <= 0:
        parser.error("say how long: --runs or --seconds")
    crashes = asked.crashes or Path(tempfile.mkdtemp(prefix="sabun-fuzz-crashes-"))
    crashes.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as corpus:
        for turn in itertools.count(1):
            for name in asked.targets or TARGETS:
                how = {"runs": asked.runs, "seconds": asked.seconds, "crashes": crashes, "corpus": Path(corpus), "turn": turn}
                one = fuzzed(name, TARGETS[name], **how)
                found[name] = {part: round(one[part] + found.get(name, {}).get(part, 0), 1) for part in one}
                print(f"{name}: {found[name]}", flush=True)
            tried, crashed = (sum(each[part] for each in found.values()) for part in ("inputs", "crashes"))
            if tried >= asked.until or crashed:
                break
    told = {
        "tool": {"atheris": metadata.version("atheris"), "python": platform.python_version()},
        "inputs": sum(each["inputs"] for each in found.values()),
        "crashes": sum(each["crashes"] for each in found.values()),
        "targets": found,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(f"{told['inputs']} inputs, {told['crashes']} crashes{f': see {crashes}' if told['crashes'] else ''}")
    return int(told["crashes"] > 0)


if __name__ == "__main__":
    sys.exit(main())
