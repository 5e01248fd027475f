"""One step, from its batch to a decision. Each state's result is written before the next begins.

Proposing is `proposing.py`, the gate `measuring.py`, the money `admission.py`; here is which comes when.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import RowMapping

from daemon.evaluation.comparison import Stopped, being_cancelled
from daemon.evaluation.scores import Decision
from daemon.growth.admission import open_purse, wait_for_money
from daemon.growth.chronicle import CANCELLED, Chronicle
from daemon.growth.ground import Ground, survey
from daemon.growth.lease import Lease, LostLease
from daemon.growth.measuring import measure
from daemon.growth.proposing import propose
from daemon.growth.purse import OutOfMoney
from daemon.growth.rooms import Rooms
from daemon.releases.history import Publication
from daemon.serving.scenarios import Scenario
from daemon.store.codec import load
from reef.errors import Conflict, ReefError, Unavailable

log = logging.getLogger("reef.growth")

MAX_RESTARTS = 3


@dataclass(slots=True)
class StepRun:
    """Runs one step of one scenario. `run` returns when it is done or waits for a person."""

    rooms: Rooms
    scenario: Scenario
    lease: Lease
    step: int
    stopping: Callable[[], bool]
    _chronicle: Chronicle = field(init=False)

    def __post_init__(self) -> None:
        self._chronicle = Chronicle(self.rooms, self.scenario, self.lease, self.step)

    async def run(self) -> None:
        for _ in range(MAX_RESTARTS):
            try:
                await self._go_on()
                return
            except LostLease:
                raise
            except Conflict as error:
                await self._chronicle.start_over(error)
            except Exception as error:
                await self._end_after(error)
                return
        await self._chronicle.finish("error", "the served release kept changing while this step ran")

    async def _end_after(self, error: Exception) -> None:
        """Write down why it went no further; what broke because this task is being cancelled is no reason."""
        if being_cancelled():
            raise asyncio.CancelledError from error
        row = await self._chronicle.row()
        if row["state"] == "committing" and isinstance(error, Unavailable):
            raise error  # it is decided: the worker tries again until it is published
        if row["cancel_asked"] and row["state"] != "committing":
            await self._chronicle.finish("skip", CANCELLED)
        elif isinstance(error, Stopped):
            return
        elif isinstance(error, ReefError):
            await self._chronicle.finish("error", f"it could not be finished: {error.message}", error=error)
        else:
            log.error("step %s of %s failed", self.step, self.scenario.name, exc_info=error)
            bug = ReefError(f"{type(error).__name__}: {error}", hint="see `reef logs`")
            await self._chronicle.finish("error", "it failed on a bug, of Reef or of a plug-in", error=bug)

    def _stops(self) -> bool:
        return self.stopping() or (self.scenario.name, self.step) in self.rooms.cancelled

    async def _go_on(self) -> None:
        row = await self._chronicle.row()
        if row["state"] == "committing":
            await self._commit(row)
            return
        if row["cancel_asked"]:  # before a restart, or while nothing grew
            self.rooms.cancelled.add((self.scenario.name, self.step))
        if self._stops():
            raise Stopped("the step was cancelled")
        ground = await survey(self.rooms, self.scenario, row, self._stops)
        try:
            decision = await self._work_out(row, ground)
        except OutOfMoney as error:
            await wait_for_money(self._chronicle, ground, error.usd)
            return
        if decision is not None:
            await self._decide(decision)

    async def _work_out(self, row: RowMapping, ground: Ground) -> Decision | None:
        """Propose and measure, from where the step is. None: it came to no decision of the gate."""
        purse = await open_purse(self._chronicle, ground, row)
        if purse is None:
            return None
        if row["state"] in ("queued", "proposing"):
            if row["state"] == "queued":
                await self._chronicle.save("proposing")
            if not await propose(self._chronicle, ground, await self._chronicle.row(), purse):
                return None
        return await measure(self._chronicle, ground, await self._chronicle.row(), purse)

    async def _decide(self, decision: Decision) -> None:
        row, metrics = await self._chronicle.row(), dict(decision.metrics)
        if decision.for_person:
            await self._chronicle.wait_for_review(decision.sentence, metrics)
            return
        if decision.outcome != "select":
            await self._chronicle.finish(
                decision.outcome, decision.sentence, metrics=metrics | {"published": False}
            )
            return
        code = any(wire.get("options", {}).get("name") == "code_extension" for wire in load(row["mutations"]))
        if self.scenario.section.publish == "review" or code:
            why = "it changes code" if code else "publish is set to review"
            await self._chronicle.wait_for_review(f"{decision.sentence}; {why}, so a person decides", metrics)
            return
        await self._chronicle.save(
            "committing", metrics=metrics, outcome="select", decision=decision.sentence
        )
        await self._commit(await self._chronicle.row())

    async def _commit(self, row: RowMapping) -> None:
        """Publish what was decided. Safe to repeat."""
        metrics = load(row["metrics"]) | {"published": True}
        score, evidence = said(metrics)
        published = await self.rooms.history.publish(
            Publication(
                scenario=self.scenario.name,
                operation="training",
                content_id=row["content_id"],
                parent=row["base_release_id"],
                summary=row["reason"].splitlines()[0],
                body=row["decision"],
                score=score,
                evidence=evidence,
                recipe=row["recipe"],
                step=self.step,
                candidate_id=row["candidate_id"],
                metrics=metrics,
            )
        )
        await self._chronicle.finish(
            "select", row["decision"], metrics=metrics, release_id=published.release_id
        )


def said(metrics: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """What a release's commit says: its score, and the evidence for it."""
    scores = metrics.get("candidate_scores")
    score = f"{sum(scores.values()) / len(scores):.3f}" if scores else None
    if "wins" not in metrics:
        return score, ()
    return score, (f"{metrics['wins']} wins, {metrics['losses']} losses, {metrics['ties']} ties",)
