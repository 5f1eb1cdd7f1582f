"""The command line: one file per verb.

A module here without a leading underscore is a verb named after its file. It has either `app`, a `typer.Typer` whose commands
become `sabun <file> <command>`, or `command`, a function that becomes `sabun <file>`. Nothing else has to be edited to add one.
A verb imports what is heavy inside its functions, so that `sabun --help` stays quick, and its help has an `Example` that works.
"""

from __future__ import annotations

import signal
import threading

_here = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _here:  # who stops a command before its libraries are loaded shall not read where they were: it ends without a word
    signal.signal(signal.SIGINT, signal.SIG_DFL)
from sabun.cli._frame import build, main  # noqa: E402 (that is what takes long)

if _here:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["build", "main"]
