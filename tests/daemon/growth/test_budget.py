"""What is kept for open steps counts against the day; what is over is free again by itself."""

from typing import Any

import pytest

from daemon.growth import budget
from daemon.growth.steps import OPEN_STATES
from daemon.store.schema import scenarios, spending, steps
from reef.feedback import Usage
from tests.daemon.growth.house import House

LIMIT = 1.0


def reserve(home: House, name: str, usd: float) -> bool:
    return bool(home.write(lambda connection: budget.reserve(connection, name, 1, usd, limit=LIMIT)))


def spend(home: House, name: str, usd: float) -> None:
    usage = Usage(100, 10, cost=usd)
    home.write(lambda connection: budget.add_spending(connection, name, 1, usage))


def free(home: House) -> Any:
    return pytest.approx(home.store.read_now(lambda connection: budget.free_today(connection, LIMIT)))


def test_two_steps_cannot_both_have_the_same_dollar(home: House) -> None:
    assert reserve(home, "a", 0.7)
    assert free(home) == 0.3
    assert not reserve(home, "b", 0.7)
    assert reserve(home, "b", 0.3)
    assert free(home) == 0.0


def test_what_is_spent_counts_once(home: House) -> None:
    reserve(home, "a", 0.7)
    spend(home, "a", 0.5)
    assert free(home) == 0.3
    spend(home, "a", 0.4)
    assert free(home) == 0.1


@pytest.mark.parametrize("state", [*OPEN_STATES, "waiting", "done"])
def test_only_open_steps_keep_money(home: House, state: str) -> None:
    reserve(home, "a", 0.7)
    home.change(steps, "a", state=state)
    assert free(home) == (0.3 if state in OPEN_STATES else 1.0)


def test_what_nobody_grows_keeps_no_money(home: House) -> None:
    assert reserve(home, "a", 0.7)
    spend(home, "a", 0.2)
    assert reserve(home, "b", 0.1)
    home.write(lambda connection: budget.give_back(connection, ["a", "nobody"]))
    assert free(home) == 0.7
    cost = home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))
    assert cost["money"] == 0.2, "its price was known"
    assert reserve(home, "a", 0.7), "it is asked again, should it grow again"
    assert free(home) == 0.0


def test_an_archived_scenario_keeps_no_money(home: House) -> None:
    reserve(home, "a", 0.7)
    home.change(scenarios, "a", archived_at="now")
    assert free(home) == 1.0


def test_another_day_is_another_budget(home: House) -> None:
    spend(home, "a", 0.9)
    home.change(spending, "a", day="2001-01-01")
    assert free(home) == 1.0
    assert reserve(home, "a", 0.4)
    left = home.store.read_now(lambda connection: budget.left_of(connection, "a", 1))
    assert left == pytest.approx(0.4), "what it took on the other day is not taken off"


def test_a_person_may_allow_more_than_the_day_has(home: House) -> None:
    spend(home, "a", 0.9)
    home.write(lambda connection: budget.allow(connection, "a", 1, 0.5))
    assert home.store.read_now(lambda connection: budget.left_of(connection, "a", 1)) == pytest.approx(0.5)
    assert free(home) == -0.4


def test_the_cost_of_a_step(home: House) -> None:
    spend(home, "a", 0.0)
    spend(home, "a", 0.0)
    cost = home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))
    assert cost == {"calls": 2, "input_tokens": 200, "output_tokens": 20, "money": None}
    spend(home, "a", 0.5)
    reserve(home, "a", 0.1)
    assert home.store.read_now(lambda connection: budget.cost_of(connection, "a", 1))["money"] == 0.5


def test_nothing_is_free_on_a_day_that_is_spent(home: House) -> None:
    spend(home, "b", 1.5)
    assert free(home) == -0.5
    assert reserve(home, "a", 0.0)
    assert not reserve(home, "a", 0.01)
