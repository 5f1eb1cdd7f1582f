"""Leads visitors through copies of the package, one child for each: `python -P guide.py COPY`, started by `museum`.

Nothing of Sabun is loaded here, only the libraries it stands on, which take most of the time: each child loads Sabun anew, from
the copy as it is at that moment. A line on standard input is one visit; the answer is the child's exit status.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys

_LIBRARIES = ("scipy.stats", "scipy.optimize", "sklearn.base", "pandas", "dp_accounting.pld", "numba", "typer", "rich", "torch")
_PATIENCE_S = 900
"""What hangs longer has not been noticed by anybody."""


def main() -> None:
    """Answers until nobody asks any more."""
    sys.path.insert(0, sys.argv[1])
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _visit(line)
        _, status = os.waitpid(child, 0)
        print(status, flush=True)


def _visit(line: str) -> None:
    """The child: never returns."""
    status = 1
    try:
        signal.alarm(_PATIENCE_S)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        importlib.import_module("sabun.audit.tour").main(json.loads(line))
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
