"""`harness_evolve`: grow the harness (rules and worked examples) from feedback.

Owns: which reports are lessons, and in which order its proposers are asked. Each proposer is a file:
`feedback`, `demonstrations` (neither calls a model) and `reflect` (does). To add one: a file with an
async `propose(context, options)`, and its name in `PROPOSERS`.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import ClassVar

from recipes.harness_evolve import demonstrations, feedback, reflect
from recipes.harness_evolve.options import EvolveOptions, ProposerName, is_well_scored
from reef.errors import Refused
from reef.feedback import Exchange, Report, Verdict
from reef.recipe import PastStep, Recipe, RecipeOptions, StepContext, Surface, turned_down
from reef.tree import Proposal

PROPOSERS: dict[ProposerName, Callable[[StepContext, EvolveOptions], Awaitable[Proposal | None]]] = {
    "feedback": feedback.propose,
    "demonstrations": demonstrations.propose,
    "reflect": reflect.propose,
}


class HarnessEvolve(Recipe):
    """Turns reports into changes of the harness, one candidate a step."""

    summary = "grows rules and worked examples from feedback"
    surface: ClassVar[Surface] = "harness"
    Options: ClassVar[type[RecipeOptions]] = EvolveOptions

    options: EvolveOptions

    def proposers(self) -> tuple[str, ...]:
        return tuple(self.options.proposers)

    def proposers_left(self, tried: Collection[str]) -> tuple[ProposerName, ...]:
        """Those after the last that was tried: they are asked in order, so the ones before had it too."""
        names = self.options.proposers
        return tuple(names[max((names.index(name) + 1 for name in names if name in tried), default=0) :])

    def needs_model(self, tried: Collection[str] = ()) -> bool:
        return "reflect" in self.proposers_left(tried)

    def judge(self, report: Report, exchange: Exchange) -> Verdict:
        """A lesson is a bad score, words, a correction or (for demonstrations) a good score."""
        options = self.options
        if report.score is not None and report.score <= options.max_score:
            return Verdict("train")
        if "demonstrations" in options.proposers and (report.correction or is_well_scored(report, options)):
            return Verdict("train")
        if (report.text or report.correction) and not is_well_scored(report, options):
            return Verdict("train")
        return Verdict("never", "score_not_a_lesson", self._why_not(report))

    async def propose(self, context: StepContext) -> Proposal | None:
        """The first proposal that a proposer brings and that was not turned down before.

        Raises:
            Refused: what a proposer brought was refused, and no other one had a proposal.
        """
        refused: Refused | None = None
        for name in self.proposers_left(context.tried):
            if context.cancelled():
                break
            try:
                proposal = await PROPOSERS[name](context, self.options)
            except Refused as error:
                context.note(f"{name}: refused: {error.message}")
                refused = refused or error
                continue
            if proposal is None:
                context.note(f"{name}: nothing to propose")
            elif past := self._turned_down(context, proposal):
                context.note(f"{name}: step {past.step} tried the same: {past.decision}")
            else:
                return proposal
        if refused is not None:
            raise refused
        return None

    def _turned_down(self, context: StepContext, proposal: Proposal) -> PastStep | None:
        return turned_down(proposal.mutations, context.content_id, context.gate_tasks, context.history)

    def _why_not(self, report: Report) -> str:
        options = self.options
        if report.score is None:
            return "it has neither a score nor feedback in words"
        if is_well_scored(report, options):
            return f"score {report.score:g} would be an example, but the proposers have no `demonstrations`"
        return (
            f"score {report.score:g} is above {options.max_score:g} (a lesson) and below "
            f"{options.min_score:g} (an example), and there is no feedback in words"
        )
