"""Bodies that are being read: bounded together, and the one that has been read for longest makes room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sabun.service.bodies import Intake
from sabun.service.problems import Problem


class Sender:
    """A request whose body comes in pieces, each when it is let through."""

    def __init__(self, *sizes: int) -> None:
        self.headers: dict[str, str] = {}
        self.state = SimpleNamespace()
        self.gates = [asyncio.Event() for _ in sizes]
        self.just_before: Callable[[], object] = lambda: None
        self._sizes = sizes

    async def stream(self) -> AsyncIterator[bytes]:
        for size, gate in zip(self._sizes, self.gates, strict=True):
            await gate.wait()
            self.just_before()
            yield b"x" * size

    def let(self, pieces: int) -> None:
        for gate in self.gates[:pieces]:
            gate.set()


async def begun(intake: Intake, sender: Sender, pieces: int) -> Any:
    sender.let(pieces)
    reading = asyncio.create_task(intake.body(sender))  # type: ignore[arg-type]
    for _ in range(5):
        await asyncio.sleep(0)
    return reading


def outcome(found: object) -> object:
    return found.code if isinstance(found, Problem) else len(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("at_once", [False, True], ids=["it stalls", "its last piece comes at the same moment"])
def test_what_has_been_read_for_longest_makes_room_and_is_never_taken_for_whole(at_once: bool) -> None:
    async def scene() -> list[object]:
        intake = Intake(most_together=100)
        older, old, new = Sender(40, 5), Sender(50, 5), Sender(60)
        first, second = await begun(intake, older, 1), await begun(intake, old, 1)
        if at_once:
            new.just_before = lambda: older.let(2)
        third = await begun(intake, new, 1)
        old.let(2)
        found = await asyncio.gather(first, second, third, return_exceptions=True)
        whole = await (await begun(intake, Sender(100), 1))
        return [*map(outcome, found), len(whole)]

    # 40 + 50 + 60 > 100: both older ones are in the way of the new one; afterwards all of the room is free again.
    assert asyncio.run(scene()) == ["busy", "busy", 60, 100]


def test_one_body_alone_that_does_not_fit_is_sent_away() -> None:
    async def scene() -> object:
        return outcome(
            (await asyncio.gather(await begun(Intake(most_together=100), Sender(101), 1), return_exceptions=True))[0]
        )

    assert asyncio.run(scene()) == "busy"


def test_a_body_that_ends_in_time_is_left_alone() -> None:
    async def scene() -> list[object]:
        intake = Intake(most_together=100)
        senders = [Sender(30, 10) for _ in range(2)]
        reading = [await begun(intake, sender, 1) for sender in senders]
        for sender in senders:
            sender.let(2)
        return [len(body) for body in await asyncio.gather(*reading)]

    assert asyncio.run(scene()) == [40, 40]
