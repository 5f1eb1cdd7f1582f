"""Figures for a monitor, in the text format of Prometheus: of all studies together, and of this process."""

from __future__ import annotations

import os

from sabun.service.report_store import Store
from sabun.service.writer import Writer

__all__ = ["metrics_text"]


def metrics_text(store: Store, writer: Writer) -> str:
    """What a monitor reads. Outcomes come from the store, so every process says the same."""
    with store.database.look() as session:
        found = session.rows("SELECT what, sum(n) FROM outcome GROUP BY what ORDER BY what")
        states = session.rows("SELECT state, count(*) FROM round GROUP BY state ORDER BY state")
    lines = _family("sabun_reports_total", "counter", "Reports by what became of them.")
    lines += [f'sabun_reports_total{{outcome="{what}"}} {int(n)}' for what, n in found]
    lines += _family("sabun_rounds", "gauge", "Rounds by state.")
    lines += [f'sabun_rounds{{state="{state}"}} {int(n)}' for state, n in states]
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
