"""Publishing: a release becomes a commit, then a moved ref, then a row; a crash in between changes nothing.

Before anything happens outside the database, an intent row holds all that decides the commit's id.
Whoever finds it unfinished repeats it: the same commit, the same ref, the same row.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from daemon.releases import catalog
from daemon.releases.catalog import Operation, Row
from daemon.releases.commits import CommitPlan, commit_message
from daemon.releases.git import GitReleases
from daemon.store.codec import dump, load
from daemon.store.schema import intents, scenarios
from daemon.store.store import Store
from reef.errors import Conflict, NotFound, ReefError
from reef.ids import now, rfc3339

log = logging.getLogger("reef.releases")

RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Publication:
    """All that decides a release. `step` None takes the next number of the scenario."""

    scenario: str
    operation: Operation
    content_id: str
    parent: str | None
    summary: str
    recipe: str
    body: str = ""
    score: str | None = None
    evidence: tuple[str, ...] = ()
    step: int | None = None
    candidate_id: str | None = None
    rollback_target: str | None = None
    closes_pending: int | None = None
    metrics: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Published:
    scenario: str
    step: int
    operation: Operation
    release_id: str
    content_id: str


class History:
    """The release history of every scenario: git holds the content, the database the rows."""

    def __init__(self, store: Store, git: GitReleases) -> None:
        self.store = store
        self.git = git
        self.listeners: list[Callable[[Published], Awaitable[None]]] = []
        """Awaited after each release, before its publisher is answered."""
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def create(self, scenario: str, publication: Publication, row: Mapping[str, Any]) -> Published:
        """Create a scenario (`row` are its columns) together with its first release."""

        def begin(connection: Connection) -> dict[str, Any]:
            if (begun := _begun(connection, scenario)) is not None:
                return begun
            connection.execute(insert(scenarios), dict(row))
            return _intend(connection, publication)

        async with self._locks[scenario]:
            return await self._carry_out(await self.store.write(begin))

    async def publish(self, publication: Publication) -> Published:
        """Make a release and serve it. Repeating a step's publication gives the same release.

        Raises:
            Conflict: the head moved away from `parent` meanwhile.
        """

        def begin(connection: Connection) -> tuple[dict[str, Any], Published | None] | None:
            if _unfinished(connection, publication.scenario):
                return None
            detail = _intend(connection, publication)
            return detail, _finished(connection, detail)

        async with self._locks[publication.scenario]:
            while (begun := await self.store.write(begin)) is None:
                await self._finish_open(
                    publication.scenario
                )  # what could not be written when the disk was full
            detail, done = begun
            return done or await self._carry_out(detail)

    async def recover(self) -> list[Published]:
        """Finish what a crash interrupted."""
        return await self._finish_open()

    async def _finish_open(self, scenario: str | None = None) -> list[Published]:
        def unfinished(connection: Connection) -> list[dict[str, Any]]:
            return _unfinished(connection, scenario)

        finished = []
        for detail in await self.store.read(unfinished):
            try:
                finished.append(await self._carry_out(detail))
            except (Conflict, NotFound) as error:
                if detail in await self.store.read(unfinished):
                    raise
                log.warning("step %s of %s was not published: %s", detail["step"], detail["scenario"], error)
        return finished

    async def files(self, content_id: str) -> dict[str, bytes]:
        return await asyncio.to_thread(self.git.read_tree, content_id)

    async def _carry_out(self, detail: dict[str, Any]) -> Published:
        plan = CommitPlan(
            scenario=detail["scenario"],
            content_id=detail["content_id"],
            parent=detail["parent"],
            message=detail["message"],
            recorded_at=datetime.fromisoformat(detail["recorded_at"]),
        )
        try:
            release_id = await asyncio.to_thread(self._make, plan)
        except ReefError as error:
            stale = isinstance(error, Conflict)
            if stale or await asyncio.to_thread(self.git.head, plan.scenario) == plan.parent:
                await self.store.write(lambda connection: _abandon(connection, detail))
            raise
        published = Published(
            detail["scenario"], detail["step"], detail["operation"], release_id, detail["content_id"]
        )
        await self.store.write(lambda connection: _finish(connection, detail, published))
        for listener in self.listeners:
            await listener(published)
        return published

    def _make(self, plan: CommitPlan) -> str:
        """Commit and serve; returns the release id."""
        release_id = self.git.commit(plan)
        self.git.publish(plan.scenario, release_id, plan.parent)
        return release_id


def _unfinished(connection: Connection, scenario: str | None) -> list[dict[str, Any]]:
    """What is yet to be carried out, of one scenario or of all."""
    query = select(intents.c.detail).where(intents.c.effect == RELEASE, intents.c.done_at.is_(None))
    if scenario is not None:
        query = query.where(intents.c.scenario == scenario)
    return [load(detail) for detail in connection.execute(query).scalars()]


def _intend(connection: Connection, publication: Publication) -> dict[str, Any]:
    scenario = publication.scenario
    step = publication.step
    if step is None:
        step = catalog.take_step(connection, scenario)
    query = select(intents.c.detail).where(
        intents.c.scenario == scenario, intents.c.step == step, intents.c.effect == RELEASE
    )
    if (known := connection.execute(query).scalar()) is not None:
        detail: dict[str, Any] = load(known)
        return detail
    message = commit_message(
        publication.summary,
        publication.body,
        scenario=scenario,
        step=step,
        operation=publication.operation,
        recipe=publication.recipe,
        score=publication.score,
        evidence=publication.evidence,
    )
    detail = asdict(publication) | {
        "step": step,
        "message": message,
        "recorded_at": catalog.moment(connection, scenario),
    }
    connection.execute(
        insert(intents),
        {
            "scenario": scenario,
            "step": step,
            "effect": RELEASE,
            "detail": dump(detail),
            "created_at": detail["recorded_at"],
        },
    )
    return detail


def _finished(connection: Connection, detail: dict[str, Any]) -> Published | None:
    row = catalog.row_at(connection, detail["scenario"], detail["step"])
    if row is None or not row["published"]:
        return None
    return Published(
        detail["scenario"], detail["step"], row["operation"], row["release_id"], row["content_id"]
    )


def _finish(connection: Connection, detail: dict[str, Any], published: Published) -> None:
    catalog.add(
        connection,
        Row(
            scenario=published.scenario,
            step=published.step,
            operation=published.operation,
            release_id=published.release_id,
            content_id=published.content_id,
            recorded_at=detail["recorded_at"],
            recipe=detail["recipe"],
            published=True,
            parent_release_id=detail["parent"],
            candidate_id=detail["candidate_id"],
            message=detail["summary"],
            rollback_target_release_id=detail["rollback_target"],
            metrics=detail["metrics"],
        ),
    )
    catalog.move_head(connection, published.scenario, published.release_id, published.content_id)
    if detail["closes_pending"] is not None:
        catalog.close_pending(connection, published.scenario, detail["closes_pending"])
    connection.execute(update(intents).where(*_key(detail)).values(done_at=rfc3339(now())))


def _begun(connection: Connection, scenario: str) -> dict[str, Any] | None:
    """The intent of a creation that could not be finished, nor taken back."""
    query = (
        select(intents.c.detail)
        .join(scenarios, scenarios.c.scenario == intents.c.scenario)
        .where(intents.c.scenario == scenario, intents.c.step == 0, scenarios.c.head_release_id.is_(None))
    )
    known = connection.execute(query).scalar()
    return None if known is None else load(known)


def _abandon(connection: Connection, detail: dict[str, Any]) -> None:
    """Take an intent back; a scenario that was never created goes with it."""
    connection.execute(delete(intents).where(*_key(detail)))
    connection.execute(
        delete(scenarios).where(
            scenarios.c.scenario == detail["scenario"], scenarios.c.head_release_id.is_(None)
        )
    )


def _key(detail: dict[str, Any]) -> tuple[ColumnElement[bool], ...]:
    return (
        intents.c.scenario == detail["scenario"],
        intents.c.step == detail["step"],
        intents.c.effect == RELEASE,
    )
