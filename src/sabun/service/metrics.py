"""Figures for a monitor, in the text format of Prometheus: of all studies together, and of this process."""

from __future__ import annotations

import os
from collections import Counter, defaultdict

from sabun.service.report_store import Store
from sabun.service.writer import Writer

__all__ = ["metrics_text"]


def metrics_text(store: Store, writer: Writer) -> str:
    """What a monitor reads. Outcomes come from the store, so every process says the same.

    A round counts once it has as many reports as its study shows: anybody may read this.
    """
    found: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for served in store.all_served():
        states.update(one.state for one in store.rounds(served))
        by_round: dict[int, Counter[str]] = defaultdict(Counter)
        for number, _, what, n in store.outcomes(served):
            by_round[number][what] += n
        for outcomes in by_round.values():
            if outcomes["accepted"] >= served.study.terms.min_batch:
                found += outcomes
    lines = _family("sabun_reports_total", "counter", "Reports by what became of them, of rounds that have a minimum batch.")
    lines += [f'sabun_reports_total{{outcome="{what}"}} {n}' for what, n in sorted(found.items())]
    lines += _family("sabun_rounds", "gauge", "Rounds by state.")
    lines += [f'sabun_rounds{{state="{state}"}} {n}' for state, n in sorted(states.items())]
    own = {
        "sabun_commits_total": ("counter", "Transactions of the writer.", writer.figures.commits),
        "sabun_commit_failures_total": (
            "counter",
            "Transactions that failed; devices were told to come again.",
            writer.figures.failures,
        ),
        "sabun_commit_seconds_total": ("counter", "Time spent in them.", round(writer.figures.seconds, 6)),
        "sabun_waiting_reports": ("gauge", "Reports that wait to be written.", writer.figures.waiting),
        "sabun_resident_bytes": ("gauge", "Memory of the process.", _resident()),
    }
    for name, (kind, words, value) in own.items():
        lines += [*_family(name, kind, words), f'{name}{{process="{store.shard}"}} {value}']
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
