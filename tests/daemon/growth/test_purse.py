"""The purse: what a call may cost is taken out before, what it cost is counted after."""

import asyncio

import pytest

from daemon.growth import budget
from daemon.growth.lease import Lease, LostLease
from daemon.growth.purse import OutOfMoney, Purse
from daemon.store.schema import leases, steps
from reef.feedback import Usage
from reef.recipe import Budget
from reef.runtime import Price
from tests.daemon.growth.house import House
from tests.daemon.growth.paying import CALL, cost, held, purse


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
