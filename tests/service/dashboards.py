"""A collector on a port of this machine with reports in it, for tests of its pages."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from sabun.keyvalue import Study
from sabun.service.application import application
from sabun.service.arrivals import read_reports
from sabun.service.endpoints import Collecting
from sabun.service.limits import RateLimit
from sabun.service.operators import add_operator
from sabun.service.process import listening, web_server
from sabun.service.report_store import Batch, Served, Store
from sabun.service.round_keys import RoundKeys
from sabun.service.settings import Settings
from sabun.service.sqlite_session import SqliteDatabase
from sabun.service.writer import Writer
from service.devices import made_up

APPS = Study(
    keys=["Messages", "Maps", "<b>Video", "Music", "Games"], epsilon=2, protocol="kv3", value_range=(0, 120), min_batch=50
)
SLEEP = Study(keys=["naps", "snoring"], epsilon=1, protocol="kv3", min_batch=500, rounds=2)
DAY = 1_800_000_000.0


class Dashboard:
    """Two studies, one with reports; operators who may look, close, and look at one study alone."""

    def __init__(self, folder: Path, *, url: str = "") -> None:
        self.now = DAY
        self.visitors: list[Any] = []
        self.store = Store(SqliteDatabase(folder / "s"), RoundKeys(folder / "keys"), clock=lambda: self.now)
        self.writer = Writer(self.store)
        self.apps, self.sleep = self.store.register(APPS), self.store.register(SLEEP)
        self.tokens = {
            "admin": add_operator(self.store, "admin", scopes=["admin"]),
            "looks": add_operator(self.store, "looks", scopes=["read"], served=self.apps),
        }
        self._made = listening("127.0.0.1", 0, shared=False)
        self.port = self._made.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        attempts = RateLimit(most=30, seconds=60, clock=lambda: self.now)
        collecting = Collecting(store=self.store, writer=self.writer, url=url or self.origin, attempts=attempts)
        self._server: Any = web_server(application(collecting), Settings(database="", keys=""))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._made]})
        self._thread.start()

    def send(self, reports: list[bytes], served: Served | None = None) -> None:
        served = served or self.apps
        arrival = read_reports(served.study, 0, b"".join(reports))
        self.writer.add(Batch(served=served, number=0, arrival=arrival)).result()

    def fill(self) -> None:
        """Reports of three days, some sent twice, some that are none."""
        reports = made_up(APPS, 900, seed=7)
        for part in range(3):
            self.send(reports[300 * part : 300 * part + 300 - 60 * part])
            self.now += 86_400
        self.send([*reports[:40], b"x" * len(reports[0])])
        self.send(made_up(SLEEP, 20, seed=8), self.sleep)

    def end(self) -> None:
        for visitor in self.visitors:
            visitor.close()
        self._server.should_exit = True
        self._thread.join()
        self.writer.end()
        self.store.database.close()
