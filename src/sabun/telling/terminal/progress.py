"""A progress bar on the terminal, or on the page that runs a command, and nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from sabun.telling.terminal.output import hearing, on_terminal, safe

__all__ = ["busy", "progress_bar", "watched"]


@contextmanager
def busy(words: str) -> Iterator[None]:
    """A moving sign on a terminal's stderr while the work lasts; it never tells how much there is."""
    if (hears := hearing()) is not None:
        hears.doing, hears.share = safe(words), None
        yield
        return
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(safe(words))):  # as text: a file's name may look like markup
        yield


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr; what it yields is called with the share done (0 to 1) and what is being done now."""
    if (hears := hearing()) is not None:

        def tell(share: float, doing: str) -> None:
            hears.doing, hears.share = f"{safe(title)}: {safe(doing)[:60]}", min(max(share, 0.0), 1.0)

        hears.doing = safe(title)
        yield tell
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr, emoji=False, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[doing]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(safe(title), total=1.0, doing="")

        def step(share: float, doing: str) -> None:
            bar.update(task, completed=min(max(share, 0.0), 1.0), doing=safe(doing)[:60])

        yield step


def watched(*, quiet: bool = False) -> bool:
    """Whether anybody sees progress: what only serves to show it need not be computed for nobody."""
    return hearing() is not None or (on_terminal() and not quiet)
