"""A desk on a port of this machine, over a folder with tables, for tests of its pages."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from sabun.cli._frame import run, whole
from sabun.desk.server import DeskServer
from sabun.ledger import Ledger


class Clinic:
    """A desk over a folder with a table of patients, one of volunteers, and a ledger."""

    def __init__(self, folder: Path, *, ledger: bool = True) -> None:
        self.folder = folder
        rows = [f"{20 + i % 60},{i % 100 / 2},{'FM'[i % 2]},{i % 3}" for i in range(600)]
        (folder / "patients.csv").write_text("age,stay days,sex,ward\n" + "\n".join(rows) + "\n")
        (folder / "volunteers.csv").write_text("age,stay days,sex,ward\n" + "\n".join(rows[::7]) + "\n")
        if ledger:
            Ledger.create(folder / "clinic.ledger", name="clinic", unit="patient", epsilon="20", delta="1e-5")
        self.server = DeskServer(folder, run=run, command=whole)
        self.origin = self.server.address.rstrip("/")
        self.port = int(self.origin.rpartition(":")[2])
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()

    def declare(self, table: str = "patients") -> None:
        """Declares the columns of a table, as the command line would."""
        out = str(self.folder / f"{table}.schema.json")
        columns = ["--number", "age=0:120", "--number", "stay days=0:60", "--category", "sex=F,M", "--category", "ward=0,1,2"]
        assert run(["schema", "new", out, "--overwrite", *columns]) == 0

    def ask(self, table: str = "patients") -> None:
        """Asks for the mean age in a table, as the command line would; its columns are declared."""
        parts = [f"{self.folder / table}.csv", "--schema", f"{self.folder / table}.schema.json", "--epsilon", "1"]
        book, out = str(self.folder / "clinic.ledger"), str(self.folder / f"{table}-mean.json")
        assert run(["summaries", "mean", *parts, "--column", "age", "--ledger", book, "--out", out]) == 0

    def code(self) -> str:
        """A new code, read from the file as its owner would."""
        text = self.server.entrance.renew().read_text()
        return re.findall(r"enter/([\w-]+)", text)[0]

    @property
    def book(self) -> Ledger:
        return Ledger.open(self.folder / "clinic.ledger")

    def end(self) -> None:
        self.server.stop()
        self._thread.join()
