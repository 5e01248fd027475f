"""Writing down what a step has come to: its own row and its row in the release history, in one commit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping

from daemon.evaluation.comparison import Stopped
from daemon.growth import budget, steps
from daemon.growth.lease import Lease, prove
from daemon.growth.rooms import Rooms
from daemon.releases import catalog
from daemon.serving.scenarios import Scenario
from daemon.store.codec import load
from reef.errors import Conflict, ReefError
from reef.ids import now, rfc3339

CANCELLED = "cancelled by a person"


@dataclass(slots=True)
class Chronicle:
    """The rows of one step."""

    rooms: Rooms
    scenario: Scenario
    lease: Lease
    step: int

    async def row(self) -> RowMapping:
        return await self.rooms.store.read(
            lambda connection: steps.get(connection, self.scenario.name, self.step)
        )

    async def save(self, state: str, **values: Any) -> None:
        """Write what the step has worked out, before its next state begins."""
        await self._write(state, values)

    async def wait_for_review(self, why: str, metrics: dict[str, Any]) -> None:
        """Leave the candidate to a person."""
        values = {
            "waits_for": "review",
            "decision": why,
            "pending": True,
            "metrics": metrics,
            "outcome": None,
        }
        row = await self._write("waiting", values, outcome=(why, metrics))
        self.rooms.events.publish(
            "release",
            self.scenario.name,
            step=self.step,
            release_id=row["candidate_id"],
            content_id=row["content_id"],
            operation="training",
            current=False,
            pending=True,
        )

    async def wait_for_money(self, allow: Callable[[Connection], str]) -> None:
        """Leave it to a person whether the step may cost more. `allow` keeps that much for it, in the same
        commit, and says why."""
        await self._write("waiting", {"waits_for": "money"}, decide=allow)

    async def finish(
        self, outcome: str, sentence: str, *, error: ReefError | None = None, **values: Any
    ) -> None:
        """End the step. One that was not selected hands its batch on to the next proposer."""
        values["error"] = {"message": error.message, "hint": error.hint} if error else None
        recipe, policy = self.rooms.recipe_of(self.scenario.name), self.scenario.section.gate.policy

        def work(connection: Connection) -> None:
            prove(connection, self.lease)
            row = end(connection, self.scenario.name, self.step, outcome, sentence, policy=policy, **values)
            if outcome in ("reject", "inconclusive"):
                steps.carry_on(connection, self.lease, row, recipe.proposers_left)

        await self.rooms.store.write(work)
        self.rooms.cancelled.discard((self.scenario.name, self.step))
        self._tell("done", outcome, sentence)
        if error is not None:
            self.rooms.events.publish(
                "error", self.scenario.name, where=f"step {self.step}", message=error.message, hint=error.hint
            )

    async def start_over(self, error: Conflict) -> None:
        """The head moved while this step ran: what was measured no longer compares with what is served."""

        def work(connection: Connection) -> None:
            notes = load(steps.get(connection, self.scenario.name, self.step)["notes"], [])
            steps.forget_episodes(connection, self.scenario.name, self.step)
            steps.save(
                connection,
                self.lease,
                self.step,
                state="proposing",
                base_release_id=self.scenario.head.release_id,
                base_content_id=self.scenario.head.content_id,
                candidate_id=None,
                content_id=None,
                metrics=None,
                notes=[*notes, f"started over: {error.message}"],
            )

        await self.rooms.store.write(work)

    async def _write(
        self,
        state: str,
        values: dict[str, Any],
        *,
        outcome: tuple[str, dict[str, Any]] | None = None,
        decide: Callable[[Connection], str] | None = None,
    ) -> RowMapping:
        """Raises `Stopped` when a person has cancelled the step: it is neither published nor left to one."""

        def work(connection: Connection) -> RowMapping:
            prove(connection, self.lease)
            row = steps.get(connection, self.scenario.name, self.step)
            if row["cancel_asked"] and state in ("waiting", "committing"):
                raise Stopped("the step was cancelled")
            if decide is not None:
                values["decision"] = decide(connection)
            steps.save(connection, self.lease, self.step, state=state, **values)
            row = steps.get(connection, self.scenario.name, self.step)
            if outcome is not None:
                _add_to_history(connection, row, *outcome)
            return row

        row = await self.rooms.store.write(work)
        self._tell(state, values.get("outcome"), values.get("decision"))
        return row

    def _tell(self, state: str, outcome: str | None, decision: str | None) -> None:
        self.rooms.events.publish(
            "step", self.scenario.name, step=self.step, state=state, outcome=outcome, decision=decision
        )


def end(
    connection: Connection,
    scenario: str,
    step: int,
    outcome: str,
    sentence: str,
    *,
    policy: str,
    **values: Any,
) -> RowMapping:
    """End a step: its own row and, where it published nothing, its row in the release history."""
    before = steps.get(connection, scenario, step)
    metrics = dict(values.get("metrics") or load(before["metrics"]) or {"published": False})
    if outcome != "select":
        spent = budget.cost_of(connection, scenario, step)
        if spent["calls"]:
            metrics["cost"] = (metrics.get("cost") or {}) | spent
        if (metrics.get("selection") or {}).get("outcome") != outcome:
            metrics["selection"] = {"policy": policy, "outcome": outcome, "reason": sentence}
    values |= {
        "state": "done",
        "outcome": outcome,
        "decision": sentence,
        "waits_for": None,
        "cancel_asked": False,
        "finished_at": rfc3339(now()),
        "metrics": metrics,
    }
    steps.write(connection, scenario, step, **values)
    row = steps.get(connection, scenario, step)
    if outcome != "select":
        _add_to_history(connection, row, sentence, metrics)
    return row


def _add_to_history(connection: Connection, row: RowMapping, message: str, metrics: dict[str, Any]) -> None:
    """Once: a step that is measured again keeps its row."""
    if catalog.row_at(connection, row["scenario"], row["step"]) is None:
        moment = catalog.moment(connection, row["scenario"])
        catalog.add(connection, history_row(row, moment, message, metrics))


def history_row(row: RowMapping, moment: str, message: str, metrics: dict[str, Any]) -> catalog.Row:
    """The release row of a step that published nothing."""
    return catalog.Row(
        scenario=row["scenario"],
        step=row["step"],
        operation="training",
        release_id=row["base_release_id"],
        content_id=row["content_id"] or row["base_content_id"],
        recorded_at=moment,
        recipe=row["recipe"],
        published=False,
        parent_release_id=row["base_release_id"],
        candidate_id=row["candidate_id"],
        pending=row["pending"],
        message=row["reason"].splitlines()[0] if row["reason"] else message,
        metrics=metrics,
    )
