"""Proposer `demonstrations`: right answers from real traffic become worked examples."""

from collections.abc import Iterator

from recipes.harness_evolve.options import EvolveOptions, is_well_scored
from reef.feedback import BatchUnit, Exchange
from reef.recipe import StepContext
from reef.tree import Mutation, Proposal

ENTRY_ID = "demonstrations"
MAX_CHARS = 4000
"""A longer prompt or answer is no example to put in front of every request."""


async def propose(context: StepContext, options: EvolveOptions) -> Proposal | None:
    """The newest well-answered (or corrected) prompts as one `examples` entry; no model is called.

    Only single questions are taken, each prompt once, and never one that is a gate task.
    """
    entry = context.tree.get(ENTRY_ID)
    before = list(entry.config.get("turns", [])) if entry is not None else []
    turns = {turn["user"]: turn["assistant"] for turn in before}
    added = 0
    for exchange, answer in _in_order(context, options):
        prompt = exchange.prompt
        if why := _objection(context, exchange, answer):
            context.note(f"demonstrations: left out {exchange.receipt}: {why}")
        elif turns.get(prompt) != answer:
            turns.pop(prompt, None)  # the newer answer takes the newest place
            turns[prompt] = answer
            added += 1
    kept = [
        {"user": user, "assistant": answer} for user, answer in list(turns.items())[-options.max_examples :]
    ]
    if not added or kept == before:
        return None
    mutation = (
        Mutation("create", ENTRY_ID, "examples", {"turns": kept})
        if entry is None
        else Mutation("update", ENTRY_ID, config={"turns": kept})
    )
    count = f"{added} worked example{'s' * (added != 1)}"
    return Proposal(
        mutations=(mutation,),
        reason=f"{count} from answers that were right or were corrected",
        proposer="demonstrations",
        title=f"Add {count}",
    )


def _in_order(context: StepContext, options: EvolveOptions) -> Iterator[tuple[Exchange, str]]:
    """Exchanges with the answer that is right, oldest first."""
    found = [pair for unit in context.batch for pair in _right_answers(unit, options)]
    yield from sorted(found, key=lambda pair: pair[0].created_at)


def _right_answers(unit: BatchUnit, options: EvolveOptions) -> list[tuple[Exchange, str]]:
    if unit.report.correction and unit.exchanges:
        return [(unit.exchanges[-1], unit.report.correction)]  # a correction is of the last answer
    if is_well_scored(unit.report, options):
        return [(exchange, exchange.answer) for exchange in unit.exchanges]
    return []


def _objection(context: StepContext, exchange: Exchange, answer: str) -> str:
    asked = [message for message in exchange.messages if message.get("role") not in ("system", "developer")]
    if len(asked) != 1 or not exchange.prompt.strip() or not answer.strip():
        return "it is not one question with one answer in text"
    if len(exchange.prompt) > MAX_CHARS or len(answer) > MAX_CHARS:
        return f"it is longer than {MAX_CHARS} characters"
    if context.is_gate_prompt(exchange.prompt):
        return "its prompt is a gate task"
    return ""
