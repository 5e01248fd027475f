"""The day's money as rows: what growth spent, what its open steps may still spend, what calls under way hold.

A step keeps what it may spend in all (`steps.allowed_usd`) and each call adds to what it spent
(`spending`). What is kept for a step is the difference, as long as the step is open: nothing has to be
given back when it ends, or after a crash. A call under way holds the most that it can cost (`holds`);
what a crash leaves there counts as spent once somebody takes the lease that it was held under. Only
upstreams with a price cost money here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from daemon.growth.estimate import CallSize
from daemon.growth.lease import Lease, take
from daemon.growth.steps import OPEN_STATES
from daemon.store.schema import holds, scenarios, spending, steps
from reef.feedback import Usage
from reef.ids import new_receipt, now

_SUMS = ("usd", "calls", "input_tokens", "output_tokens")
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Hold:
    """What a call under way keeps of the day on which it was sent: `usd` is the most it can cost."""

    id: str
    day: str
    size: CallSize
    usd: float

    @classmethod
    def of(cls, size: CallSize, usd: float) -> "Hold":
        return cls(new_receipt(), _today(), size, usd)


def spent_today(connection: Connection) -> float:
    """US dollars that growth spent today (UTC), over all scenarios."""
    query = select(func.sum(spending.c.usd)).where(spending.c.day == _today())
    return float(connection.execute(query).scalar() or 0.0)


def free_today(connection: Connection, limit: float) -> float:
    """US dollars of today's `limit` that are neither spent, nor held by a call, nor kept for an open step."""
    query = (
        select(steps.c.scenario, steps.c.step)
        .join(scenarios, scenarios.c.scenario == steps.c.scenario)
        .where(
            steps.c.state.in_(OPEN_STATES),
            steps.c.allowed_usd.is_not(None),
            scenarios.c.archived_at.is_(None),
        )
    )
    kept = sum(max(left_of(connection, *step), 0.0) for step in connection.execute(query).all())
    held = connection.execute(select(func.sum(holds.c.usd)).where(holds.c.day == _today())).scalar()
    return limit - spent_today(connection) - (held or 0.0) - kept


def reserve(connection: Connection, scenario: str, step: int, usd: float, *, limit: float) -> bool:
    """Keep `usd` more for a step, if that much of today's `limit` is free. Nothing is always free."""
    if usd > 0 and usd > free_today(connection, limit) + _ROUNDING:
        return False
    known = connection.execute(
        select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    ).scalar()
    before = _taken_by(connection, scenario, step) if known is None else known
    _allow(connection, scenario, step, before + usd)
    return True


def allow(connection: Connection, scenario: str, step: int, usd: float) -> None:
    """Let a step spend `usd` from now on, whatever the limit says: a person is to decide on it."""
    _allow(connection, scenario, step, _taken_by(connection, scenario, step) + usd)


def give_back(connection: Connection, idle: Sequence[str]) -> None:
    """Keep nothing more for the open steps of scenarios that nobody grows; when somebody does, they are
    asked about their money again."""
    for name in idle:
        theirs = update(steps).where(steps.c.scenario == name, steps.c.state.in_(OPEN_STATES))
        connection.execute(theirs.values(allowed_usd=None))


def hold(connection: Connection, lease: Lease, step: int, call: Hold, *, limit: float) -> bool:
    """Hold what a call can cost at most: of what is kept for its step, and of today's `limit` where that is
    too little. False: there is not that much."""
    scenario = lease.scenario
    missing = call.usd - left_of(connection, scenario, step)
    if call.usd > 0 and missing > _ROUNDING and not reserve(connection, scenario, step, missing, limit=limit):
        return False
    row = {"id": call.id, "day": call.day, "scenario": scenario, "step": step, "epoch": lease.epoch}
    most = {"input_tokens": call.size.most_input_tokens, "output_tokens": call.size.output_tokens}
    connection.execute(insert(holds), row | most | {"usd": call.usd})
    return True


def let_go(connection: Connection, call: Hold) -> bool:
    """Hold nothing more for a call. False: nothing was held, since it is counted already. Safe to repeat."""
    return connection.execute(delete(holds).where(holds.c.id == call.id)).rowcount == 1


def settle_leftovers(connection: Connection, lease: Lease) -> int:
    """Count what calls of earlier holders of a scenario's lease still hold as spent: nobody knows what they
    cost. Returns how many."""
    earlier = (holds.c.scenario == lease.scenario, holds.c.epoch < lease.epoch)
    left = connection.execute(select(holds).where(*earlier)).mappings().all()
    for row in left:
        usage = Usage(row["input_tokens"], row["output_tokens"], cost=row["usd"])
        add_spending(connection, row["scenario"], row["step"], usage, day=row["day"])
    connection.execute(delete(holds).where(*earlier))
    return len(left)


def settle_all_leftovers(connection: Connection, holder: str) -> None:
    """`settle_leftovers` of every scenario whose lease `holder` can take: when it starts, all but those that
    another daemon grows."""
    for scenario in connection.execute(select(holds.c.scenario).distinct()).scalars().all():
        if (lease := take(connection, scenario, holder)) is not None:
            settle_leftovers(connection, lease)


def left_of(connection: Connection, scenario: str, step: int) -> float:
    """US dollars that a step may still spend of what was kept for it and no call holds; below zero when it
    took more."""
    query = select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    return (connection.execute(query).scalar() or 0.0) - _taken_by(connection, scenario, step)


def spent_by(connection: Connection, scenario: str, step: int) -> float:
    """US dollars that a step has spent."""
    return float(_sums(connection, scenario, step)["usd"])


def cost_of(connection: Connection, scenario: str, step: int) -> dict[str, Any]:
    """All the calls of a step: proposing, narrowing and the gate. `money` is None where no price is known."""
    sums = _sums(connection, scenario, step)
    query = select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    priced = connection.execute(query).scalar() is not None or sums["usd"] > 0
    return {key: sums[key] for key in _SUMS if key != "usd"} | {"money": sums["usd"] if priced else None}


def add_spending(
    connection: Connection, scenario: str, step: int, usage: Usage, *, day: str | None = None
) -> None:
    """Count one call of growth, today or on the `day` (UTC date) it was sent."""
    row = {
        "day": day or _today(),
        "scenario": scenario,
        "step": step,
        "usd": usage.cost or 0.0,
        "calls": 1,
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
    }
    connection.execute(_adding(connection.dialect.name), row)


def _allow(connection: Connection, scenario: str, step: int, usd: float) -> None:
    where = (steps.c.scenario == scenario, steps.c.step == step)
    connection.execute(update(steps).where(*where).values(allowed_usd=usd))


def _taken_by(connection: Connection, scenario: str, step: int) -> float:
    """What a step has spent, and what its calls hold."""
    query = select(func.sum(holds.c.usd)).where(holds.c.scenario == scenario, holds.c.step == step)
    return spent_by(connection, scenario, step) + (connection.execute(query).scalar() or 0.0)


def _sums(connection: Connection, scenario: str, step: int) -> dict[str, Any]:
    sums = [func.coalesce(func.sum(spending.c[key]), 0).label(key) for key in _SUMS]
    query = select(*sums).where(spending.c.scenario == scenario, spending.c.step == step)
    return dict(connection.execute(query).mappings().one())


@cache
def _adding(dialect: str) -> Insert:
    """Insert a day's row, or add to it. Built once: every episode runs it."""
    insert_into = (postgresql if dialect == "postgresql" else sqlite).insert(spending)
    sums = {key: spending.c[key] + insert_into.excluded[key] for key in _SUMS}
    adding: Insert = insert_into.on_conflict_do_update(index_elements=["scenario", "step", "day"], set_=sums)
    return adding


def _today() -> str:
    return now().strftime("%Y-%m-%d")
