"""What a comparison counts: scored episodes, the units they belong to, and the tally a policy decides on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from reef.feedback import Usage
from reef.tasks import Side, Task

Outcome = Literal["select", "reject", "inconclusive", "skip"]
EpisodeKey = tuple[str, Side, int]
"""Task id, side and repeat (from 0): what names an episode inside one comparison."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One finished and graded episode. `reused`: an earlier run of which this one would be a copy."""

    task: str
    side: Side
    repeat: int
    score: float
    why: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    reused: bool = False

    @property
    def key(self) -> EpisodeKey:
        return (self.task, self.side, self.repeat)

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together, or None where the provider did not say."""
        if self.usage.input_tokens is None or self.usage.output_tokens is None:
            return None
        return self.usage.input_tokens + self.usage.output_tokens


@dataclass(frozen=True, slots=True)
class Unit:
    """What counts once at the gate: a task, or the tasks of one group."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def weight(self) -> float:
        return sum(task.weight for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Plan:
    """Which units run at which look, and how often each task is run on each side."""

    looks: tuple[tuple[Unit, ...], ...]
    repeats: int = 1

    def units(self, look: int | None = None) -> tuple[Unit, ...]:
        """The units of the first `look` looks; of all of them by default."""
        return tuple(unit for group in self.looks[:look] for unit in group)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says. `metrics` has the shape of protocol section 6, without what only growth knows.

    `for_person`: nothing was measured that could decide; a person has to.
    """

    outcome: Outcome
    sentence: str
    metrics: Mapping[str, Any] = field(default_factory=dict)
    for_person: bool = False


@dataclass(frozen=True, slots=True)
class UnitResult:
    """Mean scores of one unit on both sides."""

    unit: Unit
    candidate: float
    current: float


class Tally:
    """The results of the units of the first `look` looks of a plan, counted."""

    def __init__(self, plan: Plan, results: Iterable[Scored], look: int, tie: float) -> None:
        self.plan = plan
        self.look = look
        self.tie = tie
        units = plan.units(look)
        wanted = {task.id for unit in units for task in unit.tasks}
        self.results: Sequence[Scored] = [one for one in results if one.task in wanted]
        scores: dict[tuple[str, Side], list[float]] = defaultdict(list)
        for one in self.results:
            scores[one.task, one.side].append(one.score)
        self._means = {key: sum(found) / len(found) for key, found in scores.items()}
        self.units = [
            UnitResult(unit, self._of(unit, "candidate"), self._of(unit, "current")) for unit in units
        ]

    def scores(self, side: Side) -> dict[str, float]:
        """The mean score of each task on one side."""
        return {task: mean for (task, its_side), mean in self._means.items() if its_side == side}

    def counts(self, look: int | None = None) -> tuple[int, int, int]:
        """Wins, losses and ties among the units of the first `look` looks."""
        number = len(self.plan.units(self.look if look is None else look))
        signs = [self._sign(one.candidate - one.current) for one in self.units[:number]]
        return signs.count(1), signs.count(-1), signs.count(0)

    def mean(self, side: Side) -> float:
        """The mean score over the units, by weight."""
        total = sum(one.unit.weight for one in self.units)
        scores = (
            (one.candidate if side == "candidate" else one.current) * one.unit.weight for one in self.units
        )
        return sum(scores) / total if total else 0.0

    @property
    def gain(self) -> float:
        return self.mean("candidate") - self.mean("current")

    @cached_property
    def lost_must_pass(self) -> tuple[str, ...]:
        """Tasks that must pass on which the candidate did worse."""
        tasks = (task for one in self.units for task in one.unit.tasks if task.must_pass)
        return tuple(
            task.id
            for task in tasks
            if self._sign(self._means[task.id, "candidate"] - self._means[task.id, "current"]) < 0
        )

    def mean_tokens(self, side: Side) -> float | None:
        """Mean tokens of an episode, or None where one of them is not known."""
        found = [one.tokens for one in self.results if one.side == side]
        known = [tokens for tokens in found if tokens is not None]
        return sum(known) / len(known) if known and len(known) == len(found) else None

    def _of(self, unit: Unit, side: Side) -> float:
        return sum(self._means[task.id, side] * task.weight for task in unit.tasks) / unit.weight

    def _sign(self, difference: float) -> int:
        # repeats are averaged: 0.1 + 0.2 must tie with 0.3
        margin = self.tie + 1e-9
        return (difference > margin) - (difference < -margin)


def total_cost(results: Iterable[Scored]) -> dict[str, Any]:
    """What was really spent: episodes, tokens, money (US dollars; None where no price is known), seconds."""
    ran = [one for one in results if not one.reused]
    prices = [one.usage.cost for one in ran if one.usage.cost is not None]
    return {
        "episodes": len(ran),
        "input_tokens": sum(one.usage.input_tokens or 0 for one in ran),
        "output_tokens": sum(one.usage.output_tokens or 0 for one in ran),
        "money": sum(prices) if prices else None,
        "seconds": round(sum(one.seconds for one in ran), 3),
    }
