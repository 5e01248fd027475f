"""Running a comparison: order, retries, resuming, and that a failure is never a score."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from daemon.evaluation import comparison
from daemon.evaluation.comparison import Stopped, being_cancelled, compare
from daemon.evaluation.scores import Decision, EpisodeKey, Scored
from daemon.settings.model import GateSection
from reef.errors import Loading, ReefError, Unavailable, UpstreamFailed
from reef.feedback import Usage
from reef.tasks import Episode, Side, Task

TASKS = [
    Task(f"t{number}", ({"role": "user", "content": "q"},), "exact", {"expected": "yes"}, split="gate")
    for number in range(12)
]


class Log:
    def __init__(self, before: dict[EpisodeKey, Scored] | None = None) -> None:
        self.kept: dict[EpisodeKey, Scored] = dict(before or {})
        self.retried: list[EpisodeKey] = []
        self.errors: list[ReefError] = []

    async def finished(self) -> dict[EpisodeKey, Scored]:
        return self.kept

    async def save(self, scored: Scored, episode: Episode, *, retried: bool) -> None:
        assert scored.key not in self.kept
        self.kept = {**self.kept, scored.key: scored}
        if retried:
            self.retried.append(scored.key)

    async def failed(self, task: Task, side: Side, repeat: int, error: ReefError) -> None:
        self.errors.append(error)


class Runner:
    def __init__(self, fails: int = 0, bug: bool = False) -> None:
        self.started: list[EpisodeKey] = []
        self.running = self.most = 0
        self.fails = fails
        self.bug = bug

    async def run(self, task: Task, side: Side, repeat: int) -> Episode:
        key = (task.id, side, repeat)
        self.started.append(key)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if self.bug:
            raise ZeroDivisionError
        if Counter(self.started)[key] <= self.fails:
            raise UpstreamFailed("it broke")
        answer = "yes" if side == "candidate" else "no"
        return Episode(task, side, repeat, answer, usage=Usage(10, 5, cost=0.01), seconds=0.5)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "RETRY_AFTER_S", (0.0, 0.0))


async def compared(runner: Runner, log: Log, **more: Any) -> Decision:
    return await compare(
        tasks=TASKS,
        gate=GateSection(),
        seed=7,
        copies=True,
        run=runner,
        log=log,
        limit=asyncio.Semaphore(4),
        **more,
    )


def run(runner: Runner, log: Log, **more: Any) -> Decision:
    return asyncio.run(compared(runner, log, **more))


def test_a_better_candidate_is_selected() -> None:
    runner, log, seen = Runner(), Log(), []
    decision = run(
        runner, log, on_progress=lambda done, total, scored: seen.append((done, total, scored and scored.key))
    )
    assert decision.outcome == "select"
    assert decision.metrics["cost"] == {
        "episodes": 16,
        "input_tokens": 160,
        "output_tokens": 80,
        "money": pytest.approx(0.16),
        "seconds": 8.0,
    }
    assert len(log.kept) == 16
    assert seen[0] == (0, 24, None)
    assert seen[-1][:2] == (16, 24)
    assert {key for _, _, key in seen if key} == set(log.kept)
    assert runner.most <= 4
    places: dict[str, list[int]] = {}
    for place, (task, _, _) in enumerate(runner.started):
        places.setdefault(task, []).append(place)
    assert all(second - first == 1 for first, second in places.values())
    assert len({side for _, side, _ in runner.started[::2]}) == 2


def test_it_goes_on_where_it_stopped() -> None:
    whole = Log()
    first = run(Runner(), whole)
    half = dict(list(whole.kept.items())[:5]) | {("gone", "current", 0): Scored("gone", "current", 0, 1.0)}
    runner = Runner()
    second = run(runner, Log(half))
    assert len(runner.started) == 11
    assert (second.outcome, second.metrics) == (first.outcome, first.metrics)


def test_reused_runs_cost_nothing() -> None:
    reused = {
        (task.id, side, 0): Scored(task.id, side, 0, 0.0, usage=Usage(10, 5, cost=1.0), reused=True)
        for task in TASKS
        for side in ("current",)
    }
    decision = run(Runner(), Log(reused))
    assert decision.metrics["cost"]["episodes"] == 8


def test_a_crash_is_retried() -> None:
    runner, log = Runner(fails=2), Log()
    assert run(runner, log).outcome == "select"
    assert len(log.retried) == len(log.kept) == 16


def test_a_run_that_cannot_run_ends_with_its_error() -> None:
    runner, log = Runner(fails=3), Log()
    with pytest.raises(UpstreamFailed, match="it broke"):
        run(runner, log)
    assert log.errors
    assert not log.kept


def test_a_model_that_is_not_loaded_in_time_is_not_waited_for_again() -> None:
    class Waits(Runner):
        async def run(self, task: Task, side: Side, repeat: int) -> Episode:
            self.started.append((task.id, side, repeat))
            raise Loading("the model is loading")

    runner, log = Waits(), Log()
    with pytest.raises(Loading):
        run(runner, log)
    assert max(Counter(runner.started).values()) == 1
    assert log.errors


def test_a_bug_is_not_retried() -> None:
    runner = Runner(bug=True)
    with pytest.raises(ZeroDivisionError):
        run(runner, Log())
    assert max(Counter(runner.started).values()) == 1


def test_cancelling() -> None:
    log = Log()
    with pytest.raises(Stopped):
        run(Runner(), log, cancelled=lambda: len(log.kept) >= 3)
    assert 3 <= len(log.kept) < 16


def test_nothing_runs_without_gate_tasks() -> None:
    async def go() -> Decision:
        return await compare(
            tasks=TASKS[:3],
            gate=GateSection(),
            seed=7,
            copies=True,
            run=Runner(),
            log=Log(),
            limit=asyncio.Semaphore(1),
        )

    decision = asyncio.run(go())
    assert decision.for_person
    assert decision.metrics["cost"]["episodes"] == 0


def test_what_breaks_while_it_is_cancelled_takes_the_cancellation_not_away() -> None:
    """Neither as an error of the step, nor by asking once more."""

    class Breaks(Runner):
        async def run(self, task: Task, side: Side, repeat: int) -> Episode:
            self.started.append((task.id, side, repeat))
            running.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise Unavailable("the disk is full") from None
            raise AssertionError

    runner, log = Breaks(), Log()
    running = asyncio.Event()

    async def go() -> None:
        work = asyncio.create_task(compared(runner, log))
        await running.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 10)

    asyncio.run(go())
    assert len(runner.started) == len(set(runner.started)), "asked once each"
    assert log.errors == []


def test_an_error_leaves_its_task_as_it_was() -> None:
    """A group of tasks marks the task it fails in as cancelled; the loop that grows must go on."""

    async def go() -> None:
        with pytest.raises(UpstreamFailed):
            await compared(Runner(fails=99), Log())
        assert not being_cancelled()

    asyncio.run(go())
