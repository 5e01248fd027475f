"""Money as rows: what growth spent, and what its open steps may still spend.

A step keeps what it may spend in all (`steps.allowed_usd`) and each call adds to what it spent
(`spending`). What is kept for a step is the difference, as long as the step is open: nothing has to be
given back when it ends, or after a crash. Only upstreams with a price cost money here.
"""

from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from daemon.growth.steps import OPEN_STATES
from daemon.store.schema import scenarios, spending, steps
from reef.feedback import Usage
from reef.ids import now

_SUMS = ("usd", "calls", "input_tokens", "output_tokens")


def spent_today(connection: Connection) -> float:
    """US dollars that growth spent today (UTC), over all scenarios."""
    query = select(func.sum(spending.c.usd)).where(spending.c.day == _today())
    return float(connection.execute(query).scalar() or 0.0)


def free_today(connection: Connection, limit: float) -> float:
    """US dollars of today's `limit` that are neither spent nor kept for an open step."""
    query = (
        select(steps.c.allowed_usd, func.coalesce(func.sum(spending.c.usd), 0.0))
        .join(scenarios, scenarios.c.scenario == steps.c.scenario)
        .outerjoin(spending, (spending.c.scenario == steps.c.scenario) & (spending.c.step == steps.c.step))
        .where(
            steps.c.state.in_(OPEN_STATES),
            steps.c.allowed_usd.is_not(None),
            scenarios.c.archived_at.is_(None),
        )
        .group_by(steps.c.scenario, steps.c.step, steps.c.allowed_usd)
    )
    kept: float = sum(max(allowed - spent, 0.0) for allowed, spent in connection.execute(query))
    return limit - spent_today(connection) - kept


def reserve(connection: Connection, scenario: str, step: int, usd: float, *, limit: float) -> bool:
    """Keep `usd` more for a step, if that much of today's `limit` is free."""
    if usd > free_today(connection, limit) + 1e-9:
        return False
    known = connection.execute(
        select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    ).scalar()
    before = spent_by(connection, scenario, step) if known is None else known
    _allow(connection, scenario, step, before + usd)
    return True


def allow(connection: Connection, scenario: str, step: int, usd: float) -> None:
    """Let a step spend `usd` from now on, whatever the limit says: a person is to decide on it."""
    _allow(connection, scenario, step, spent_by(connection, scenario, step) + usd)


def left_of(connection: Connection, scenario: str, step: int) -> float:
    """US dollars that a step may still spend of what was kept for it; below zero when it took more."""
    query = select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    return (connection.execute(query).scalar() or 0.0) - spent_by(connection, scenario, step)


def spent_by(connection: Connection, scenario: str, step: int) -> float:
    """US dollars that a step has spent."""
    return float(_sums(connection, scenario, step)["usd"])


def cost_of(connection: Connection, scenario: str, step: int) -> dict[str, Any]:
    """All the calls of a step: proposing, narrowing and the gate. `money` is None where no price is known."""
    sums = _sums(connection, scenario, step)
    query = select(steps.c.allowed_usd).where(steps.c.scenario == scenario, steps.c.step == step)
    priced = connection.execute(query).scalar() is not None
    return {key: sums[key] for key in _SUMS if key != "usd"} | {"money": sums["usd"] if priced else None}


def add_spending(connection: Connection, scenario: str, step: int, usage: Usage) -> None:
    """Count one call of growth."""
    row = {
        "day": _today(),
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


def _sums(connection: Connection, scenario: str, step: int) -> dict[str, Any]:
    sums = [func.coalesce(func.sum(spending.c[key]), 0).label(key) for key in _SUMS]
    query = select(*sums).where(spending.c.scenario == scenario, spending.c.step == step)
    return dict(connection.execute(query).mappings().one())


@cache
def _adding(dialect: str) -> Insert:
    """Insert a day's row, or add to it. Built once: every episode runs it."""
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(spending)
    sums = {key: spending.c[key] + insert.excluded[key] for key in _SUMS}
    adding: Insert = insert.on_conflict_do_update(index_elements=["scenario", "step", "day"], set_=sums)
    return adding


def _today() -> str:
    return now().strftime("%Y-%m-%d")
