"""Runs a comparison: both sides on the gate tasks, look by look, until the policy decides.

Does not own how an episode runs (`EpisodeRunner`) or where it is kept (`EpisodeLog`). An episode that
could not run is an error of the step; it never becomes a score.
"""

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from daemon.evaluation.evaluators import load_evaluator
from daemon.evaluation.gate import Policy, load_policy
from daemon.evaluation.scores import Decision, EpisodeKey, Plan, Scored, Unit, total_cost
from daemon.settings.model import GateSection
from reef.errors import Loading, ReefError, Unavailable
from reef.evaluator import Evaluator
from reef.tasks import Episode, Grade, Side, Task

RETRY_AFTER_S = (0.5, 2.0)
"""An episode that could not run is tried again after these times."""
MAX_WAIT_S = 30.0
SIDES: tuple[Side, Side] = ("candidate", "current")


class Stopped(ReefError):
    """The comparison goes no further for now; what had finished is in the log."""


def being_cancelled() -> bool:
    """Whether the running task was told to end: what fails from then on is nothing to report or to repeat."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class EpisodeRunner(Protocol):
    """Runs one episode."""

    async def run(self, task: Task, side: Side, repeat: int) -> Episode:
        """Raises `ReefError` when it could not run, `Loading` after it has waited for the model."""


class EpisodeLog(Protocol):
    """Keeps finished episodes, so that a comparison goes on where it stopped."""

    async def finished(self) -> Mapping[EpisodeKey, Scored]:
        """Episodes that need not run again: those of this step, and reused ones."""

    async def save(self, scored: Scored, episode: Episode, *, retried: bool) -> None:
        """Keep a finished one before it counts."""

    async def failed(self, task: Task, side: Side, repeat: int, error: ReefError) -> None:
        """Keep that it could not run."""


Progress = Callable[[int, int, Scored | None], None]
"""Called with episodes done, episodes planned in all, and the one that has just finished."""


async def compare(
    *,
    tasks: Sequence[Task],
    gate: GateSection,
    seed: int,
    copies: bool,
    run: EpisodeRunner,
    log: EpisodeLog,
    limit: asyncio.Semaphore,
    on_progress: Progress = lambda done, total, scored: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Decision:
    """Measure the candidate against what is served, and decide.

    Args:
        tasks: the task set; only its `gate` split runs.
        copies: whether a repeated run would give the same answer.
        limit: bounds the episodes that run at one time, over all comparisons.

    Raises:
        ReefError: an episode could not run or be graded, after two more tries; or `Loading`, which the
            runner has waited for, at once.
        Stopped: `cancelled` said so, or the runner did.
    """
    policy = load_policy(gate)
    plan = policy.plan(tasks, seed=seed, copies=copies)
    work = _Work(plan, seed, run, log, limit, on_progress, cancelled)
    await work.resume()
    return await _decide(policy, plan, work)


async def _decide(policy: Policy, plan: Plan, work: "_Work") -> Decision:
    for look in range(len(plan.looks) + 1):
        if look:
            await work.look(look)
        decision = policy.decide(plan, work.done.values(), look)
        if decision is not None:
            cost = {"cost": total_cost(work.done.values())}
            return replace(decision, metrics={**decision.metrics, **cost})
    raise RuntimeError(f"the gate policy `{policy.settings.policy}` did not decide at its last look")


class _Work:
    """The episodes of one comparison."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        run: EpisodeRunner,
        log: EpisodeLog,
        limit: asyncio.Semaphore,
        on_progress: Progress,
        cancelled: Callable[[], bool],
    ) -> None:
        self.done: dict[EpisodeKey, Scored] = {}
        self._plan = plan
        self._random = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._run = run
        self._log = log
        self._limit = limit
        self._on_progress = on_progress
        self._cancelled = cancelled
        units = plan.units()
        self._keys = {key for task, repeat in _pairs(units, plan.repeats) for key in _sides(task, repeat)}
        self._evaluators = {task.id: load_evaluator(task) for unit in units for task in unit.tasks}

    async def resume(self) -> None:
        """Take over what finished before."""
        if self._keys:
            self.done = {key: one for key, one in (await self._log.finished()).items() if key in self._keys}

    async def look(self, look: int) -> None:
        """Run what is missing of one look: pairs in random order, both sides of a pair side by side."""
        pairs = _pairs(self._plan.looks[look - 1], self._plan.repeats)
        self._random.shuffle(pairs)
        self._progress()
        missing = [
            (task, side, repeat)
            for task, repeat in pairs
            for side in self._random.sample(SIDES, 2)
            if (task.id, side, repeat) not in self.done
        ]
        try:  # in a task of its own: a group cancels the task it is in when one of its own fails
            await asyncio.create_task(self._all(missing))
        except BaseExceptionGroup as errors:
            if being_cancelled():  # what broke on the way out is no result
                raise asyncio.CancelledError from errors
            raise _first(errors) from None

    async def _all(self, missing: Sequence[tuple[Task, Side, int]]) -> None:
        async with asyncio.TaskGroup() as group:
            for task, side, repeat in missing:
                group.create_task(self._episode(task, side, repeat))

    async def _episode(self, task: Task, side: Side, repeat: int) -> None:
        async with self._limit:
            for attempt in range(len(RETRY_AFTER_S) + 1):
                if self._cancelled():
                    raise Stopped("the step was cancelled")
                try:
                    episode = await self._run.run(task, side, repeat)
                    grade = _checked(
                        await self._evaluators[task.id].grade(episode), self._evaluators[task.id]
                    )
                    break
                except Stopped:
                    raise
                except ReefError as error:
                    if being_cancelled():
                        raise asyncio.CancelledError from error
                    if attempt == len(RETRY_AFTER_S) or isinstance(error, Loading):  # that was waited for
                        await self._log.failed(task, side, repeat, error)
                        raise
                    await asyncio.sleep(_pause(error, attempt))
        scored = Scored(task.id, side, repeat, grade.score, grade.why, episode.usage, episode.seconds)
        await self._log.save(scored, episode, retried=attempt > 0)
        self.done[scored.key] = scored
        self._progress(scored)

    def _progress(self, scored: Scored | None = None) -> None:
        self._on_progress(len(self.done), len(self._keys), scored)


def _pairs(units: Sequence[Unit], repeats: int) -> list[tuple[Task, int]]:
    return [(task, repeat) for unit in units for task in unit.tasks for repeat in range(repeats)]


def _sides(task: Task, repeat: int) -> list[EpisodeKey]:
    return [(task.id, side, repeat) for side in SIDES]


def _pause(error: ReefError, attempt: int) -> float:
    asked = error.retry_after_s if isinstance(error, Unavailable) else 0
    return min(MAX_WAIT_S, max(RETRY_AFTER_S[attempt], asked))


def _checked(grade: Grade, evaluator: Evaluator) -> Grade:
    if not (math.isfinite(grade.score) and 0 <= grade.score <= 1):
        raise ReefError(
            f"the evaluator {type(evaluator).__name__} gave the score {grade.score}",
            hint="a score is from 0 to 1",
        )
    return grade


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report of several: a bug before a failure, a failure before a cancellation."""
    found = errors.exceptions
    return next((one for one in found if not isinstance(one, ReefError)), None) or next(
        (one for one in found if not isinstance(one, Stopped)), found[0]
    )
