"""A bound on what runs at once: nothing is lost, and each scenario has its turn."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from daemon.runtimes.queue import FairQueue, Slot


def test_each_scenario_has_its_turn() -> None:
    async def run() -> list[str]:
        queue, served = FairQueue(1), []

        async def one(scenario: str, name: str) -> None:
            slot = await queue.enter(scenario)
            served.append(name)
            await asyncio.sleep(0)
            slot.leave()

        names = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("a", "a4"), ("c", "c1"), ("b", "b2")]
        await asyncio.gather(*(one(*name) for name in names))
        assert queue.waiting == 0
        return served

    assert asyncio.run(run()) == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_who_leaves_the_queue_takes_no_slot() -> None:
    async def run() -> None:
        queue = FairQueue(1)
        slot = await queue.enter("a")
        gone, stays = (asyncio.ensure_future(queue.enter("a")) for _ in range(2))
        await asyncio.sleep(0)
        assert queue.waiting == 2
        gone.cancel()
        await asyncio.sleep(0)
        assert queue.waiting == 1
        slot.leave()
        slot.leave()
        (await stays).leave()
        assert queue.waiting == 0
        await queue.enter("b")

    asyncio.run(run())


def test_one_that_leaves_just_as_its_turn_comes_passes_it_on() -> None:
    async def run() -> None:
        queue = FairQueue(1)
        slot = await queue.enter("a")
        gone, stays = (asyncio.ensure_future(queue.enter("a")) for _ in range(2))
        await asyncio.sleep(0)
        slot.leave()
        gone.cancel()
        assert isinstance(await asyncio.wait_for(stays, 1), Slot)

    asyncio.run(run())


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 3)), max_size=25),
)
def test_never_more_than_the_bound_and_everyone_is_served(
    slots: int, requests: list[tuple[str, bool, int]]
) -> None:
    async def run() -> None:
        queue, running, served = FairQueue(slots), 0, Counter[str]()

        async def one(scenario: str, ticks: int) -> None:
            nonlocal running
            slot = await queue.enter(scenario)
            try:
                running += 1
                assert running <= slots
                for _ in range(ticks):
                    await asyncio.sleep(0)
                served[scenario] += 1
            finally:
                running -= 1
                slot.leave()

        tasks = [asyncio.ensure_future(one(scenario, ticks)) for scenario, _, ticks in requests]
        await asyncio.sleep(0)
        for task, (_, leaves, _) in zip(tasks, requests, strict=True):
            if leaves:
                task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert queue.waiting == 0
        assert all(served[scenario] for scenario, leaves, _ in requests if not leaves)
        for _ in range(slots):
            await asyncio.wait_for(queue.enter("z"), 1)

    asyncio.run(run())
