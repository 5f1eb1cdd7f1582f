from __future__ import annotations

import io
import sys

import pytest

from sabun.telling.terminal.progress import busy, progress_bar


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


@pytest.mark.parametrize(("stream", "words"), [(Terminal(), "the [red]job[/red]"), (io.StringIO(), "")])
def test_work_without_a_measure_shows_that_it_goes_on(stream: io.StringIO, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with busy("the [red]job[/red]"):
        pass
    assert words in stream.getvalue()
    assert bool(words) == bool(stream.getvalue())
