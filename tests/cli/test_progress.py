from __future__ import annotations

import io
import sys

import pytest

from sabun.cli._progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("the [red]job[/red]", quiet=quiet) as step:
        step(0.5, "half\x1b[2Jway")
        step(7, "beyond the end")
        step(-1, "before the beginning")
    return stream.getvalue()


def test_a_terminal_shows_a_bar_without_driving_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    assert "the [red]job[/red]" in text
    assert "\x1b[2J" not in text


def test_a_pipe_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == ""


def test_machines_see_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), quiet=True) == ""
