"""What a step hands to its recipe: the tree, the batch, the tasks, a model to ask, and checks."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daemon.evaluation.evaluators import load_evaluator
from daemon.evaluation.tasks import is_gate_prompt
from daemon.growth.caller import Caller
from daemon.growth.episodes import ChatEpisodes
from daemon.harness.mutations import check
from daemon.harness.render import chat_prefix
from daemon.serving.served import Served
from reef.errors import Invalid, Refused
from reef.feedback import BatchUnit, Message
from reef.recipe import Budget, Completion, PastStep
from reef.tasks import Split, Task, TaskScore
from reef.tree import EntryKind, HarnessTree, Mutation


@dataclass(slots=True)
class Context:
    """Implements `reef.recipe.StepContext`."""

    scenario: str
    step: int
    seed: int
    tree: HarnessTree
    content_id: str
    batch: Sequence[BatchUnit]
    history: Sequence[PastStep]
    budget: Budget
    tried: frozenset[str]
    all_tasks: Sequence[Task]
    kinds: Collection[EntryKind]
    leak_texts: Sequence[str]
    caller: Caller
    episode_slots: asyncio.Semaphore
    model: str | None
    is_cancelled: Callable[[], bool]
    notes: list[str] = field(default_factory=list)

    def tasks(self, split: Split) -> Sequence[Task]:
        return [task for task in self.all_tasks if task.split == split]

    def check(self, mutations: Sequence[Mutation]) -> Sequence[Refused]:
        return check(self.tree, mutations, kinds_allowed=self.kinds, leak_texts=self.leak_texts)

    def is_gate_prompt(self, text: str) -> bool:
        return is_gate_prompt(self.all_tasks, text)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        temperature: float = 0.0,
    ) -> Completion:
        async with self.episode_slots:
            answer, _ = await self.caller.ask(
                self.scenario,
                self.step,
                messages,
                model=self.model,
                schema=schema,
                max_tokens=max_tokens,
                temperature=temperature,
            )
        return answer

    async def evaluate(self, tree: HarnessTree, split: Split) -> Sequence[TaskScore]:
        if split == "gate":
            raise Invalid("a recipe may not evaluate on the gate tasks", hint="use `train` or `dev`")
        runner = ChatEpisodes(
            self.caller,
            self.scenario,
            self.step,
            {"candidate": Served(self.scenario, "", "", chat_prefix(tree))},
            self.model,
            temperature=0.0,
        )
        scores = []
        for task in self.tasks(split):
            async with self.episode_slots:
                episode = await runner.run(task, "candidate", 0)
            grade = await load_evaluator(task).grade(episode)
            scores.append(TaskScore(task, grade.score, (episode.answer,), grade.why))
        return scores

    def note(self, text: str) -> None:
        self.notes.append(text)

    def cancelled(self) -> bool:
        return self.is_cancelled()
