"""Batches: which reports may teach together, and consuming them exactly once."""

from typing import Any

from sqlalchemy import Connection, case, exists, func, select, update

from daemon.records.judging import report_of, report_query
from daemon.records.query import exchange_of, find
from daemon.store.codec import load
from daemon.store.schema import pairs, records, reports, scenarios
from reef.errors import NotFound
from reef.feedback import BatchUnit
from reef.ids import now, rfc3339

_STATES = ("consumed", "eligible", "pending", "ineligible")
"""In the order in which a report takes the state of its pairs."""
LISTED = 1000
"""Reports in one listing."""


def ready_reports(connection: Connection, scenario: str, recipe: str, limit: int) -> list[str]:
    """The oldest reports with an eligible pair and none that still waits. At most `limit`."""
    return _ready(connection, scenario, recipe, "report", limit)


def ready_instructions(connection: Connection, scenario: str, recipe: str, limit: int) -> list[str]:
    """The oldest instructions that had no step yet. At most `limit`."""
    return _ready(connection, scenario, recipe, "train", limit)


def _ready(connection: Connection, scenario: str, recipe: str, request_type: str, limit: int) -> list[str]:
    other = pairs.alias()
    waits = exists().where(other.c.report == pairs.c.report, other.c.state == "pending")
    query = (
        select(pairs.c.report, records.c.sequence)
        .join(records, records.c.id == pairs.c.report)
        .where(pairs.c.scenario == scenario, pairs.c.recipe == recipe, pairs.c.state == "eligible", ~waits)
        .where(records.c.request_type == request_type)
        .distinct()
        .order_by(records.c.sequence)
        .limit(limit)
    )
    return [row.report for row in connection.execute(query)]


def consume(connection: Connection, report_ids: list[str], recipe: str, step: int) -> list[dict[str, Any]]:
    """Mark the eligible pairs of these reports as consumed by `step`.

    Returns the batch as it is kept with the step: `[{"report", "receipts"}]`.
    """
    batch = []
    for report_id in report_ids:
        receipts = connection.execute(
            select(pairs.c.receipt).where(
                pairs.c.report == report_id,
                pairs.c.recipe == recipe,
                pairs.c.state == "eligible",
                pairs.c.receipt != "",
            )
        ).scalars()
        batch.append({"report": report_id, "receipts": sorted(receipts)})
    connection.execute(
        update(pairs)
        .where(pairs.c.report.in_(report_ids), pairs.c.recipe == recipe, pairs.c.state == "eligible")
        .values(
            state="consumed",
            reason="",
            message=f"it went into step {step}",
            step=step,
            updated_at=rfc3339(now()),
        )
    )
    return batch


def load_batch(connection: Connection, batch: list[dict[str, Any]]) -> list[BatchUnit]:
    """A kept batch with its reports and exchanges."""
    units = []
    for unit in batch:
        row = connection.execute(report_query().where(reports.c.id == unit["report"])).mappings().first()
        if row is None:
            continue
        exchanges = tuple(exchange_of(connection, find(connection, receipt)) for receipt in unit["receipts"])
        units.append(BatchUnit(report_of(row), exchanges))
    return units


def counts(connection: Connection, scenario: str) -> dict[str, int]:
    """How many records, and reports by state."""
    taken = select(scenarios.c.next_sequence).where(scenarios.c.scenario == scenario)
    rank = func.min(case({state: at for at, state in enumerate(_STATES)}, value=pairs.c.state))
    by_report = (
        select(rank.label("rank")).where(pairs.c.scenario == scenario).group_by(pairs.c.report).subquery()
    )
    by_rank = select(by_report.c.rank, func.count()).group_by(by_report.c.rank)
    found = {_STATES[at]: count for at, count in connection.execute(by_rank)}
    records_stored = connection.execute(taken).scalar_one() - 1
    return {"records": records_stored} | {state: found.get(state, 0) for state in _STATES}


def newest_record(connection: Connection, scenario: str) -> str | None:
    """When the scenario's newest record was made; None before the first."""
    mine = select(records.c.created_at).where(records.c.scenario == scenario)
    return connection.execute(mine.order_by(records.c.sequence.desc()).limit(1)).scalar()


def report_state(states: set[str]) -> str:
    return next((state for state in _STATES if state in states), "pending")


def report_listing(
    connection: Connection,
    scenario: str | None = None,
    state: str | None = None,
    report_id: str | None = None,
) -> list[dict[str, Any]]:
    """The newest reports with their pairs (protocol section 3). Raises `NotFound` for an unknown id."""
    query = report_query()
    if scenario is not None:
        query = query.where(reports.c.scenario == scenario)
    if report_id is not None:
        query = query.where(reports.c.id == report_id)
    if state is not None:
        query = query.where(exists().where(pairs.c.report == reports.c.id, pairs.c.state == state))
    newest = query.order_by(records.c.created_at.desc(), records.c.id.desc()).limit(LISTED)
    rows = connection.execute(newest).mappings().all()
    if report_id is not None and not rows:
        raise NotFound(f"no report `{report_id}`", hint="see `reef pending`")
    joined: dict[str, list[dict[str, Any]]] = {}
    wanted = [row["id"] for row in rows]
    for pair in connection.execute(select(pairs).where(pairs.c.report.in_(wanted))).mappings():
        told = {key: pair[key] for key in ("recipe", "state", "message", "step")}
        told |= {"receipt": pair["receipt"] or None, "reason": pair["reason"] or None}
        joined.setdefault(pair["report"], []).append(told)
    listed = [_report_to_wire(row, joined.get(row["id"], [])) for row in rows]
    return [report for report in listed if state is None or report["state"] == state]


def _report_to_wire(row: Any, joined: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "agent_record_id": row["id"],
        "scenario": row["scenario"],
        "sequence": row["sequence"],
        "created_at": row["created_at"],
        "score": row["score"],
        "feedback": load(row["feedback"]),
        "metadata": load(row["metadata"], {}),
        "references": load(row["references"], []),
        "state": report_state({pair["state"] for pair in joined}),
        "pairs": joined,
    }
