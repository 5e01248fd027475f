"""Whether a step may run: its estimate against what is left of today's limit, else it waits for a person.

The day's money is `budget.py`, how large calls are `estimate.py`, the money of each call `purse.py`.
"""

from sqlalchemy import Connection, RowMapping, select

from daemon.evaluation.scores import EpisodeKey
from daemon.growth import budget
from daemon.growth.chronicle import Chronicle
from daemon.growth.estimate import CallSize, Estimate, gate_calls, proposer_calls
from daemon.growth.ground import Ground
from daemon.growth.lease import prove
from daemon.growth.purse import Purse
from daemon.harness.render import chat_prefix
from daemon.store.codec import load
from daemon.store.schema import episodes
from daemon.wire.prefix import Prefix
from reef.money import dollars
from reef.tasks import Side

EXPECTED = "expected: "
"""Begins the note that tells what a step was expected to take when it began."""


async def open_purse(chronicle: Chronicle, ground: Ground, row: RowMapping) -> Purse | None:
    """The purse for what is left of a step; None: there is no money for it, and it waits for a person.

    The check and keeping the money for the step are one transaction. A step that has some kept already
    (from before a restart, or because a person let it run) is not asked again.
    """
    limit = chronicle.rooms.limits.usd_per_day
    purse = Purse(chronicle.rooms.store, chronicle.lease, chronicle.step, ground.price, limit)
    expected = Estimate.of(await _calls(chronicle, ground, row), ground.price)
    notes = load(row["notes"], [])
    if expected.calls and not any(note.startswith(EXPECTED) for note in notes):
        await chronicle.save(row["state"], notes=[*notes, f"{EXPECTED}{expected.sentence()}"])

    def work(connection: Connection) -> tuple[bool, float, float]:
        prove(connection, chronicle.lease)
        name, step = chronicle.scenario.name, chronicle.step
        fine = row["allowed_usd"] is not None or budget.reserve(
            connection, name, step, expected.usd or 0.0, limit=limit
        )
        return fine, budget.left_of(connection, name, step), budget.free_today(connection, limit)

    if ground.price is None:
        return purse
    fine, purse.left, purse.free = await chronicle.rooms.store.write(work)
    if fine:
        return purse
    await _wait(chronicle, expected.usd or 0.0)
    return None


async def wait_for_money(chronicle: Chronicle, ground: Ground, next_call: float) -> None:
    """Stop a step that ran out of money where it is; a person may let it go on for what it still needs: its
    `next_call` (US dollars) at least."""
    row = await chronicle.row()
    expected = Estimate.of(await _calls(chronicle, ground, row), ground.price)
    await _wait(chronicle, max(expected.usd or 0.0, next_call))


async def _wait(chronicle: Chronicle, usd: float) -> None:
    """What it needs is allowed in the commit that lets it wait: it counts as soon as a person opens the step
    again, and never before."""
    limit = chronicle.rooms.limits.usd_per_day
    name, step = chronicle.scenario.name, chronicle.step

    def allow(connection: Connection) -> str:
        spent = budget.spent_by(connection, name, step)
        left = budget.free_today(connection, limit) + max(budget.left_of(connection, name, step), 0.0)
        budget.allow(connection, name, step, usd)
        return (
            f"it may cost {dollars(usd)} {'more' if spent else ''}".strip()
            + f" and {dollars(max(left, 0.0))} of today's {dollars(limit)} is left"
            + (f" (it has spent {dollars(spent)})" if spent else "")
            + f"; `reef step {step} -s {name} --run` {'lets it go on' if spent else 'runs it'}"
        )

    await chronicle.wait_for_money(allow)


async def _calls(chronicle: Chronicle, ground: Ground, row: RowMapping) -> list[CallSize]:
    """The model calls that a step still has to make."""
    before = chat_prefix(ground.tree)
    prefixes: dict[Side, Prefix | None] = {"current": before}
    sizes: list[CallSize] = []
    done: set[EpisodeKey] = set()
    if row["state"] not in ("queued", "proposing"):
        prefixes["candidate"] = chat_prefix(await chronicle.rooms.scenarios.tree(row["content_id"]))
        done = await chronicle.rooms.store.read(lambda connection: _finished(connection, row))
    elif ground.recipe.needs_model(ground.tried):
        sizes += proposer_calls(ground.batch, before)
    return sizes + list(gate_calls(ground.plan, prefixes, chronicle.scenario.section.gate.max_tokens, done))


def _finished(connection: Connection, row: RowMapping) -> set[EpisodeKey]:
    query = select(episodes.c.task, episodes.c.side, episodes.c.repeat).where(
        episodes.c.scenario == row["scenario"],
        episodes.c.step == row["step"],
        episodes.c.status != "error",
    )
    return {(task, side, repeat) for task, side, repeat in connection.execute(query)}
