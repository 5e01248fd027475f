"""A call of growth: paid for what it may have cost, however it ends."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from daemon.growth import caller
from daemon.growth.caller import Caller
from daemon.growth.estimate import call_size
from daemon.growth.purse import OutOfMoney
from daemon.serving.own import Completed
from reef.errors import Loading, TimedOut, UpstreamFailed
from reef.feedback import Usage
from tests.daemon.growth.house import House
from tests.daemon.growth.paying import CALL, PRICE, cost, held, purse

MESSAGES = [{"role": "user", "content": "hello"}]


class Exchange:
    def __init__(self, answer: Callable[[], Awaitable[Completed]], *, sends: bool = True) -> None:
        self.answer, self.sends = answer, sends
        self.reached = asyncio.Event()

    async def complete(self, messages: Any, *, on_sent: Callable[[], None], **_: Any) -> Completed:
        if self.sends:
            on_sent()
        self.reached.set()
        return await self.answer()


def caller_of(exchange: Any) -> Caller:
    """A caller of a stand-in that has `complete` and nothing else of an exchange."""
    return Caller(exchange)


async def fail(error: Exception) -> Completed:
    raise error


async def never() -> Completed:
    await asyncio.sleep(60)
    raise AssertionError


MOST = call_size(MESSAGES, max_tokens=512).most_usd(PRICE)


@pytest.mark.parametrize(
    ("answer", "sends", "charged"),
    [
        (lambda: fail(UpstreamFailed("refused", status=503)), True, 0.0),
        (lambda: fail(UpstreamFailed("no such host", sent=False)), False, 0.0),
        (lambda: fail(TimedOut("not reached", sent=False)), False, 0.0),
        (lambda: fail(UpstreamFailed("broke off")), True, MOST),
        (lambda: fail(TimedOut("no answer")), True, MOST),
        (never, True, MOST),
    ],
    ids=[
        "error status",
        "no host",
        "not reached",
        "broke off",
        "timed out",
        "too slow",
    ],
)
def test_a_failed_call_costs_what_it_may_have_cost(
    home: House, answer: Callable[[], Awaitable[Completed]], sends: bool, charged: float
) -> None:
    mine = purse(home)
    caller = caller_of(Exchange(answer, sends=sends))
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
        asyncio.run(caller_of(Exchange(answer)).ask(purse(home), MESSAGES))
    assert cost(home)["calls"] == 1


def test_a_model_that_is_never_loaded_costs_nothing(home: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "LOADING_S", 0.0)
    mine = purse(home)

    async def answer() -> Completed:
        return await fail(Loading("the model is loading", retry_after_s=0))

    with pytest.raises(Loading):
        asyncio.run(Caller(Exchange(answer, sends=False)).ask(mine, MESSAGES))
    assert cost(home)["money"] == 0
    assert mine.left == pytest.approx(0.25)


@pytest.mark.parametrize(("sends", "charged"), [(True, MOST), (False, 0.0)])
def test_a_cancelled_call_is_counted(home: House, sends: bool, charged: float) -> None:
    mine = purse(home)

    async def go() -> None:
        exchange = Exchange(never, sends=sends)
        caller = caller_of(exchange)
        task = asyncio.create_task(caller.ask(mine, MESSAGES))
        await exchange.reached.wait()
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
    completion, _ = asyncio.run(caller_of(Exchange(answer)).ask(mine, MESSAGES))
    assert completion.usage == replace(Usage(100, 10), cost=pytest.approx(0.0011))


class Tries:
    """An upstream that is tried again: `steps` are what each try does before the last one answers."""

    def __init__(self, *broken: bool) -> None:
        self.broken = broken

    async def complete(self, messages: Any, *, on_sent: Any, on_again: Any, **_: Any) -> Completed:
        for may_have_cost in self.broken:
            on_sent()
            await on_again(may_have_cost)
        on_sent()
        return Completed("hi", Usage(100, 10), "r", "stop")


def test_each_try_that_may_have_been_answered_is_paid_for(home: House) -> None:
    mine = purse(home)
    asyncio.run(caller_of(Tries(True, False, True)).ask(mine, MESSAGES))
    assert cost(home)["calls"] == 3, "one was answered with an error"
    assert cost(home)["money"] == pytest.approx(2 * MOST + 0.0011)
    assert mine.left == pytest.approx(0.25 - cost(home)["money"])


def test_another_try_is_not_sent_without_the_money_for_it(home: House) -> None:
    mine = purse(home, 1.5 * MOST, limit=1.5 * MOST)
    with pytest.raises(OutOfMoney):
        asyncio.run(caller_of(Tries(True)).ask(mine, MESSAGES))
    assert cost(home)["money"] == pytest.approx(MOST)


def test_the_time_of_a_call_runs_from_when_it_leaves(home: House) -> None:
    class Queued:
        async def complete(self, messages: Any, *, on_sent: Any, on_again: Any, **_: Any) -> Completed:
            await asyncio.sleep(0.3)
            on_sent()
            await on_again(False)
            await asyncio.sleep(0.3)
            on_sent()
            return Completed("hi", Usage(100, 10), "r", "stop")

    mine = purse(home)
    caller = caller_of(Queued())
    assert asyncio.run(caller.ask(mine, MESSAGES, timeout_s=0.2))[0].text == "hi"


@contextmanager
def busy_writer(home: House) -> Iterator[threading.Event]:
    """The writer does one job until the event is set, and takes up no other."""
    started, go = threading.Event(), threading.Event()
    home.store.writer.submit(lambda _: (started.set(), go.wait(10)))
    assert started.wait(10)
    try:
        yield go
    finally:
        go.set()


def waiting_writes(home: House, count: int) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        while home.store.writer.waiting < count:
            await asyncio.sleep(0.001)

    return wait


def test_a_call_is_counted_though_its_task_is_cancelled_meanwhile(home: House) -> None:
    mine = purse(home)

    async def go() -> None:
        call = await mine.take(CALL)
        with busy_writer(home) as free:
            task = asyncio.create_task(mine.settle(call, Usage(1_000, 1_000)))
            await waiting_writes(home, 1)()
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done(), "it waits for the commit"
            free.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(go())
    assert cost(home)["money"] == pytest.approx(0.02)
    assert held(home) == 0.0


def test_a_call_that_is_cancelled_before_it_is_asked_holds_nothing(home: House) -> None:
    mine = purse(home)

    async def go() -> None:
        with busy_writer(home) as free:
            task = asyncio.create_task(mine.take(CALL))
            await waiting_writes(home, 1)()
            task.cancel()
            await asyncio.sleep(0)
            free.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        await mine.settle(await mine.take(CALL), Usage(1_000, 1_000))

    asyncio.run(go())
    assert held(home) == 0.0
    assert cost(home)["calls"] == 1


def test_a_store_that_fails_takes_no_cancellation_away(home: House) -> None:
    mine = purse(home)
    exchange = Exchange(never)

    async def go() -> None:
        task = asyncio.create_task(caller_of(exchange).ask(mine, MESSAGES))
        await exchange.reached.wait()
        home.store.writer.close()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert held(home) == pytest.approx(MOST), "it stays held, and counts at the next start"
