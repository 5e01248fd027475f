"""From a batch to a candidate: what the recipe is handed, and what its proposal has to pass."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import RowMapping

from daemon.evaluation.comparison import Stopped
from daemon.evaluation.tasks import is_gate_prompt, leaks
from daemon.growth import candidate, steps
from daemon.growth.chronicle import Chronicle
from daemon.growth.context import Context, Powers
from daemon.growth.ground import Ground
from daemon.growth.purse import Purse
from daemon.harness.adapters import adapter
from daemon.harness.mutations import check
from daemon.store.codec import load
from reef.errors import Refused
from reef.recipe import turned_down
from reef.tree import Proposal


async def propose(chronicle: Chronicle, ground: Ground, row: RowMapping, purse: Purse) -> bool:
    """Ask the recipe and make a candidate of what it brings. False: there is none, and the step is done."""
    context = await _context(chronicle, ground, row, purse)
    before = load(row["notes"], [])
    try:
        proposal = await ground.recipe.propose(context)
    except Refused as error:
        await _refuse(chronicle, error, {"notes": before + context.notes})
        return False
    if ground.stops():
        raise Stopped("the step was cancelled")
    notes = before + context.notes
    if proposal is None:
        await chronicle.finish("skip", "this batch teaches nothing new", notes=notes)
        return False
    proposal = _stated(proposal)
    told = _told(proposal) | {"notes": [*notes, *proposal.notes]}
    if refused := _refusal(context, proposal):
        await _refuse(chronicle, refused, told)
        return False
    made = await candidate.make(
        chronicle.rooms.history.git,
        scenario=chronicle.scenario.name,
        step=chronicle.step,
        recipe=chronicle.scenario.recipe,
        base_release_id=row["base_release_id"],
        tree=ground.tree,
        mutations=proposal.mutations,
        summary=(proposal.title or proposal.reason).splitlines()[0],
        reason=proposal.reason,
        recorded_at=row["started_at"],
    )
    if made.content_id == row["base_content_id"]:
        await chronicle.finish("skip", "the proposal changes nothing", **told)
        return False
    await chronicle.save("evaluating", candidate_id=made.candidate_id, content_id=made.content_id, **told)
    return True


async def _refuse(chronicle: Chronicle, why: Refused, told: Mapping[str, Any]) -> None:
    refused = {"rule": why.rule, "message": why.message}
    await chronicle.finish("reject", f"refused: {why.message}", refused=refused, **told)


async def _context(chronicle: Chronicle, ground: Ground, row: RowMapping, purse: Purse) -> Context:
    rooms, scenario = chronicle.rooms, chronicle.scenario
    kinds = adapter(scenario.section.adapter).kinds
    leak_texts = leaks(ground.tasks)
    powers = Powers(
        caller=rooms.caller,
        purse=purse,
        runtime=ground.runtime,
        model=ground.model,
        episode_slots=rooms.episode_slots,
        check=lambda mutations: check(ground.tree, mutations, kinds_allowed=kinds, leak_texts=leak_texts),
        is_gate_prompt=partial(is_gate_prompt, ground.tasks),
        stops=ground.stops,
    )
    return Context(
        scenario=scenario.name,
        step=chronicle.step,
        seed=ground.seed,
        tree=ground.tree,
        content_id=row["base_content_id"],
        batch=ground.batch,
        history=await rooms.store.read(lambda connection: steps.history(connection, scenario.name)),
        tried=ground.tried,
        gate_tasks=ground.gate_tasks,
        shown=tuple(task for task in ground.tasks if task.split != "gate"),
        _powers=powers,
    )


def _stated(proposal: Proposal) -> Proposal:
    """With a title or a reason each release and each list can show: without white space around it, and where
    there is no reason the title is one."""
    title = proposal.title.strip()
    return replace(proposal, title=title, reason=proposal.reason.strip() or title)


def _refusal(context: Context, proposal: Proposal) -> Refused | None:
    if not proposal.reason:
        return Refused("no-reason", "the recipe gave neither a reason nor a title for its changes")
    if found := list(context.check(proposal.mutations)):
        return found[0]
    past = turned_down(proposal.mutations, context.content_id, context.gate_tasks, context.history)
    if past is None:
        return None
    return Refused("tried-before", f"step {past.step} tried the same on the same content")


def _told(proposal: Proposal) -> dict[str, Any]:
    """What a step's row keeps of a proposal."""
    return {
        "proposer": proposal.proposer,
        "mutations": [mutation.to_wire() for mutation in proposal.mutations],
        "reason": proposal.reason,
    }
