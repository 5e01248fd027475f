"""Whether a step may run: its estimate against what is left of today's limit, and waiting for a person."""

from sqlalchemy import Connection, RowMapping, select

from daemon.evaluation.scores import EpisodeKey
from daemon.growth import budget
from daemon.growth.estimate import CallSize, Estimate, dollars, gate_calls, proposer_calls
from daemon.growth.ground import Ground
from daemon.growth.lease import prove
from daemon.growth.ledger import Ledger
from daemon.growth.purse import Purse
from daemon.harness.render import chat_prefix
from daemon.store.codec import load
from daemon.store.schema import episodes
from daemon.wire.prefix import Prefix
from reef.tasks import Side

EXPECTED = "expected: "
"""Begins the note that tells what a step was expected to take when it began."""


async def open_purse(book: Ledger, ground: Ground, row: RowMapping) -> Purse | None:
    """The purse for what is left of a step; None: there is no money for it, and it waits for a person.

    The check and keeping the money for the step are one transaction. A step that has some kept already
    (from before a restart, or because a person let it run) is not asked again.
    """
    limit = book.rooms.limits.usd_per_day
    purse = Purse(book.rooms.store, book.scenario.name, book.step, ground.price, limit)
    expected = Estimate.of(await _calls(book, ground, row), ground.price)
    notes = load(row["notes"], [])
    if expected.calls and not any(note.startswith(EXPECTED) for note in notes):
        await book.save(row["state"], notes=[*notes, f"{EXPECTED}{expected.sentence()}"])

    def work(connection: Connection) -> tuple[bool, float, float]:
        prove(connection, book.lease)
        name, step = book.scenario.name, book.step
        fine = row["allowed_usd"] is not None or budget.reserve(
            connection, name, step, expected.usd or 0.0, limit=limit
        )
        return fine, budget.left_of(connection, name, step), budget.free_today(connection, limit)

    if ground.price is None:
        return purse
    fine, purse.left, purse.free = await book.rooms.store.write(work)
    if fine:
        return purse
    await _wait(book, expected)
    return None


async def wait_for_money(book: Ledger, ground: Ground) -> None:
    """Stop a step that ran out of money where it is; a person may let it go on for what it still needs."""
    row = await book.row()
    await _wait(book, Estimate.of(await _calls(book, ground, row), ground.price))


async def _wait(book: Ledger, expected: Estimate) -> None:
    """What it needs is allowed already: it counts as soon as the step is open again."""
    usd, limit = expected.usd or 0.0, book.rooms.limits.usd_per_day
    name, step = book.scenario.name, book.step

    def work(connection: Connection) -> tuple[float, float]:
        spent = budget.spent_by(connection, name, step)
        free = budget.free_today(connection, limit) + max(budget.left_of(connection, name, step), 0.0)
        budget.allow(connection, name, step, usd)
        return spent, max(free, 0.0)

    spent, free = await book.rooms.store.write(work)
    sentence = (
        f"it may cost {dollars(usd)} {'more' if spent else ''}".strip()
        + f" and {dollars(free)} of today's {dollars(limit)} is left"
        + (f" (it has spent {dollars(spent)})" if spent else "")
        + f"; `reef step {step} -s {name} --run` {'lets it go on' if spent else 'runs it'}"
    )
    await book.save("waiting", waits_for="money", decision=sentence)


async def _calls(book: Ledger, ground: Ground, row: RowMapping) -> list[CallSize]:
    """The model calls that a step still has to make."""
    before = chat_prefix(ground.tree)
    prefixes: dict[Side, Prefix | None] = {"current": before}
    sizes: list[CallSize] = []
    done: set[EpisodeKey] = set()
    if row["state"] not in ("queued", "proposing"):
        prefixes["candidate"] = chat_prefix(await book.rooms.scenarios.tree(row["content_id"]))
        done = await book.rooms.store.read(lambda connection: _finished(connection, row))
    elif ground.recipe.needs_model():
        sizes += proposer_calls(ground.batch, before)
    return sizes + list(gate_calls(ground.plan, prefixes, book.scenario.section.gate.max_tokens, done))


def _finished(connection: Connection, row: RowMapping) -> set[EpisodeKey]:
    query = select(episodes.c.task, episodes.c.side, episodes.c.repeat).where(
        episodes.c.scenario == row["scenario"],
        episodes.c.step == row["step"],
        episodes.c.status != "error",
    )
    return {(task, side, repeat) for task, side, repeat in connection.execute(query)}
