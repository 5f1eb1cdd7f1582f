"""The command line: one file per verb.

A module here without a leading underscore is a verb named after its file. It has either `app`, a `typer.Typer` whose commands
become `sabun <file> <command>`, or `command`, a function that becomes `sabun <file>`. Nothing else has to be edited to add one.
A verb imports what is heavy inside its functions, so that `sabun --help` stays quick, and its help has an `Example` that works.
"""

from __future__ import annotations

from sabun.cli._frame import build, main

__all__ = ["build", "main"]
