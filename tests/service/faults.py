"""Collectors that are killed while clients upload and retry; afterwards the tally is that of the unique ids, exactly.

    python tests/service/faults.py [--kills 20] [--postgres]

`make test` kills a few; this command as many as it is told.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))

from sabun.service.served import require_equal  # noqa: E402
from sabun.service.settings import Settings, opened_store  # noqa: E402
from service.devices import KV3, Running, Uploader, made_up, running  # noqa: E402

BATCH = 100


def killed(
    settings: Settings,
    *,
    kills: int,
    shards: tuple[int, ...] = (0,),
    clients: int = 3,
    break_it: Callable[[Running, int], None],
) -> dict[str, int]:
    """Clients upload and retry while something breaks; returns what was seen, having held it to what must be."""
    with running(settings, shards) as server:
        going, failed = True, list[BaseException]()
        uploaders = [Uploader(server.port, KV3) for _ in range(clients)]
        sent: list[list[bytes]] = [[] for _ in range(clients)]

        def upload(place: int) -> None:
            number = 0
            try:
                while going or number < 3:
                    reports = made_up(KV3, BATCH, seed=1_000_000 * (place + 1) + number)
                    number += 1
                    uploaders[place].send(reports)
                    sent[place] += reports
                    if number % 4 == 0:  # a client that forgot it had an answer
                        uploaders[place].send(reports)
            except BaseException as error:
                failed.append(error)
            finally:
                uploaders[place].close()

        threads = [threading.Thread(target=upload, args=(place,)) for place in range(clients)]
        for thread in threads:
            thread.start()
        for number in range(kills):
            time.sleep(0.25)
            break_it(server, number)
        going = False
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
    everything = [report for reports in sent for report in reports]
    expected = KV3.tally()
    expected.add_reports(everything)
    store = opened_store(settings.database, settings.keys)
    [served] = store.all_served()
    assert store.tally(served, 0) == expected, "the tally must be that of the unique ids"
    require_equal(store.counters(served, 0), store.recount(served, 0))
    store.database.close()
    answered = [taken for uploader in uploaders for taken in uploader.taken]
    return {
        "reports": len(everything),
        "kills": kills,
        "retries": sum(uploader.retries for uploader in uploaders),
        "lost_answers": sum(taken["duplicate"] for taken in answered)
        - sum(len(reports) // BATCH // 4 * BATCH for reports in sent),
    }


def kill_and_start(server: Running, number: int) -> None:
    server.kill(server.shards[number % len(server.shards)])
    server.start()


def settings_in(folder: Path, database: str | None = None) -> Settings:
    place = database or str(folder / "study.reports")
    return Settings(database=place, keys=str(folder / "keys"), studies=((KV3.to_json(), False, b""),))


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills collectors under load; the count must stay exact.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--postgres", action="store_true", help="two processes on PostgreSQL instead of one on SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not options.postgres:
            print(killed(settings_in(Path(folder)), kills=options.kills, break_it=kill_and_start))
            return
        from ledger.servers import Server

        server = Server()
        try:
            settings = settings_in(Path(folder), server.address(ledger=None))
            print(killed(settings, kills=options.kills, shards=(0, 1), break_it=kill_and_start))
        finally:
            server.remove()


if __name__ == "__main__":
    main()
