"""What a step hands to its recipe: the tree, the batch, the tasks, a model to ask, and checks.

What the gate asks stays out of a recipe's reach: it gets the number of gate tasks and may ask whether
a text is one, nothing more.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daemon.evaluation.evaluators import load_evaluator
from daemon.growth.caller import Caller
from daemon.growth.episodes import ChatEpisodes
from daemon.growth.purse import Purse
from daemon.harness.render import chat_prefix
from daemon.serving.served import Served
from reef.errors import Invalid, Refused
from reef.feedback import BatchUnit, Message
from reef.recipe import Budget, Completion, PastStep
from reef.runtime import Runtime
from reef.tasks import Split, Task, TaskScore
from reef.tree import HarnessTree, Mutation


@dataclass(frozen=True, slots=True)
class Powers:
    """What a context can do for its recipe."""

    caller: Caller
    purse: Purse
    runtime: Runtime | None
    model: str | None
    episode_slots: asyncio.Semaphore
    check: Callable[[Sequence[Mutation]], Sequence[Refused]]
    is_gate_prompt: Callable[[str], bool]
    stops: Callable[[], bool]


@dataclass(slots=True)
class Context:
    """Implements `reef.recipe.StepContext`. `shown` are the tasks that a recipe may see."""

    scenario: str
    step: int
    seed: int
    tree: HarnessTree
    content_id: str
    batch: Sequence[BatchUnit]
    history: Sequence[PastStep]
    tried: frozenset[str]
    gate_tasks: int
    shown: Sequence[Task]
    _powers: Powers
    notes: list[str] = field(default_factory=list)

    @property
    def budget(self) -> Budget:
        return self._powers.purse.budget()

    def tasks(self, split: Split) -> Sequence[Task]:
        if split == "gate":
            raise Invalid("a recipe may not see the gate tasks", hint="use `train` or `dev`")
        return [task for task in self.shown if task.split == split]

    def check(self, mutations: Sequence[Mutation]) -> Sequence[Refused]:
        return self._powers.check(mutations)

    def is_gate_prompt(self, text: str) -> bool:
        return self._powers.is_gate_prompt(text)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        temperature: float = 0.0,
    ) -> Completion:
        powers = self._powers
        async with powers.episode_slots:
            answer, _ = await powers.caller.ask(
                powers.purse,
                messages,
                runtime=powers.runtime,
                model=powers.model,
                schema=schema,
                max_tokens=max_tokens,
                temperature=temperature,
            )
        return answer

    async def evaluate(self, tree: HarnessTree, split: Split) -> Sequence[TaskScore]:
        tasks = self.tasks(split)
        powers = self._powers
        runner = ChatEpisodes(
            powers.caller,
            powers.purse,
            {"candidate": Served(self.scenario, "", "", chat_prefix(tree))},
            powers.model,
            runtime=powers.runtime,
            temperature=0.0,
        )
        scores = []
        for task in tasks:
            async with powers.episode_slots:
                episode = await runner.run(task, "candidate", 0)
            grade = await load_evaluator(task).grade(episode)
            scores.append(TaskScore(task, grade.score, (episode.answer,), grade.why))
        return scores

    def note(self, text: str) -> None:
        self.notes.append(text)

    def cancelled(self) -> bool:
        return self._powers.stops()
