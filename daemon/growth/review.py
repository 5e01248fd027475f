"""What a person decides: promote or reject a candidate that waits, run a step again or cancel it,
check a release out."""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from sqlalchemy import Connection, RowMapping, select

from daemon.growth import steps
from daemon.growth.chronicle import CANCELLED, end
from daemon.growth.rooms import Rooms
from daemon.growth.step import said
from daemon.harness.mutations import apply
from daemon.releases import catalog
from daemon.releases.history import Publication, Published
from daemon.serving.scenarios import Scenario
from daemon.store.codec import load
from daemon.store.schema import releases
from daemon.store.schema import steps as table
from reef.errors import Conflict, NotFound, Refused
from reef.ids import now, rfc3339
from reef.tree import HarnessTree

BY_PERSON = "promoted by a person"


class Review:
    """Decisions from outside the gate."""

    def __init__(self, rooms: Rooms, runs: Callable[[str], bool]) -> None:
        self.rooms = rooms
        self._runs = runs
        """Whether a scenario's open steps are run by somebody."""
        self._deciding: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By scenario: of two that decide on the same candidate, the second finds it decided, and none is
        served of a scenario that was archived meanwhile."""

    async def recover(self, scenario: str | None = None) -> None:
        """Close the steps whose candidate was promoted just before a crash, or before the disk was full."""
        for row in await self.rooms.store.read(promoted):
            if scenario in (None, row["scenario"]):
                await self._close(row, "select", BY_PERSON, row["promoted_id"])

    async def promote(self, scenario: Scenario, candidate_id: str) -> Published:
        """Serve a candidate that waits. On a head that moved on, its changes are applied anew.

        Raises:
            NotFound: no such candidate waits.
            Conflict: its changes no longer apply to what is served.
        """
        async with self._deciding[scenario.name]:
            return await self._promote(scenario, candidate_id)

    async def _promote(self, scenario: Scenario, candidate_id: str) -> Published:
        row = await self._waiting(scenario.name, candidate_id)
        head = scenario.head
        content_id = await self._content(scenario, row)
        metrics = load(row["metrics"]) or {}
        score, evidence = said(metrics)
        told = catalog.decided_by_person(metrics, "select", f"{BY_PERSON}, from step {row['step']}")
        published = await self.rooms.history.publish(
            Publication(
                scenario=scenario.name,
                operation="promote",
                content_id=content_id,
                parent=head.release_id,
                summary=row["reason"].splitlines()[0],
                body=f"Promoted by a person from step {row['step']}.",
                score=score,
                evidence=evidence,
                recipe=row["recipe"],
                candidate_id=candidate_id,
                closes_pending=row["step"],
                metrics=told | {"published": True},
            )
        )
        await self._close(row, "select", BY_PERSON, published.release_id)
        return published

    async def preview(self, scenario: Scenario, candidate_id: str) -> str | None:
        """The content that promoting a waiting candidate would serve now; None when no such candidate waits.

        Raises:
            Conflict: its changes no longer apply to what is served.
        """
        row = await self._find_waiting(scenario.name, candidate_id)
        return None if row is None else await self._content(scenario, row)

    async def _content(self, scenario: Scenario, row: RowMapping) -> str:
        """A candidate's content, on what is served now."""
        head = scenario.head.content_id
        if head == row["base_content_id"]:
            return str(row["content_id"])
        tree = await self.rooms.scenarios.tree(head)
        return await self.rooms.scenarios.content_for(_applied(tree, row))

    async def reject(self, scenario: Scenario, candidate_id: str, reason: str) -> None:
        """Close a candidate unserved."""
        async with self._deciding[scenario.name]:
            row = await self._waiting(scenario.name, candidate_id)
            await self._close(row, "reject", f"rejected by a person{': ' + reason if reason else ''}", None)

    async def run_again(self, scenario: Scenario, step: int) -> None:
        """Let a step run that waits for money, or that ended with an error. It goes on where it was; on a
        head that moved on it begins anew. What it was said to need counts as allowed by a person.

        Raises:
            Conflict: it is neither, or nobody would run it.
        """
        if not self._runs(scenario.name):
            raise Conflict(
                f"scenario `{scenario.name}` does not grow, so step {step} cannot be run",
                hint="its recipe only records, or growth is off: see `[growth] enabled` and `[[scenario]]`",
            )

        def work(connection: Connection) -> None:
            row = steps.get(connection, scenario.name, step)
            waits = row["state"] == "waiting" and row["waits_for"] == "money"
            if not waits and row["outcome"] != "error":
                raise Conflict(
                    f"step {step} is {row['state']} ({row['outcome'] or row['waits_for'] or 'running'})",
                    hint="only a step that waits for money or ended with an error can be run",
                )
            catalog.forget_row(connection, scenario.name, step)
            release_id, content_id = catalog.head(connection, scenario.name)
            moved = row["base_release_id"] != release_id
            steps.write(
                connection,
                scenario.name,
                step,
                state="queued" if moved or row["candidate_id"] is None else "evaluating",
                waits_for=None,
                allowed_usd=row["allowed_usd"] if waits else None,
                outcome=None,
                decision=None,
                error=None,
                finished_at=None,
                base_release_id=release_id,
                base_content_id=content_id,
                cancel_asked=False,
                **({"candidate_id": None, "content_id": None} if moved else {}),
            )

        await self.rooms.store.write(work)
        self.rooms.cancelled.discard((scenario.name, step))

    async def archive(self, scenario: Scenario) -> tuple[str, ...]:
        """Take a scenario out of service for good, with what its growth had under way.

        Raises:
            NotFound: it is archived already.
        """
        name = scenario.name

        def close_steps(connection: Connection) -> None:
            waiting = [row["step"] for row in steps.waiting(connection, name)]
            for step in (*steps.unfinished(connection, name), *waiting):
                steps.write(
                    connection,
                    name,
                    step,
                    state="done",
                    outcome="skip",
                    decision="the scenario was archived",
                    pending=False,
                    finished_at=rfc3339(now()),
                )
                catalog.close_pending(connection, name, step)

        async with self._deciding[name]:
            return await self.rooms.scenarios.archive(name, close_steps)

    async def cancel(self, scenario: Scenario, step: int) -> None:
        """End a step that is under way, or that waits for money. One that nobody runs is ended here; whoever
        runs it ends it otherwise, after a restart too.

        Raises:
            Conflict: it is over, decided, or waits for review.
        """

        def work(connection: Connection) -> bool:
            row = steps.get(connection, scenario.name, step)
            if row["state"] in ("done", "committing") or row["waits_for"] == "review":
                raise Conflict(
                    f"step {step} is {row['state']}, so it cannot be cancelled",
                    hint="a candidate that waits for review is closed with `reef reject`",
                )
            runs = row["state"] != "waiting" and self._runs(scenario.name)
            if runs:
                steps.write(connection, scenario.name, step, cancel_asked=True)
            else:
                policy = scenario.section.gate.policy
                end(connection, scenario.name, step, "skip", CANCELLED, policy=policy)
            return runs

        if await self.rooms.store.write(work):
            self.rooms.cancelled.add((scenario.name, step))
            return
        self.rooms.events.publish(
            "step", scenario.name, step=step, state="done", outcome="skip", decision=CANCELLED
        )

    async def checkout(self, scenario: Scenario, release_id: str, content_id: str) -> Published:
        """Serve a release: one that waits is promoted, any other is published again as a new head.

        Raises:
            Conflict: it is a candidate that the gate or a person turned down, or that is not decided yet.
            NotFound: the scenario was archived meanwhile.
        """
        async with self._deciding[scenario.name]:
            self.rooms.scenarios.get(scenario.name)
            return await self._checkout(scenario, release_id, content_id)

    async def _checkout(self, scenario: Scenario, release_id: str, content_id: str) -> Published:
        if await self._find_waiting(scenario.name, release_id) is not None:
            return await self._promote(scenario, release_id)
        refused = await self.rooms.store.read(
            lambda connection: _turned_down(connection, scenario.name, release_id)
        )
        if refused is not None:
            step = refused["step"]
            raise Conflict(
                f"the candidate of step {step} was never served: {refused['outcome'] or refused['state']}"
                + (f", {refused['decision']}" if refused["decision"] else ""),
                hint=f"`reef step {step}` tells why; only releases and waiting candidates can be served",
            )
        head = scenario.head
        return await self.rooms.history.publish(
            Publication(
                scenario=scenario.name,
                operation="rollback",
                content_id=content_id,
                parent=head.release_id,
                summary=f"Serve {release_id[:10]} again",
                recipe=scenario.recipe,
                rollback_target=release_id,
            )
        )

    async def _waiting(self, scenario: str, candidate_id: str) -> RowMapping:
        await self.recover(scenario)
        if (row := await self._find_waiting(scenario, candidate_id)) is not None:
            return row
        raise NotFound(f"no candidate `{candidate_id[:12]}` waits for review", hint="see `reef pending`")

    async def _find_waiting(self, scenario: str, candidate_id: str) -> RowMapping | None:
        rows = await self.rooms.store.read(lambda connection: steps.waiting(connection, scenario))
        return next((row for row in rows if row["pending"] and row["candidate_id"] == candidate_id), None)

    async def _close(self, row: RowMapping, outcome: str, decision: str, release_id: str | None) -> None:
        scenario, step = row["scenario"], row["step"]

        def work(connection: Connection) -> None:
            steps.write(
                connection,
                scenario,
                step,
                state="done",
                waits_for=None,
                pending=False,
                outcome=outcome,
                decision=decision,
                release_id=release_id,
                finished_at=rfc3339(now()),
            )
            served = catalog.release(connection, scenario, release_id) if release_id else None
            reason = f"{decision}, as step {served['step']}" if served else decision
            catalog.tell_decision(connection, scenario, step, outcome, reason)

        await self.rooms.store.write(work)
        if release_id is not None:
            await asyncio.to_thread(self.rooms.history.git.drop_candidate, scenario, step)
        self.rooms.events.publish(
            "step", scenario, step=step, state="done", outcome=outcome, decision=decision
        )


def promoted(connection: Connection) -> list[RowMapping]:
    """Steps that still wait although their candidate is published, with its `promoted_id`."""
    query = (
        select(table, releases.c.release_id.label("promoted_id"))
        .join(
            releases,
            (releases.c.scenario == table.c.scenario) & (releases.c.candidate_id == table.c.candidate_id),
        )
        .where(table.c.state == "waiting", table.c.pending, releases.c.operation == "promote")
    )
    return list(connection.execute(query).mappings())


def _turned_down(connection: Connection, scenario: str, candidate_id: str) -> RowMapping | None:
    """The step of a candidate that is no release and was not selected."""
    if catalog.release(connection, scenario, candidate_id) is not None:
        return None
    query = select(table).where(table.c.scenario == scenario, table.c.candidate_id == candidate_id)
    row = connection.execute(query).mappings().first()
    return row if row is not None and row["outcome"] != "select" else None


def _applied(tree: HarnessTree, row: RowMapping) -> HarnessTree:
    """A step's changes on another tree than the one they were made for."""
    try:
        return apply(tree, steps.mutations_of(row))
    except Refused as refusal:
        raise Conflict(
            f"the candidate of step {row['step']} no longer fits what is served: {refusal.message}",
            hint=f"`reef reject step:{row['step']}` closes it",
        ) from refusal
