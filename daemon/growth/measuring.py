"""The candidate of a step against what is served, on the gate tasks."""

from dataclasses import replace

from sqlalchemy import RowMapping

from daemon.evaluation.comparison import compare
from daemon.evaluation.scores import Decision, Scored
from daemon.growth import budget
from daemon.growth.chronicle import Chronicle
from daemon.growth.episodes import ChatEpisodes, EpisodeRows, run_key
from daemon.growth.ground import Ground
from daemon.growth.purse import Purse
from daemon.growth.rooms import Progress, Rooms
from daemon.harness.render import chat_prefix
from daemon.serving.served import Served
from reef.tasks import Side


async def measure(chronicle: Chronicle, ground: Ground, row: RowMapping, purse: Purse) -> Decision:
    """Run what is missing of the comparison and write down what it says.

    Raises:
        ReefError: an episode could not run.
        Stopped: the step goes no further for now; what had finished is kept.
    """
    rooms, gate = chronicle.rooms, chronicle.scenario.section.gate
    engine = ground.runtime.copy_key() if ground.runtime else None
    answerer = f"{engine or (ground.runtime and ground.runtime.name)}:{ground.model}"
    decision = await compare(
        tasks=ground.tasks,
        gate=gate,
        seed=ground.seed,
        copies=ground.copies,
        run=ChatEpisodes(
            rooms.caller,
            purse,
            await _sides(rooms, row),
            ground.model,
            runtime=ground.runtime,
            temperature=gate.temperature,
            max_tokens=gate.max_tokens,
        ),
        log=EpisodeRows(
            rooms.store,
            chronicle.lease,
            chronicle.step,
            _run_keys(chronicle, ground, row, answerer),
            reuse=ground.copies and engine is not None,
        ),
        limit=rooms.episode_slots,
        on_progress=lambda done, total, scored: _progress(chronicle, done, total, scored),
        cancelled=ground.stops,
    )
    spent = await rooms.store.read(
        lambda connection: budget.cost_of(connection, chronicle.scenario.name, chronicle.step)
    )
    metrics = dict(decision.metrics) | {"published": False}
    metrics["cost"] = {**metrics["cost"], **spent}
    metrics["evidence"] |= {"adapter": chronicle.scenario.section.adapter, "model": ground.model}
    await chronicle.save("deciding", metrics=metrics)
    return replace(decision, metrics=metrics)


def _run_keys(
    chronicle: Chronicle, ground: Ground, row: RowMapping, answerer: str
) -> dict[tuple[str, Side], bytes]:
    """What each run is a run of; equal keys on an engine that copies mean equal answers."""
    gate = chronicle.scenario.section.gate
    contents: dict[Side, str] = {"candidate": row["content_id"], "current": row["base_content_id"]}
    return {
        (task.id, side): run_key(
            task,
            content,
            answerer,
            max_tokens=gate.max_tokens,
            temperature=gate.temperature,
        )
        for task in ground.tasks
        if task.split == "gate"
        for side, content in contents.items()
    }


async def _sides(rooms: Rooms, row: RowMapping) -> dict[Side, Served]:
    async def side(release_id: str, content_id: str) -> Served:
        prefix = chat_prefix(await rooms.scenarios.tree(content_id))
        return Served(row["scenario"], release_id, content_id, prefix)

    return {
        "candidate": await side(row["candidate_id"], row["content_id"]),
        "current": await side(row["base_release_id"], row["base_content_id"]),
    }


def _progress(chronicle: Chronicle, done: int, total: int, scored: Scored | None) -> None:
    name = chronicle.scenario.name
    chronicle.rooms.progress[name] = Progress(chronicle.step, done, total)
    if scored is not None:
        chronicle.rooms.events.publish(
            "episode",
            name,
            step=chronicle.step,
            task=scored.task,
            side=scored.side,
            repeat=scored.repeat,
            score=scored.score,
            done=done,
            total=total,
        )
