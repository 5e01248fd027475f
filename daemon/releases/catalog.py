"""The rows of the release history: one per scenario and step, listed from the database."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, select, update

from daemon.releases.revisions import resolve
from daemon.store.codec import dump, load
from daemon.store.schema import releases, scenarios, tags
from reef.errors import NotFound
from reef.ids import now, rfc3339

Operation = Literal["creation", "training", "rollback", "promote", "import"]


@dataclass(frozen=True, slots=True)
class Row:
    """One release row to be. `release_id` of a row that published nothing is the head it ran on."""

    scenario: str
    step: int
    operation: Operation
    release_id: str
    content_id: str
    recorded_at: str
    recipe: str
    published: bool
    parent_release_id: str | None = None
    candidate_id: str | None = None
    pending: bool = False
    message: str = ""
    rollback_target_release_id: str | None = None
    metrics: Mapping[str, Any] | None = None


def add(connection: Connection, row: Row) -> None:
    values = {name: getattr(row, name) for name in Row.__slots__} | {"metrics": dump(row.metrics)}
    connection.execute(insert(releases), values)


def move_head(connection: Connection, scenario: str, release_id: str, content_id: str) -> None:
    connection.execute(
        update(scenarios)
        .where(scenarios.c.scenario == scenario)
        .values(head_release_id=release_id, head_content_id=content_id)
    )


def rows(connection: Connection, scenario: str) -> list[RowMapping]:
    """Every row, oldest first: a step may end after ones that began later."""
    return list(connection.execute(_in_order(scenario)).mappings())


def _in_order(scenario: str) -> Select[Any]:
    query = select(releases).where(releases.c.scenario == scenario)
    return query.order_by(releases.c.recorded_at, releases.c.step)


def moment(connection: Connection, scenario: str) -> str:
    """The time of a release to be: now, and later than every release before it, whatever the clock does."""
    query = select(func.max(releases.c.recorded_at)).where(releases.c.scenario == scenario)
    newest, this = connection.execute(query).scalar(), now()
    if newest is not None and newest >= rfc3339(this):
        this = datetime.fromisoformat(newest) + timedelta(milliseconds=1)
    return rfc3339(this)


def row_at(connection: Connection, scenario: str, step: int) -> RowMapping | None:
    query = select(releases).where(releases.c.scenario == scenario, releases.c.step == step)
    return connection.execute(query).mappings().first()


def release(connection: Connection, scenario: str, release_id: str | None) -> RowMapping | None:
    """The row that published a release, or None."""
    query = select(releases).where(
        releases.c.scenario == scenario, releases.c.release_id == release_id, releases.c.published
    )
    return connection.execute(query.limit(1)).mappings().first()


def head(connection: Connection, scenario: str) -> tuple[str, str]:
    """Release id and content id that the scenario serves. Raises `NotFound`."""
    row = connection.execute(select(scenarios).where(scenarios.c.scenario == scenario)).mappings().first()
    if row is None or row["head_release_id"] is None:
        raise NotFound(f"no scenario named `{scenario}`", hint="see `reef scenarios`")
    return row["head_release_id"], row["head_content_id"]


def content_of(connection: Connection, release_id: str) -> str | None:
    """The content id of a release or candidate, whatever scenario it is in."""
    query = select(releases.c.content_id).where(
        (releases.c.published & (releases.c.release_id == release_id))
        | (releases.c.candidate_id == release_id)
    )
    return connection.execute(query.limit(1)).scalar()


def resolve_revision(connection: Connection, scenario: str, revision: str) -> tuple[str, str]:
    """Release id and content id of a revision (see `revisions`). Raises `NotFound`."""
    head(connection, scenario)
    history = connection.execute(_in_order(scenario)).all()
    release_id = resolve(revision, history, tags=tags_of(connection, scenario))
    content_id = content_of(connection, release_id)
    if content_id is None:
        raise NotFound(f"release `{release_id}` has no row", hint="`reef log --all` lists them")
    return release_id, content_id


def forget_row(connection: Connection, scenario: str, step: int) -> None:
    """Remove the row of a step that published nothing, because it runs again."""
    connection.execute(
        delete(releases).where(
            releases.c.scenario == scenario, releases.c.step == step, releases.c.published.is_(False)
        )
    )


def summary(connection: Connection, scenario: str) -> tuple[RowMapping | None, int, int]:
    """The last training row, the newest step of the history, and how many candidates wait."""
    mine = releases.c.scenario == scenario
    trained = select(releases).where(mine, releases.c.operation == "training")
    last = connection.execute(trained.order_by(releases.c.step.desc()).limit(1)).mappings().first()
    newest = connection.execute(select(func.max(releases.c.step)).where(mine)).scalar()
    waiting = select(func.count()).select_from(releases).where(mine, releases.c.pending)
    return last, newest or 0, connection.execute(waiting).scalar_one()


def tags_of(connection: Connection, scenario: str) -> dict[str, str]:
    """Tag names and the releases they name."""
    query = select(tags.c.tag, tags.c.release_id).where(tags.c.scenario == scenario)
    return {row.tag: row.release_id for row in connection.execute(query)}


def close_pending(connection: Connection, scenario: str, step: int) -> None:
    connection.execute(
        update(releases).where(releases.c.scenario == scenario, releases.c.step == step).values(pending=False)
    )


def tell_decision(connection: Connection, scenario: str, step: int, outcome: str, reason: str) -> None:
    """Say in the row of a candidate that waited what a person decided, in place of why it waited."""
    row = row_at(connection, scenario, step)
    if row is None:
        return
    metrics = decided_by_person(load(row["metrics"], {}), outcome, reason) | {"published": False}
    connection.execute(
        update(releases)
        .where(releases.c.scenario == scenario, releases.c.step == step)
        .values(pending=False, metrics=dump(metrics))
    )


def decided_by_person(metrics: Mapping[str, Any], outcome: str, reason: str) -> dict[str, Any]:
    """`metrics` with a person's decision; what the gate measured stays."""
    return {**metrics, "selection": {"policy": "review", "outcome": outcome, "reason": reason}}


def take_step(connection: Connection, scenario: str) -> int:
    """The next step number of a scenario, in the transaction that writes its row."""
    taken = connection.execute(
        update(scenarios)
        .where(scenarios.c.scenario == scenario)
        .values(next_step=scenarios.c.next_step + 1)
        .returning(scenarios.c.next_step)
    ).scalar()
    if taken is None:
        raise NotFound(f"no scenario named `{scenario}`", hint="see `reef scenarios`")
    return int(taken) - 1


def to_wire(row: RowMapping, *, head_id: str, names: Mapping[str, str]) -> dict[str, Any]:
    """A row in the form of protocol section 6."""
    return {
        "step": row["step"],
        "operation": row["operation"],
        "release_id": row["release_id"],
        "parent_release_id": row["parent_release_id"],
        "candidate_id": row["candidate_id"],
        "content_id": row["content_id"],
        "content_kind": "saved_artifact",
        "checkpoint": row["checkpoint"],
        "restorable": True,
        "recorded_at": row["recorded_at"],
        "recipe": row["recipe"],
        "published": row["published"],
        "current": bool(row["published"] and row["release_id"] == head_id),
        "pending": row["pending"],
        "tags": sorted(tag for tag, release_id in names.items() if release_id == row["release_id"]),
        "message": row["message"],
        "rollback_target_release_id": row["rollback_target_release_id"],
        "metrics": load(row["metrics"]),
    }


def listing(connection: Connection, scenario: str) -> list[dict[str, Any]]:
    """The rows of a scenario, oldest first. Raises `NotFound`."""
    head_id, _ = head(connection, scenario)
    found = rows(connection, scenario)
    names = tags_of(connection, scenario)
    return [to_wire(row, head_id=head_id, names=names) for row in found]
