"""The loop of a scenario ends when it is archived, and for no other reason."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from daemon.events import EventBus
from daemon.growth import worker
from daemon.growth.worker import Growth
from reef.errors import NotFound


class Store:
    """Growth asks it for the lease; `troubles` come first, then somebody else has it."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.asked = 0

    async def write(self, _work: Any) -> None:
        self.asked += 1
        if self.troubles:
            raise self.troubles.pop(0)


def test_something_that_is_not_found_does_not_end_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "RETRY_S", 0.0)
    there = {"s"}

    def get(name: str) -> None:
        if name not in there:
            raise NotFound("it is archived")

    store = Store(NotFound("no record `x`"), RuntimeError("a bug"))
    rooms: Any = SimpleNamespace(
        scenarios=SimpleNamespace(get=get),
        store=store,
        events=EventBus(),
        holder="me",
        limits=SimpleNamespace(enabled=True),
        recipe_of=lambda name: SimpleNamespace(surface="harness"),
    )

    async def go() -> None:
        growth = Growth(rooms)
        scenario: Any = SimpleNamespace(name="s")
        growth.watch(scenario)
        (loop,) = growth._loops.values()
        for count in (1, 2, 3):
            growth.poke("s")
            while store.asked < count:
                await asyncio.sleep(0.001)
        assert not loop.done()
        there.clear()
        growth.poke("s")
        await asyncio.wait_for(loop, 5)
        assert store.asked == 3

    asyncio.run(asyncio.wait_for(go(), 10))
