"""The loop of a scenario ends when it is archived, and for no other reason."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from daemon.events import EventBus
from daemon.growth import worker
from daemon.growth.worker import Growth
from reef.errors import NotFound, Unavailable


class Store:
    """Growth asks it for the lease; `troubles` come first, then somebody else has it."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.asked = 0

    async def write(self, _work: Any) -> None:
        self.asked += 1
        if self.troubles:
            raise self.troubles.pop(0)


def rooms_with(store: Store, there: set[str]) -> Any:
    def get(name: str) -> None:
        if name not in there:
            raise NotFound("it is archived")

    return SimpleNamespace(
        scenarios=SimpleNamespace(get=get),
        store=store,
        events=EventBus(),
        holder="me",
        limits=SimpleNamespace(enabled=True),
        recipe_of=lambda name: SimpleNamespace(surface="harness"),
    )


def test_something_that_is_not_found_does_not_end_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "RETRY_S", 0.0)
    there = {"s"}

    store = Store(NotFound("no record `x`"), RuntimeError("a bug"))
    rooms = rooms_with(store, there)

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


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), RuntimeError("a bug")])
def test_what_breaks_on_the_way_out_does_not_keep_it(error: Exception) -> None:
    class Slow(Store):
        async def write(self, _work: Any) -> None:
            self.asked += 1
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise error from None

    store = Slow()

    async def go() -> None:
        growth = Growth(rooms_with(store, {"s"}))
        scenario: Any = SimpleNamespace(name="s")
        growth.watch(scenario)
        while not store.asked:
            await asyncio.sleep(0.001)
        await asyncio.wait_for(growth.leave("s"), 3)
        growth.watch(scenario)
        assert len(growth._loops) == 1, "it can be grown again"
        await asyncio.wait_for(growth.stop(), 3)

    asyncio.run(go())
    assert store.asked <= 2
