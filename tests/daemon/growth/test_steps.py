"""Steps as rows: begun with their batch in one transaction, carried on once, told without counting twice."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, insert, select

from daemon.growth import budget, steps
from daemon.growth.lease import Lease, LostLease, take
from daemon.store.schema import episodes, scenarios
from recipes.harness_evolve import HarnessEvolve
from recipes.harness_evolve.options import EvolveOptions
from reef.errors import NotFound
from reef.feedback import Usage
from tests.daemon.records.desk import RECIPE, Desk

T = TypeVar("T")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk.at(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def lease(desk: Desk) -> Lease:
    taken = write(desk, lambda connection: take(connection, "city", "me"))
    assert taken is not None
    return taken


def write(desk: Desk, work: Callable[[Connection], T]) -> T:
    return desk.run(desk.store.write(work))


def begin(desk: Desk, lease: Lease, size: int = 1) -> int | None:
    begun = write(
        desk,
        lambda c: steps.begin(c, lease, recipe=RECIPE, processor="harness_evolve", batch_size=size),
    )
    return begun and begun[0]


def get(desk: Desk, step: int) -> Any:
    return desk.store.read_now(lambda connection: steps.get(connection, "city", step))


def finish(desk: Desk, lease: Lease, step: int, outcome: str = "reject", **values: Any) -> None:
    values = {"proposer": "feedback", "mutations": [], **values}
    write(desk, lambda c: steps.save(c, lease, step, state="done", outcome=outcome, **values))


def test_a_step_begins_with_a_full_batch(desk: Desk, lease: Lease) -> None:
    assert begin(desk, lease, 2) is None
    first = desk.lesson(desk.record())
    assert begin(desk, lease, 2) is None
    second, third = (desk.lesson(desk.record()) for _ in range(2))
    assert begin(desk, lease, 2) == 1
    row = get(desk, 1)
    assert (row["state"], row["epoch"], row["processor"]) == ("queued", lease.epoch, "harness_evolve")
    assert (row["base_release_id"], row["base_content_id"]) == ("r" * 40, "c" * 40)
    (listed,) = desk.store.read_now(lambda connection: steps.listing(connection, "city"))
    assert listed["reports"] == sorted([first, second])
    assert begin(desk, lease, 2) is None
    assert [report["state"] for report in desk.listed(report_id=third)] == ["eligible"]


def test_a_failed_transaction_consumes_nothing(desk: Desk, lease: Lease) -> None:
    report = desk.lesson(desk.record())

    def dies(connection: Connection) -> None:
        steps.begin(connection, lease, recipe=RECIPE, processor="x", batch_size=1)
        raise RuntimeError("the end")

    with pytest.raises(RuntimeError):
        write(desk, dies)
    assert desk.verdict(report)[0] == "eligible"
    next_step = desk.store.read_now(lambda c: c.execute(select(scenarios.c.next_step)).scalars().first())
    assert next_step == 1
    assert begin(desk, lease) == 1


def test_a_replaced_daemon_writes_nothing(desk: Desk, lease: Lease) -> None:
    desk.lesson(desk.record())
    step = begin(desk, lease)
    assert step == 1
    write(desk, lambda connection: take(connection, "city", "me"))
    desk.lesson(desk.record())
    with pytest.raises(LostLease):
        begin(desk, lease)
    with pytest.raises(LostLease):
        write(desk, lambda c: steps.save(c, lease, 1, state="done"))
    assert get(desk, 1)["state"] == "queued"


def test_unfinished_steps_are_those_to_go_on_with(desk: Desk, lease: Lease) -> None:
    for _ in range(7):
        desk.lesson(desk.record())
        begin(desk, lease)
    states = ("queued", "proposing", "evaluating", "deciding", "committing", "waiting", "done")
    for step, state in enumerate(states, 1):
        write(desk, lambda c, step=step, state=state: steps.save(c, lease, step, state=state))
    assert desk.store.read_now(lambda c: steps.unfinished(c, "city")) == [1, 2, 3, 4, 5]
    assert [row["step"] for row in desk.store.read_now(lambda c: steps.waiting(c))] == [6]
    assert [past.step for past in desk.store.read_now(lambda c: steps.history(c, "city"))] == [7]


class TestCarryingOn:
    PROPOSERS = ("feedback", "demonstrations", "reflect")

    def carry_on(self, desk: Desk, lease: Lease, step: int) -> int | None:
        row = get(desk, step)
        return write(desk, lambda c: steps.carry_on(c, lease, row, self.left))

    def left(self, tried: Collection[str]) -> list[str]:
        return [name for name in self.PROPOSERS if name not in tried]

    def test_the_batch_goes_through_every_proposer_once(self, desk: Desk, lease: Lease) -> None:
        report = desk.lesson(desk.record())
        step = begin(desk, lease)
        assert step is not None
        seen = []
        for proposer in self.PROPOSERS:
            row = get(desk, step)
            tried = desk.store.read_now(lambda c, row=row: steps.tried_proposers(c, row))
            assert tried == frozenset(seen)
            seen.append(proposer)
            finish(desk, lease, step, proposer=proposer)
            following = self.carry_on(desk, lease, step)
            if proposer != self.PROPOSERS[-1]:
                assert following is not None
                assert get(desk, following)["batch"] == row["batch"]
                step = following
        assert following is None
        listed = desk.store.read_now(lambda c: steps.listing(c, "city"))
        assert [row["reports"] for row in listed] == [[], [], [report]], "counted once, by the first"

    def test_it_is_safe_to_repeat(self, desk: Desk, lease: Lease) -> None:
        desk.lesson(desk.record())
        begin(desk, lease)
        finish(desk, lease, 1)
        assert self.carry_on(desk, lease, 1) == self.carry_on(desk, lease, 1) == 2

    def test_the_recipe_says_who_is_left(self, desk: Desk, lease: Lease) -> None:
        """A proposer that is asked in order had the batch, though it brought nothing then."""
        desk.lesson(desk.record())
        begin(desk, lease)
        finish(desk, lease, 1, proposer="reflect")
        recipe = HarnessEvolve(EvolveOptions(proposers=self.PROPOSERS))
        assert write(desk, lambda c: steps.carry_on(c, lease, get(desk, 1), recipe.proposers_left)) is None
        finish(desk, lease, 1, proposer="demonstrations")
        assert write(desk, lambda c: steps.carry_on(c, lease, get(desk, 1), recipe.proposers_left)) == 2

    def test_a_step_without_a_proposal_ends_it(self, desk: Desk, lease: Lease) -> None:
        desk.lesson(desk.record())
        begin(desk, lease)
        finish(desk, lease, 1, proposer=None)
        assert self.carry_on(desk, lease, 1) is None


def test_a_step_tells_its_batch_and_episodes(desk: Desk, lease: Lease) -> None:
    receipt = desk.record()
    report = desk.lesson(receipt)
    begin(desk, lease)
    mutation = {"op": "create", "id": "a", "options": {"name": "rules", "config": {"text": "x"}}}
    finish(desk, lease, 1, mutations=[mutation], metrics={"wins": 5}, refused=None)
    row = {
        "scenario": "city",
        "step": 1,
        "task": "t",
        "side": "candidate",
        "repeat": 0,
        "split": "gate",
        "status": "ok",
        "started_at": "2026-01-01T00:00:00.000Z",
        "input_tokens": 3,
    }
    write(desk, lambda c: c.execute(insert(episodes), row))
    told = desk.store.read_now(lambda c: steps.detail(c, "city", 1))
    assert told["batch"] == [{"report": report, "receipts": [receipt]}]
    assert told["mutations"] == [mutation]
    assert told["metrics"] == {"wins": 5}
    (episode,) = told["episodes"]
    assert (episode["task"], episode["usage"]["input_tokens"]) == ("t", 3)
    assert steps.mutations_of(get(desk, 1))[0].to_wire() == mutation
    write(desk, lambda c: steps.forget_episodes(c, "city", 1))
    assert desk.store.read_now(lambda c: steps.detail(c, "city", 1))["episodes"] == []


def test_an_unknown_step_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no growth step 9"):
        get(desk, 9)


def test_spending_adds_up_over_scenarios(desk: Desk) -> None:
    for scenario, cost in (("city", 0.25), ("city", None), ("other", 0.5)):
        write(desk, lambda c, s=scenario, x=cost: budget.add_spending(c, s, 1, Usage(10, 5, None, x)))
    assert desk.store.read_now(budget.spent_today) == 0.75
    rows = desk.store.read_now(lambda c: list(c.execute(select(budget.spending)).mappings()))
    assert {row["scenario"]: (row["calls"], row["input_tokens"]) for row in rows} == {
        "city": (2, 20),
        "other": (1, 10),
    }
