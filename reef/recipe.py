"""The contract of a recipe: judge what was observed, bring one candidate from a batch.

A recipe comes by entry point (`reef.recipes`) or as `module:Class` in the configuration. It imports
`reef` only; what it needs of the daemon it is handed as a `StepContext`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from reef.errors import Refused
from reef.feedback import BatchUnit, Exchange, Message, Report, Usage, Verdict
from reef.tasks import Split, Task, TaskScore
from reef.tree import HarnessTree, Mutation, Proposal

Surface = Literal["harness", "weights", "none"]


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer of the model to Reef itself. `data` is the parsed JSON where a schema was asked for."""

    text: str
    data: Any = None
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class PastStep:
    """A step of this scenario that is over, newest first in `StepContext.history`."""

    step: int
    proposer: str
    outcome: str
    decision: str
    base_content_id: str
    mutations: tuple[Mutation, ...]
    reports: tuple[str, ...]
    gate_tasks: int


def turned_down(
    mutations: Sequence[Mutation], content_id: str, gate_tasks: int, history: Sequence[PastStep]
) -> PastStep | None:
    """The earlier step that makes another try of the same changes on the same content pointless.

    One that rejected them; or one that found too little evidence, unless the gate split has grown since.
    """
    wanted = [mutation.to_wire() for mutation in mutations]
    for past in history:
        if past.base_content_id != content_id or wanted != [one.to_wire() for one in past.mutations]:
            continue
        if past.outcome == "reject" or (past.outcome == "inconclusive" and past.gate_tasks >= gate_tasks):
            return past
    return None


@dataclass(frozen=True, slots=True)
class Budget:
    """What a step may still spend: US dollars (None: no price is known) and model calls (None: any)."""

    usd_left: float | None
    calls_left: int | None


class StepContext(Protocol):
    """What a step hands to a recipe."""

    scenario: str
    step: int
    seed: int
    tree: HarnessTree
    content_id: str
    batch: Sequence[BatchUnit]
    history: Sequence[PastStep]
    tried: frozenset[str]
    """Proposers that had this batch already."""
    gate_tasks: int
    """How many units (tasks, or groups of them) the gate will measure."""

    @property
    def budget(self) -> Budget:
        """What the step may spend from now on, the gate's own calls included."""

    def tasks(self, split: Split) -> Sequence[Task]:
        """The `train` or `dev` tasks. Raises `Invalid` for `gate`: those are for deciding only."""

    def check(self, mutations: Sequence[Mutation]) -> Sequence[Refused]:
        """Why these mutations would be refused; empty when they are fine."""

    def is_gate_prompt(self, text: str) -> bool:
        """Whether `text` is (after normalising) the prompt of a gate task."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int = 1024,
        temperature: float = 0.0,
    ) -> Completion:
        """Ask the recipe's model. Counted against the step's budget and shown in its cost.

        When there is no money for it the step waits for a person; do not catch what is raised then.
        """

    async def evaluate(self, tree: HarnessTree, split: Split) -> Sequence[TaskScore]:
        """Run a tree on the `train` or `dev` tasks. Raises `Invalid` for `gate`."""

    def note(self, text: str) -> None:
        """Add a line to the step's story."""

    def cancelled(self) -> bool: ...


class RecipeOptions(BaseModel):
    """The keys of `[recipe.NAME]` that belong to the recipe itself; a subclass adds its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Recipe:
    """One scenario's way to learn."""

    summary: ClassVar[str] = ""
    surface: ClassVar[Surface] = "harness"
    Options: ClassVar[type[RecipeOptions]] = RecipeOptions

    def __init__(self, options: RecipeOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    def proposers(self) -> tuple[str, ...]:
        """The parts that can each bring a candidate; one that was not selected hands its batch on."""
        return ()

    def proposers_left(self, tried: Collection[str]) -> tuple[str, ...]:
        """Those that may still bring something from a batch that `tried` had; none: nobody gets it again."""
        return tuple(name for name in self.proposers() if name not in tried)

    def needs_model(self, tried: Collection[str] = ()) -> bool:
        """Whether `propose` may call a model for a batch that `tried` had (then a step has a price before it
        runs)."""
        return False

    def judge(self, report: Report, exchange: Exchange) -> Verdict:
        """Whether this pair may teach. Asked once the record is complete."""
        return Verdict("never", "recipe_does_not_learn", "this recipe only records")

    async def propose(self, context: StepContext) -> Proposal | None:
        """Bring one candidate for the gate, or None when the batch teaches nothing new."""
        return None
