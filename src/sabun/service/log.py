"""What the server says of itself: one JSON object per line, about the server, never about a report or whoever sent it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import final

__all__ = ["say", "start_log"]

_log = logging.getLogger("sabun.service")


@final
class _Lines(logging.Formatter):
    """Time to the second, level, process, event, words."""

    def __init__(self, shard: int) -> None:
        super().__init__()
        self._shard = shard

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = {"time": when, "level": record.levelname.lower(), "process": self._shard}
        return json.dumps(facts | {"event": getattr(record, "event", record.name), "message": record.getMessage()})


def start_log(shard: int) -> None:
    """Sends what this process says to stderr; tracebacks, which may hold what somebody sent, are left out."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(shard))
    for name, level in (("sabun.service", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True


def say(event: str, message: str, *, level: int = logging.INFO) -> None:
    """Writes a line."""
    _log.log(level, message, extra={"event": event})
