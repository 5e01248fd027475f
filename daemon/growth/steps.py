"""Steps as rows: a small state machine that survives a crash at any point.

queued -> proposing -> evaluating -> deciding -> committing -> done, with `waiting` beside it for a
person (review, money). What a state has worked out is written before the next one begins.
"""

from collections.abc import Callable, Collection
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from daemon.growth.lease import Lease, prove
from daemon.records import batches
from daemon.releases.catalog import head, row_at, take_step
from daemon.store.codec import dump, load
from daemon.store.schema import episodes, pairs, steps
from reef.errors import NotFound
from reef.ids import now, rfc3339
from reef.recipe import PastStep
from reef.tree import Mutation

State = Literal["queued", "proposing", "evaluating", "deciding", "committing", "waiting", "done"]
OPEN_STATES = ("queued", "proposing", "evaluating", "deciding", "committing")
_JSON = ("batch", "mutations", "refused", "metrics", "error", "notes")
MAX_HISTORY = 50
_PLAIN = (
    *("scenario", "step", "state", "waits_for", "started_at", "finished_at", "recipe", "processor"),
    *("continues", "base_release_id", "base_content_id", "proposer", "reason", "candidate_id"),
    *("content_id", "outcome", "decision", "release_id", "pending"),
)
_EPISODE_PLAIN = (
    *("task", "split", "side", "repeat", "status", "score", "why", "reused", "started_at", "seconds"),
    *("receipt", "answer", "log"),
)


def begin(
    connection: Connection, lease: Lease, *, recipe: str, processor: str, batch_size: int
) -> tuple[int, list[dict[str, Any]]] | None:
    """Consume a full batch and queue a step for it, in one transaction; returns its number and the batch.
    None: not enough reports."""
    prove(connection, lease)
    ready = batches.ready_reports(connection, lease.scenario, recipe, batch_size)
    return None if len(ready) < batch_size else _begin(connection, lease, ready, recipe, processor)


def begin_instructed(
    connection: Connection, lease: Lease, *, recipe: str, processor: str
) -> tuple[int, list[dict[str, Any]]] | None:
    """As `begin`, for the oldest instruction: a batch of its own. None: none waits."""
    prove(connection, lease)
    ready = batches.ready_instructions(connection, lease.scenario, recipe, 1)
    return _begin(connection, lease, ready, recipe, processor) if ready else None


def _begin(
    connection: Connection, lease: Lease, ready: list[str], recipe: str, processor: str
) -> tuple[int, list[dict[str, Any]]]:
    step = take_step(connection, lease.scenario)
    batch = batches.consume(connection, ready, recipe, step)
    _insert(connection, lease, step, recipe=recipe, processor=processor, batch=batch)
    return step, batch


def carry_on(
    connection: Connection,
    lease: Lease,
    previous: RowMapping,
    proposers_left: Callable[[Collection[str]], Collection[str]],
) -> int | None:
    """Queue a step that hands the batch of a finished one to the proposers that are left for it, as the
    recipe says when it is told those that had it.

    None: it has had them all, or nobody proposed anything. Safe to repeat.
    """
    prove(connection, lease)
    tried = {*tried_proposers(connection, previous), previous["proposer"]}
    if previous["proposer"] is None or not proposers_left(tried):
        return None
    known = connection.execute(
        select(steps.c.step).where(steps.c.scenario == lease.scenario, steps.c.continues == previous["step"])
    ).scalar()
    if known is not None:
        return int(known)
    step = take_step(connection, lease.scenario)
    _insert(
        connection,
        lease,
        step,
        recipe=previous["recipe"],
        processor=previous["processor"],
        batch=load(previous["batch"]),
        continues=previous["step"],
    )
    return step


def _insert(connection: Connection, lease: Lease, step: int, **values: Any) -> None:
    release_id, content_id = head(connection, lease.scenario)
    row = {
        "scenario": lease.scenario,
        "step": step,
        "state": "queued",
        "epoch": lease.epoch,
        "started_at": rfc3339(now()),
        "base_release_id": release_id,
        "base_content_id": content_id,
        "pending": False,
    }
    connection.execute(insert(steps), row | values | {"batch": dump(values["batch"])})


def save(connection: Connection, lease: Lease, step: int, **values: Any) -> None:
    """Write what a step has worked out, under its lease."""
    prove(connection, lease)
    write(connection, lease.scenario, step, epoch=lease.epoch, **values)


def forget_episodes(connection: Connection, scenario: str, step: int) -> None:
    """Measure a step anew: what it ran on is no longer what is served."""
    connection.execute(delete(episodes).where(episodes.c.scenario == scenario, episodes.c.step == step))


def write(connection: Connection, scenario: str, step: int, **values: Any) -> None:
    encoded = {key: dump(value) if key in _JSON else value for key, value in values.items()}
    connection.execute(
        update(steps).where(steps.c.scenario == scenario, steps.c.step == step).values(**encoded)
    )


def get(connection: Connection, scenario: str, step: int) -> RowMapping:
    """Raises `NotFound`."""
    row = (
        connection.execute(select(steps).where(steps.c.scenario == scenario, steps.c.step == step))
        .mappings()
        .first()
    )
    if row is None:
        raise NotFound(
            f"scenario `{scenario}` has no growth step {step}", hint=f"see `reef steps -s {scenario}`"
        )
    return row


def unfinished(connection: Connection, scenario: str) -> list[int]:
    query = (
        select(steps.c.step)
        .where(steps.c.scenario == scenario, steps.c.state.in_(OPEN_STATES))
        .order_by(steps.c.step)
    )
    return list(connection.execute(query).scalars())


def waiting(connection: Connection, scenario: str | None = None) -> list[RowMapping]:
    """Steps that wait for a person, oldest first."""
    query = select(steps).where(steps.c.state == "waiting")
    if scenario is not None:
        query = query.where(steps.c.scenario == scenario)
    return list(connection.execute(query.order_by(steps.c.scenario, steps.c.step)).mappings())


def tried_proposers(connection: Connection, row: RowMapping) -> frozenset[str]:
    """Proposers that had this step's batch before it, following the chain of steps."""
    tried: set[str] = set()
    previous = row["continues"]
    while previous is not None:
        earlier = get(connection, row["scenario"], previous)
        if earlier["proposer"]:
            tried.add(earlier["proposer"])
        previous = earlier["continues"]
    return frozenset(tried)


def history(connection: Connection, scenario: str) -> list[PastStep]:
    """Finished steps, newest first."""
    query = (
        select(steps)
        .where(steps.c.scenario == scenario, steps.c.state == "done")
        .order_by(steps.c.step.desc())
        .limit(MAX_HISTORY)
    )
    return [past_step(row) for row in connection.execute(query).mappings()]


def past_step(row: RowMapping) -> PastStep:
    metrics = load(row["metrics"], {}) or {}
    evidence = metrics.get("evidence") or {}
    return PastStep(
        step=row["step"],
        proposer=row["proposer"] or "",
        outcome=row["outcome"] or "",
        decision=row["decision"] or "",
        base_content_id=row["base_content_id"] or "",
        mutations=mutations_of(row),
        reports=tuple(unit["report"] for unit in load(row["batch"], [])),
        gate_tasks=evidence.get("units") or 0,
    )


def mutations_of(row: RowMapping) -> tuple[Mutation, ...]:
    return tuple(
        Mutation(wire["op"], wire["id"], **wire.get("options", {}))
        for wire in load(row["mutations"], []) or []
    )


def listing(connection: Connection, scenario: str | None, limit: int = 200) -> list[dict[str, Any]]:
    """Steps without batch and episodes, newest first; each names the reports that it consumed."""
    query = select(steps)
    if scenario is not None:
        query = query.where(steps.c.scenario == scenario)
    rows = connection.execute(query.order_by(steps.c.started_at.desc(), steps.c.step.desc()).limit(limit))
    found = list(rows.mappings())
    consumed: dict[tuple[str, int], set[str]] = {}
    query_pairs = select(pairs.c.scenario, pairs.c.step, pairs.c.report).where(
        pairs.c.scenario.in_({row["scenario"] for row in found}),
        pairs.c.step.in_({row["step"] for row in found}),
    )
    for pair in connection.execute(query_pairs):
        consumed.setdefault((pair.scenario, pair.step), set()).add(pair.report)
    return [
        to_wire(row) | {"reports": sorted(consumed.get((row["scenario"], row["step"]), ()))} for row in found
    ]


def detail(connection: Connection, scenario: str, step: int) -> dict[str, Any]:
    """One step with its batch and episodes.

    Raises:
        NotFound: there is none; it says so where the number is that of a release.
    """
    if (other := _no_growth(connection, scenario, step)) is not None:
        raise NotFound(
            f"step {step} of `{scenario}` is no growth step but a release: {other}",
            hint=f"see `reef show step:{step} -s {scenario}`",
        )
    row = get(connection, scenario, step)
    query = (
        select(episodes)
        .where(episodes.c.scenario == scenario, episodes.c.step == step)
        .order_by(episodes.c.started_at, episodes.c.task, episodes.c.side)
    )
    ran = [_episode_to_wire(episode) for episode in connection.execute(query).mappings()]
    return to_wire(row) | {"batch": load(row["batch"], []), "episodes": ran}


def _no_growth(connection: Connection, scenario: str, step: int) -> str | None:
    """What made the release of a step that growing did not make; None for all others."""
    row = row_at(connection, scenario, step)
    if row is None or row["operation"] == "training":
        return None
    return f"{row['operation']} ({row['message']})" if row["message"] else str(row["operation"])


def to_wire(row: RowMapping) -> dict[str, Any]:
    return {key: row[key] for key in _PLAIN} | {
        "mutations": load(row["mutations"], []),
        "refused": load(row["refused"]),
        "metrics": load(row["metrics"]),
        "error": load(row["error"]),
        "notes": load(row["notes"], []),
    }


def _episode_to_wire(row: RowMapping) -> dict[str, Any]:
    usage = {key: row[key] for key in ("input_tokens", "output_tokens", "cost")}
    return {key: row[key] for key in _EPISODE_PLAIN} | {"usage": usage}
