"""Finding the verbs, running one, turning every error into an exit code.

Verbs are the modules of this folder and the `verbs` of every room, with what stands above a room and speaks for it (`_GUESTS`).
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import pkgutil
import sys
import traceback
from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer

import sabun
from sabun.asking.directory import room_named, rooms
from sabun.cli._wording import in_typed_words, options_of, with_options
from sabun.errors import InternalError, SabunError
from sabun.telling.terminal.charging import Interrupted, ResultNotWritten, charged
from sabun.telling.terminal.output import complain, hearing, print_line

__all__ = ["build", "main", "run", "whole"]

_INTERRUPTED = 130
_BROKEN_PIPE = 1
_BAD_DATA = 4
_BUG = 70
_GUESTS = {"keyvalue": ("sabun.service.verbs",)}
"""Commands of a room that need more than a room may import."""


def build(only: str | None = None) -> typer.Typer:
    """The command line from the modules in this folder; with one verb alone, nothing else need be imported."""
    root = typer.Typer(
        name="sabun",
        help="Differential privacy that comes with its evidence.\n\nExample:\n\n    sabun demo",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    root.callback()(_options)
    if only is not None:
        _add_verb(root, only)
        return root
    for name in sorted({*_verbs(), *(room.name for room in rooms() if room.part("verbs") is not None)}):
        _add_verb(root, name)
    return root


def _verbs() -> list[str]:
    names = (found.name for found in pkgutil.iter_modules(sys.modules["sabun.cli"].__path__))
    return [name for name in names if not name.startswith("_")]


def _module_of(name: str) -> ModuleType | None:
    """The module of a verb: of this folder, or of the room of that name."""
    if name in _verbs():
        return importlib.import_module(f"sabun.cli.{name}")
    room = room_named(name)
    return None if room is None else room.part("verbs")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command, then leaves with its exit code.

    Exit codes: 0 ok · 1 an audit found a failure or could try nothing, or nobody reads the output any more (nothing was
    charged) · 2 bad parameter or usage · 3 budget refused · 4 bad data, or the system refuses, the output too · 70 a bug of
    ours · 130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    sys.exit(run(given))


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=lambda on: _version(on))
    ] = False,
) -> None:
    del version


def _version(wanted: bool) -> None:
    if wanted:
        print_line(f"sabun {sabun.__version__}")
        raise typer.Exit


def _add_verb(root: typer.Typer, name: str) -> None:
    module, verb = _module_of(name), name.replace("_", "-")
    app, command = getattr(module, "app", None), getattr(module, "command", None)
    if isinstance(app, typer.Typer):
        root.add_typer(_with_guests(app, name), name=verb)
    elif callable(command):
        root.command(name=verb)(command)
    else:
        raise InternalError(f"the verb {verb!r} has neither an app nor a command.")


def _with_guests(app: typer.Typer, name: str) -> typer.Typer:
    """A room's commands with those that others add, in a new app: the room's own stays as it is."""
    if name not in _GUESTS:
        return app
    joined = typer.Typer(help=app.info.help, no_args_is_help=True)
    for part in (app, *(importlib.import_module(guest).app for guest in _GUESTS[name])):
        joined.registered_commands += part.registered_commands
        joined.registered_groups += part.registered_groups
    return joined


@cache
def whole() -> Any:
    """The whole command line, as help shows it."""
    made = typer.main.get_command(build())
    _hide_older_names(made)
    return made


def run(given: list[str]) -> int:
    """Runs one command; its exit code. What it says goes to the streams, or to whoever hears it."""
    as_json = "--json" in given
    charged(anew=True)
    options: dict[str, str] = {}
    try:
        command = typer.main.get_command(build(_named(given)))
        _hide_older_names(command)
        options = options_of(command, given)
        code = command.main(args=given, prog_name="sabun", standalone_mode=False)
        if code == _INTERRUPTED:  # typer's word for an interrupt that no command explained
            raise KeyboardInterrupt
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ResultNotWritten as error:
        return complain(str(error), error, code=error.exit_code, as_json=as_json)
    except SabunError as error:
        words = in_typed_words(str(error), options)
        words = with_options(words, options) if hearing() is None else words
        return complain(_with_charges(words), error, code=error.exit_code, as_json=as_json)
    except typer.TyperException as error:
        return complain(_usage(error), error, code=error.exit_code, as_json=as_json)
    except Interrupted as stop:
        return complain(str(stop), stop, code=_INTERRUPTED, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort) as stop:
        words = "interrupted; nothing was charged." if "ledger" in options and not charged() else "interrupted."
        return complain(_with_charges(words), stop, code=_INTERRUPTED, as_json=as_json)
    except BrokenPipeError as error:
        return _unread(error, as_json)
    except SystemExit as stop:  # what the libraries that parse and print make of a broken pipe
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _unread(stop.__context__, as_json)
    except OSError as error:
        _silence_stdout()
        place = "" if error.filename is None else f" ({error.filename})"
        words = _with_charges(f"the operating system refuses: {error.strerror}{place}.")
        return complain(words, error, code=_BAD_DATA, as_json=as_json)
    except Exception as error:
        return complain(_with_charges(_bug(error)), error, code=_BUG, as_json=as_json)


def _hide_older_names(command: Any) -> None:
    """Leaves older spellings of options out of help and messages; they go on working."""
    for inner in getattr(command, "commands", {}).values():
        _hide_older_names(inner)
    for option in command.params:
        if len(option.opts) > 1:
            option.opts, option.add_to_parser = option.opts[:1], partial(_with_every_name, option, option.opts)


def _with_every_name(option: Any, names: list[str], parser: Any, context: Any) -> None:
    shown, option.opts = option.opts, names
    type(option).add_to_parser(option, parser, context)
    option.opts = shown


def _unread(error: BrokenPipeError, as_json: bool) -> int:
    """No error where nothing was charged: whoever reads may stop when they have seen enough."""
    _silence_stdout()
    words = _with_charges("nobody reads the output any more.") if charged() else ""
    return complain(words, error, code=_BAD_DATA if words else _BROKEN_PIPE, as_json=as_json)


def _with_charges(message: str) -> str:
    """The message, with what the command has charged before it ended."""
    return " ".join(filter(None, (message, charged())))


def _named(given: list[str]) -> str | None:
    """The verb that was typed, if it is one of ours: starting stays quick however many rooms there are."""
    verb = given[0].replace("-", "_") if given else ""
    return verb if verb and not verb.startswith("_") and _module_of(verb) is not None else None


def _usage(error: typer.TyperException) -> str:
    """The message with the way to the help; empty when the help itself was just printed."""
    message = error.format_message().strip()
    context = getattr(error, "ctx", None)
    advice = "" if context is None or not message else f" See: {context.command_path} --help"
    return message + ("" if message.endswith((".", "?")) or not message else ".") + advice


def _bug(error: Exception) -> str:
    """Names only the type: the words and the traceback of an unexpected error may hold private values."""
    if os.environ.get("SABUN_TRACEBACK") == "1":
        traceback.print_exception(error)
    return (
        f"unexpected {type(error).__name__}. This is a bug in Sabun, not a mistake of yours: please report it. "
        "SABUN_TRACEBACK=1 shows the traceback; it may hold private values, so read it before you share it."
    )


def _silence_stdout() -> None:
    """What could not be written will not be; without this, Python complains once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (stays open until the process ends)


class _Closed(io.TextIOBase):
    """Stands for a stdout that was closed before we began: what is written to it is refused, not lost in silence."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "stdout is closed")


def _open_streams() -> None:
    """Python has no object for a stream that was closed, and the next file that is opened would get its number."""
    if sys.stdout is not None and sys.stderr is not None:
        return
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (stays open until the process ends)
