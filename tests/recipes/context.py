"""A step as recipes see it, small enough for a test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from daemon.harness.mutations import check
from reef.errors import Invalid, Refused
from reef.feedback import BatchUnit, Exchange, Message, Report
from reef.recipe import Budget, Completion, PastStep
from reef.tasks import Split, Task, TaskScore
from reef.tree import ENTRY_KINDS, HarnessTree, Mutation


@dataclass
class Context:
    """A `StepContext`; `answers` are what the model says, one after another."""

    batch: Sequence[BatchUnit] = ()
    tree: HarnessTree = HarnessTree()
    history: Sequence[PastStep] = ()
    tried: frozenset[str] = frozenset()
    answers: list[str] = field(default_factory=list)
    gate_prompts: frozenset[str] = frozenset()
    scenario: str = "default"
    step: int = 1
    seed: int = 1
    content_id: str = "c1"
    budget: Budget = Budget(None, None)
    notes: list[str] = field(default_factory=list)
    asked: list[Sequence[Message]] = field(default_factory=list)

    def tasks(self, split: Split) -> Sequence[Task]:
        if split == "gate":
            raise Invalid("a recipe may not see the gate tasks")
        return []

    @property
    def gate_tasks(self) -> int:
        return len(self.gate_prompts)

    def check(self, mutations: Sequence[Mutation]) -> Sequence[Refused]:
        return check(self.tree, mutations, kinds_allowed=ENTRY_KINDS)

    def is_gate_prompt(self, text: str) -> bool:
        return text in self.gate_prompts

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        temperature: float = 0.0,
    ) -> Completion:
        self.asked.append(messages)
        return Completion(self.answers[len(self.asked) - 1])

    async def evaluate(self, tree: HarnessTree, split: Split) -> Sequence[TaskScore]:
        raise NotImplementedError

    def note(self, text: str) -> None:
        self.notes.append(text)

    def cancelled(self) -> bool:
        return False


def unit(
    score: float | None = 0.0,
    feedback: str | Mapping[str, Any] | None = None,
    *,
    prompt: str = "How far?",
    answer: str = "Five miles.",
    number: int = 0,
    messages: tuple[Message, ...] | None = None,
) -> BatchUnit:
    """One report about one exchange; a higher `number` is newer."""
    when = datetime(2026, 1, 1, 0, number, tzinfo=UTC)
    asked = messages or ({"role": "user", "content": prompt},)
    exchange = Exchange(f"receipt-{number}", "default", when, "m", None, None, asked, answer)
    report = Report(f"report-{number}", "default", when, score, feedback, (exchange.receipt,))
    return BatchUnit(report, (exchange,))
