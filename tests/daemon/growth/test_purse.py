"""The purse: what a call may cost is taken out before, what it cost is counted after."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from daemon.growth import budget
from daemon.growth.caller import Caller
from daemon.growth.estimate import CallSize, call_size
from daemon.growth.purse import OutOfMoney, Purse
from daemon.serving.own import Completed
from reef.errors import Loading, TimedOut, UpstreamFailed
from reef.feedback import Usage
from reef.recipe import Budget
from reef.runtime import Price
from tests.daemon.growth.house import House

PRICE = Price(10.0, 10.0)
CALL = CallSize(5_000, 5_000)  # $0.10
MESSAGES = [{"role": "user", "content": "hello"}]


def purse(home: House, left: float = 0.25, *, limit: float = 0.25, price: Price | None = PRICE) -> Purse:
    home.write(lambda connection: budget.reserve(connection, "a", 1, left, limit=limit))
    return Purse(home.store, "a", 1, price, limit, left, limit - left)


def cost(home: House) -> dict[str, Any]:
    return home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))


def test_it_is_asked_before_each_call(home: House) -> None:
    mine = purse(home)

    async def go() -> None:
        await mine.take(CALL)
        assert mine.budget() == Budget(pytest.approx(0.15), None)
        usage = await mine.settle(CALL, Usage(1_000, 1_000))
        assert usage.cost == pytest.approx(0.02)
        assert mine.left == pytest.approx(0.23)
        await mine.take(CALL)
        await mine.take(CALL)
        await mine.settle(CALL, Usage(5_000, 5_000))
        await mine.settle(CALL, Usage(5_000, 5_000))
        with pytest.raises(OutOfMoney, match="may cost"):
            await mine.take(CALL)

    asyncio.run(go())
    assert cost(home)["money"] == pytest.approx(0.22)


def test_it_draws_on_what_the_day_still_has(home: House) -> None:
    mine = purse(home, 0.1, limit=0.3)

    async def go() -> None:
        for _ in range(3):
            await mine.take(CALL)
            await mine.settle(CALL, Usage())
        with pytest.raises(OutOfMoney):
            await mine.take(CALL)

    asyncio.run(go())
    assert cost(home) == {
        "calls": 3,
        "input_tokens": 15_000,
        "output_tokens": 15_000,
        "money": pytest.approx(0.3),
    }


def test_a_call_waits_for_what_running_ones_may_give_back(home: House) -> None:
    mine = purse(home, 0.15, limit=0.15)

    async def go() -> None:
        await mine.take(CALL)
        second = asyncio.create_task(mine.take(CALL))
        await asyncio.sleep(0.05)
        assert not second.done()
        await mine.settle(CALL, Usage(100, 100))
        await asyncio.wait_for(second, 5)

    asyncio.run(go())


def test_without_a_price_it_counts_and_never_stops(home: House) -> None:
    mine = Purse(home.store, "a", 1, None, 0.0)

    async def go() -> None:
        for _ in range(5):
            await mine.take(CALL)
            assert (await mine.settle(CALL, Usage(10, 20))).cost is None

    asyncio.run(go())
    assert mine.budget() == Budget(None, None)
    assert cost(home) == {"calls": 5, "input_tokens": 50, "output_tokens": 100, "money": None}


class Exchange:
    def __init__(self, answer: Callable[[], Awaitable[Completed]], *, sends: bool = True) -> None:
        self.answer, self.sends = answer, sends

    async def complete(self, messages: Any, *, on_sent: Callable[[], None], **_: Any) -> Completed:
        if self.sends:
            on_sent()
        return await self.answer()


async def fail(error: Exception) -> Completed:
    raise error


async def never() -> Completed:
    await asyncio.sleep(60)
    raise AssertionError


MOST = call_size(MESSAGES, max_tokens=512).usd(PRICE)


@pytest.mark.parametrize(
    ("answer", "sends", "charged"),
    [
        (lambda: fail(UpstreamFailed("refused", status=503)), True, 0.0),
        (lambda: fail(UpstreamFailed("no such host", sent=False)), False, 0.0),
        (lambda: fail(TimedOut("not reached", sent=False)), False, 0.0),
        (lambda: fail(UpstreamFailed("broke off")), True, MOST),
        (lambda: fail(UpstreamFailed("a try broke off, the next found no host", sent=False)), True, MOST),
        (lambda: fail(TimedOut("no answer")), True, MOST),
        (never, True, MOST),
        (never, False, 0.0),
    ],
    ids=[
        "error status",
        "no host",
        "not reached",
        "broke off",
        "broke off once",
        "timed out",
        "too slow",
        "still queued",
    ],
)
def test_a_failed_call_costs_what_it_may_have_cost(
    home: House, answer: Callable[[], Awaitable[Completed]], sends: bool, charged: float
) -> None:
    mine = purse(home)
    caller = Caller(Exchange(answer, sends=sends))  # type: ignore[arg-type]
    with pytest.raises((UpstreamFailed, TimedOut)):
        asyncio.run(caller.ask(mine, MESSAGES, timeout_s=0.05))
    assert cost(home)["calls"] == 1
    assert cost(home)["money"] == pytest.approx(charged)
    assert mine.left == pytest.approx(0.25 - charged)


def test_a_call_waits_while_the_model_is_loaded(home: House) -> None:
    """An idle engine is started by the first call of a step, which must not be the step's end."""
    told = [Loading("the model is loading", retry_after_s=0), Loading("still", retry_after_s=0)]

    async def answer() -> Completed:
        return await fail(told.pop() if told else UpstreamFailed("it was asked", status=503))

    with pytest.raises(UpstreamFailed, match="it was asked"):
        asyncio.run(Caller(Exchange(answer)).ask(purse(home), MESSAGES))  # type: ignore[arg-type]
    assert cost(home)["calls"] == 1


@pytest.mark.parametrize(("sends", "charged"), [(True, MOST), (False, 0.0)])
def test_a_cancelled_call_is_counted(home: House, sends: bool, charged: float) -> None:
    mine = purse(home)

    async def go() -> None:
        caller = Caller(Exchange(never, sends=sends))  # type: ignore[arg-type]
        task = asyncio.create_task(caller.ask(mine, MESSAGES))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert cost(home)["calls"] == 1
    assert cost(home)["money"] == pytest.approx(charged)


def test_an_answer_carries_what_it_was_charged(home: House) -> None:
    async def answer() -> Completed:
        return Completed("hi", Usage(100, 10, cost=None), "r", "stop")

    mine = purse(home)
    completion, _ = asyncio.run(Caller(Exchange(answer)).ask(mine, MESSAGES))  # type: ignore[arg-type]
    assert completion.usage == replace(Usage(100, 10), cost=pytest.approx(0.0011))
