"""Judging: every (report, receipt, recipe) gets a verdict with a reason.

Some rules hold for all recipes (opted out, not a turn, not complete, superseded); what is left is
the recipe's own decision. A report is stored before it is judged, so a crash in between only means
that it is judged at the next start.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from daemon.events import EventBus
from daemon.records.book import RecordBook
from daemon.records.query import exchange_of
from daemon.records.retries import counting
from daemon.store.codec import load
from daemon.store.schema import pairs, records, reports
from daemon.store.store import Store
from reef.feedback import Report, Verdict
from reef.ids import now, rfc3339
from reef.recipe import Recipe

log = logging.getLogger("reef.records")

STATE_OF = {"train": "eligible", "wait": "pending", "never": "ineligible"}
ELIGIBLE = Verdict("train", "waiting_for_batch", "it may teach; it waits for a batch")


class Judge:
    """Gives verdicts. `recipe_of(scenario)` returns the recipe that a scenario learns with."""

    def __init__(
        self, store: Store, book: RecordBook, recipe_of: Callable[[str], Recipe], events: EventBus
    ) -> None:
        self._store = store
        self._book = book
        self._recipe_of = recipe_of
        self._events = events

    async def judge(self, report_id: str) -> None:
        """Decide the undecided pairs of one report."""
        report, waiting = await self._store.read(lambda connection: _open_pairs(connection, report_id))
        if report is None:
            return
        verdicts = await asyncio.to_thread(self._verdicts, report, [pair["receipt"] for pair in waiting])
        await self._store.write(lambda connection: _write(connection, report_id, verdicts))
        for receipt, verdict in verdicts.items():
            self._events.publish(
                "verdict",
                report.scenario,
                report=report_id,
                receipt=receipt or None,
                state=STATE_OF[verdict.decision],
                reason=verdict.reason,
                step=None,
            )

    async def stored(self, receipt: str) -> None:
        """A record was stored: judge the reports that waited for it."""
        query = (
            select(pairs.c.report).where(pairs.c.receipt == receipt, pairs.c.state == "pending").distinct()
        )
        waiting = await self._store.read(lambda connection: list(connection.execute(query).scalars()))
        for report_id in waiting:
            await self.judge(report_id)

    async def recover(self) -> None:
        """At start: judge what was stored and not judged. A receipt never stored is lost by now."""
        query = select(pairs.c.report).where(pairs.c.state == "pending").distinct()
        unjudged = select(reports.c.id).where(reports.c.judged.is_(False))
        owed = await self._store.read(
            lambda connection: {*connection.execute(query).scalars(), *connection.execute(unjudged).scalars()}
        )
        for report_id in sorted(owed):
            await self.judge(report_id)

    def _verdicts(self, report: Report, receipts: list[str]) -> dict[str, Verdict]:
        recipe = self._recipe_of(report.scenario)
        return {receipt: self._verdict(recipe, report, receipt) for receipt in receipts}

    def _verdict(self, recipe: Recipe, report: Report, receipt: str) -> Verdict:
        if not receipt:
            return Verdict(
                "never", "no_reference", "the report names no receipt, so there is nothing to learn from"
            )
        training = report.metadata.get("training")
        if isinstance(training, dict) and training.get("eligible") is False:
            return Verdict("never", "opted_out", "the report asks not to be learnt from")
        running = self._book.running_in(receipt) is not None  # asked first: a record may land in between
        row = self._store.read_now(
            lambda connection: (
                connection.execute(select(records).where(records.c.id == receipt)).mappings().first()
            )
        )
        if row is None:
            if running:
                return Verdict("wait", "waiting_for_record", "the exchange is still running")
            return Verdict("never", "lost", "the exchange was never stored; the daemon stopped while it ran")
        if refusal := _refusal(row):
            return refusal
        if mark := row["superseded_by"]:
            counts = self._store.read_now(lambda connection: counting(connection, receipt, mark))
            return Verdict("never", "superseded", f"the client sent it again; {counts} counts instead")
        exchange = self._store.read_now(lambda connection: exchange_of(connection, row))
        try:
            verdict = recipe.judge(report, exchange)
        except Exception as error:
            log.exception("recipe %s could not judge report %s", type(recipe).__name__, report.id)
            return Verdict("wait", "x:judge_failed", f"the recipe could not judge it: {error!r}")
        return ELIGIBLE if verdict.decision == "train" and not verdict.reason else verdict


def _refusal(row: RowMapping) -> Verdict | None:
    if row["kind"] != "turn":
        return Verdict(
            "never", "not_a_turn", f"the record is no turn of a conversation but of kind {row['kind']}"
        )
    if row["status"] != "complete":
        return Verdict(
            "never", "not_complete", f"the exchange is {row['status']}, so its answer is not whole"
        )
    return None


def report_of(row: RowMapping) -> Report:
    """A stored report as a recipe sees it. The row carries `created_at` beside the report's columns."""
    return Report(
        id=row["id"],
        scenario=row["scenario"],
        created_at=datetime.fromisoformat(row["created_at"]),
        score=row["score"],
        feedback=load(row["feedback"]),
        references=tuple(load(row["references"], [])),
        metadata=load(row["metadata"], {}),
        preferred=row["preferred"],
        over=row["over"],
    )


def report_query() -> Any:
    """Reports with the time and sequence of their record."""
    return select(reports, records.c.created_at, records.c.sequence).join(
        records, records.c.id == reports.c.id
    )


def _open_pairs(connection: Connection, report_id: str) -> tuple[Report | None, list[RowMapping]]:
    row = connection.execute(report_query().where(reports.c.id == report_id)).mappings().first()
    if row is None:
        return None, []
    waiting = connection.execute(
        select(pairs).where(pairs.c.report == report_id, pairs.c.state == "pending")
    ).mappings()
    return report_of(row), list(waiting)


def _write(connection: Connection, report_id: str, verdicts: dict[str, Verdict]) -> None:
    moment = rfc3339(now())
    for receipt, verdict in verdicts.items():
        connection.execute(
            update(pairs)
            .where(pairs.c.report == report_id, pairs.c.receipt == receipt, pairs.c.state == "pending")
            .values(
                state=STATE_OF[verdict.decision],
                reason=verdict.reason,
                message=verdict.message,
                updated_at=moment,
            )
        )
    connection.execute(update(reports).where(reports.c.id == report_id).values(judged=True))
