"""Tasks, episodes and grades: what an evaluation is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reef.feedback import Message, Usage

Split = Literal["train", "dev", "gate"]
Side = Literal["candidate", "current"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: what to ask, and how to grade the answer.

    `arguments` belong to the evaluator. Tasks with one `group` count as one unit at the gate.
    """

    id: str
    messages: tuple[Message, ...]
    evaluator: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    split: Split = "train"
    group: str | None = None
    weight: float = 1.0
    timeout_s: float = 120.0
    max_tokens: int | None = None
    must_pass: bool = False

    @property
    def unit(self) -> str:
        return self.group or self.id


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished headless run on one task. `messages` is its trajectory, `answer` its last text."""

    task: Task
    side: Side
    repeat: int
    answer: str
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    receipt: str | None = None
    log: str = ""


@dataclass(frozen=True, slots=True)
class Grade:
    """A score in [0, 1] and a sentence why."""

    score: float
    why: str


@dataclass(frozen=True, slots=True)
class TaskScore:
    """The mean score of one task over its repeats, with the answers that were given."""

    task: Task
    score: float
    answers: tuple[str, ...]
    why: str
