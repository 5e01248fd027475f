"""The purse: what a call may cost is taken out before, what it cost is counted after."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from daemon.growth import budget, caller
from daemon.growth.caller import Caller
from daemon.growth.estimate import CallSize, call_size
from daemon.growth.lease import Lease, LostLease
from daemon.growth.purse import OutOfMoney, Purse
from daemon.serving.own import Completed
from daemon.store.schema import holds, leases, steps
from reef.errors import Loading, TimedOut, UpstreamFailed
from reef.feedback import Usage
from reef.recipe import Budget
from reef.runtime import Price
from tests.daemon.growth.house import House

PRICE = Price(10.0, 10.0)
CALL = CallSize(0, 5_000, 5_000)  # $0.10
MESSAGES = [{"role": "user", "content": "hello"}]


def purse(home: House, left: float = 0.25, *, limit: float = 0.25, price: Price | None = PRICE) -> Purse:
    home.write(lambda connection: budget.reserve(connection, "a", 1, left, limit=limit))
    return Purse(home.store, home.lease("a"), 1, price, limit, left, limit - left)


def cost(home: House) -> dict[str, Any]:
    return home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))


def test_it_is_asked_before_each_call(home: House) -> None:
    mine = purse(home)

    async def go() -> None:
        first = await mine.take(CALL)
        assert mine.budget() == Budget(pytest.approx(0.15), None)
        usage = await mine.settle(first, Usage(1_000, 1_000))
        assert usage.cost == pytest.approx(0.02)
        assert mine.left == pytest.approx(0.23)
        first, second = await mine.take(CALL), await mine.take(CALL)
        await mine.settle(first, Usage(5_000, 5_000))
        await mine.settle(second, Usage(5_000, 5_000))
        with pytest.raises(OutOfMoney, match="may cost"):
            await mine.take(CALL)

    asyncio.run(go())
    assert cost(home)["money"] == pytest.approx(0.22)


def test_it_draws_on_what_the_day_still_has(home: House) -> None:
    mine = purse(home, 0.1, limit=0.3)

    async def go() -> None:
        for _ in range(3):
            assert mine.budget() == Budget(pytest.approx(mine.left + mine.free), None)
            await mine.settle(await mine.take(CALL), Usage())
            assert mine.budget() == Budget(pytest.approx(0.3 - cost(home)["money"], abs=1e-9), None)
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
        first = await mine.take(CALL)
        second = asyncio.create_task(mine.take(CALL))
        await asyncio.sleep(0.05)
        assert not second.done()
        await mine.settle(first, Usage(100, 100))
        await asyncio.wait_for(second, 5)

    asyncio.run(go())


def test_without_a_price_it_counts_and_never_stops(home: House) -> None:
    mine = Purse(home.store, home.lease("a"), 1, None, 0.0)

    async def go() -> None:
        for _ in range(5):
            assert (await mine.settle(await mine.take(CALL), Usage(10, 20))).cost is None

    asyncio.run(go())
    assert mine.budget() == Budget(None, None)
    assert cost(home) == {"calls": 5, "input_tokens": 50, "output_tokens": 100, "money": None}


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
        asyncio.run(Caller(Exchange(answer, sends=False)).ask(mine, MESSAGES))  # type: ignore[arg-type]
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


def test_what_calls_hold_is_nobody_elses(home: House) -> None:
    mine = purse(home, 0.1, limit=0.15)
    asyncio.run(mine.take(CALL))
    home.change(steps, "a", state="done")
    assert not home.write(lambda connection: budget.reserve(connection, "b", 1, 0.1, limit=0.15))
    assert home.write(lambda connection: budget.reserve(connection, "b", 1, 0.05, limit=0.15))


def test_what_calls_held_when_the_daemon_died_is_spent(home: House) -> None:
    mine = purse(home)

    async def two() -> None:
        await mine.take(CALL)
        await mine.take(CALL)

    asyncio.run(two())
    assert settle_leftovers(home, mine.lease) == 0, "they may still be answered"
    assert settle_leftovers(home, home.lease("a")) == 2
    assert settle_leftovers(home, home.lease("a")) == 0
    assert cost(home) == {
        "calls": 2,
        "input_tokens": 10_000,
        "output_tokens": 10_000,
        "money": pytest.approx(0.2),
    }
    assert held(home) == 0.0


def settle_leftovers(home: House, lease: Lease) -> int:
    return int(home.write(lambda connection: budget.settle_leftovers(connection, lease)))


def test_a_start_leaves_alone_what_another_daemon_holds(home: House) -> None:
    mine = purse(home)
    asyncio.run(mine.take(CALL))
    home.write(lambda connection: budget.settle_all_leftovers(connection, "another"))
    assert held(home) == pytest.approx(0.1)
    home.change(leases, "a", expires_at="2001")
    home.write(lambda connection: budget.settle_all_leftovers(connection, "another"))
    assert (held(home), cost(home)["calls"]) == (0.0, 1)


def test_a_call_that_somebody_else_counted_is_not_counted_again(home: House) -> None:
    mine = purse(home)
    call = asyncio.run(mine.take(CALL))
    assert settle_leftovers(home, home.lease("a")) == 1
    asyncio.run(mine.settle(call, Usage(1_000, 1_000)))
    assert (cost(home)["calls"], cost(home)["money"]) == (1, pytest.approx(0.1))


def test_a_replaced_daemon_takes_no_money(home: House) -> None:
    mine = purse(home)
    home.lease("a")
    with pytest.raises(LostLease):
        asyncio.run(mine.take(CALL))
    assert held(home) == 0.0


def test_a_call_that_costs_nothing_needs_no_money(home: House) -> None:
    mine = purse(home, 0.0, limit=0.0, price=Price(0.0, 0.0))
    usage = Usage(1, 1, cost=5.0)
    home.write(lambda connection: budget.add_spending(connection, "a", 1, usage))
    asyncio.run(mine.take(CALL))


def held(home: House) -> float:
    query = select(func.coalesce(func.sum(holds.c.usd), 0.0))
    return float(home.store.read_now(lambda connection: connection.execute(query).scalar_one()))
