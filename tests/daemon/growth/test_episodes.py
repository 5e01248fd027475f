"""Kept episodes count only while they are runs of what is compared now."""

import asyncio
from dataclasses import replace

import pytest

from daemon.evaluation.scores import EpisodeKey, Scored
from daemon.growth.episodes import EpisodeRows, run_key
from reef.errors import UpstreamFailed
from reef.tasks import Episode, Side, Task
from tests.daemon.growth.house import House

TASK = Task("t", ({"role": "user", "content": "q"},), "exact", {"expected": "yes"}, split="gate")
SIDES: tuple[Side, Side] = ("candidate", "current")


def rows(
    home: House,
    task: Task = TASK,
    *,
    scenario: str = "a",
    candidate: str = "c1",
    current: str = "c0",
    answerer: str = "engine:m",
    temperature: float = 0.0,
    reuse: bool = False,
) -> EpisodeRows:
    contents = {"candidate": candidate, "current": current}
    keys: dict[tuple[str, Side], bytes] = {
        (task.id, side): run_key(task, contents[side], answerer, max_tokens=50, temperature=temperature)
        for side in SIDES
    }
    return EpisodeRows(home.store, home.lease(scenario), 1, keys, reuse=reuse)


def run_both(log: EpisodeRows, task: Task = TASK) -> None:
    async def go() -> None:
        for side in SIDES:
            await log.save(Scored(task.id, side, 0, 1.0), Episode(task, side, 0, "yes"), retried=False)

    asyncio.run(go())


def found(log: EpisodeRows) -> dict[EpisodeKey, Scored]:
    return asyncio.run(log.finished())


def test_a_resumed_step_keeps_what_it_measured(home: House) -> None:
    run_both(rows(home))
    assert set(found(rows(home))) == {("t", "candidate", 0), ("t", "current", 0)}


@pytest.mark.parametrize(
    "edited",
    [
        replace(TASK, messages=({"role": "user", "content": "another"},)),
        replace(TASK, arguments={"expected": "no"}),
        replace(TASK, evaluator="contains"),
        replace(TASK, max_tokens=7),
        replace(TASK, id="renamed"),
    ],
    ids=["prompt", "expected", "evaluator", "max_tokens", "id"],
)
def test_an_edited_task_is_measured_anew(home: House, edited: Task) -> None:
    run_both(rows(home))
    log = rows(home, edited)
    assert found(log) == {}
    run_both(log, edited)
    assert len(found(log)) == 2


def test_a_side_that_serves_something_else_is_measured_anew(home: House) -> None:
    run_both(rows(home))
    assert set(found(rows(home, current="c2"))) == {("t", "candidate", 0)}


@pytest.mark.parametrize("change", [{"answerer": "engine:other"}, {"temperature": 1.0}])
def test_another_model_is_another_run(home: House, change: dict[str, object]) -> None:
    run_both(rows(home))
    assert found(rows(home, **change)) == {}


def test_only_copies_are_taken_from_other_steps(home: House) -> None:
    run_both(rows(home))
    assert found(rows(home, scenario="b")) == {}
    reused = found(rows(home, scenario="b", reuse=True))
    assert len(reused) == 2
    assert all(one.reused for one in reused.values())


def test_a_failed_run_is_no_result(home: House) -> None:
    log = rows(home)
    asyncio.run(log.failed(TASK, "current", 0, UpstreamFailed("it broke")))
    assert found(log) == {}
    run_both(log)
    assert len(found(log)) == 2
