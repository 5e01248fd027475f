"""Running chat episodes, and keeping what they gave so that a step can be resumed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import orjson
from sqlalchemy import Connection, bindparam, delete, insert, select

from daemon.evaluation.scores import EpisodeKey, Scored
from daemon.growth.caller import Caller
from daemon.growth.lease import Lease, prove
from daemon.growth.purse import Purse
from daemon.serving.served import Served
from daemon.store.schema import episodes
from daemon.store.store import Store
from reef.errors import ReefError
from reef.feedback import Usage
from reef.ids import now, rfc3339
from reef.runtime import Runtime
from reef.tasks import Episode, Side, Task

_KEY = ("scenario", "step", "task", "side", "repeat")
_FORGET_ERROR = delete(episodes).where(
    *(episodes.c[name] == bindparam(f"its_{name}") for name in _KEY), episodes.c.status == "error"
)


@dataclass(slots=True)
class ChatEpisodes:
    """One call per episode, with the side's tree in front of the task's messages.

    `served` holds what each side serves; nothing of the user's own traffic is in it.
    """

    caller: Caller
    purse: Purse
    served: Mapping[Side, Served]
    model: str | None
    temperature: float
    max_tokens: int = 512
    runtime: Runtime | None = None

    async def run(self, task: Task, side: Side, repeat: int) -> Episode:
        """Raises `UpstreamFailed`, `TimedOut` or `Unavailable` when it could not run, and `OutOfMoney`."""
        started = time.monotonic()
        answer, receipt = await self.caller.ask(
            self.purse,
            task.messages,
            served=self.served[side],
            runtime=self.runtime,
            model=self.model,
            max_tokens=task.max_tokens or self.max_tokens,
            temperature=self.temperature,
            timeout_s=task.timeout_s,
        )
        return Episode(
            task=task,
            side=side,
            repeat=repeat,
            answer=answer.text,
            messages=(*task.messages, {"role": "assistant", "content": answer.text}),
            usage=answer.usage,
            seconds=time.monotonic() - started,
            receipt=receipt,
        )


def run_key(task: Task, content_id: str, engine: str, *, max_tokens: int, temperature: float) -> bytes:
    """Names what a run is a run of: tree, task, model and engine. On an engine that copies, at temperature 0,
    that is all that decides the answer."""
    parts = [
        content_id,
        engine,
        task.messages,
        task.evaluator,
        dict(task.arguments),
        task.max_tokens or max_tokens,
        temperature,
    ]
    return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


@dataclass(slots=True)
class EpisodeRows:
    """The episodes of one step in the store, keyed by (task, side, repeat)."""

    store: Store
    lease: Lease
    step: int
    run_keys: Mapping[tuple[str, Side], bytes]
    """Of every gate task and side."""
    reuse: bool
    """Whether runs with equal keys are copies of each other."""

    async def finished(self) -> dict[EpisodeKey, Scored]:
        """What is there already: from before a restart, or copied from an equal run of an earlier step.

        Runs of something else (the tasks, the model or the trees have changed since) are forgotten.
        """
        await self.store.write(self._forget_others)
        if self.reuse:
            await self.store.write(self._reuse)
        query = select(episodes).where(
            episodes.c.scenario == self.lease.scenario,
            episodes.c.step == self.step,
            episodes.c.status != "error",
            episodes.c.split == "gate",
        )
        rows = await self.store.read(lambda connection: list(connection.execute(query).mappings()))
        found = [
            Scored(
                task=row["task"],
                side=row["side"],
                repeat=row["repeat"],
                score=row["score"],
                why=row["why"],
                usage=Usage(row["input_tokens"], row["output_tokens"], None, row["cost"]),
                seconds=row["seconds"] or 0.0,
                reused=row["reused"],
            )
            for row in rows
        ]
        return {scored.key: scored for scored in found}

    async def save(self, scored: Scored, episode: Episode, *, retried: bool) -> None:
        row = self._row(episode.task, scored.side, scored.repeat) | {
            "status": "retried" if retried else "ok",
            "score": scored.score,
            "why": scored.why,
            "seconds": scored.seconds,
            "input_tokens": scored.usage.input_tokens,
            "output_tokens": scored.usage.output_tokens,
            "cost": scored.usage.cost,
            "receipt": episode.receipt,
            "answer": episode.answer,
            "log": episode.log or None,
        }
        await self.store.write(lambda connection: self._insert(connection, row))

    async def failed(self, task: Task, side: Side, repeat: int, error: ReefError) -> None:
        row = self._row(task, side, repeat) | {"status": "error", "why": error.message}
        await self.store.write(lambda connection: self._insert(connection, row))

    def _row(self, task: Task, side: Side, repeat: int) -> dict[str, object]:
        return {
            "scenario": self.lease.scenario,
            "step": self.step,
            "task": task.id,
            "side": side,
            "repeat": repeat,
            "split": task.split,
            "reused": False,
            "copy_key": self.run_keys[task.id, side],
            "started_at": rfc3339(now()),
        }

    def _insert(self, connection: Connection, row: Mapping[str, object]) -> None:
        prove(connection, self.lease)
        connection.execute(_FORGET_ERROR, {f"its_{name}": row[name] for name in _KEY})
        connection.execute(insert(episodes), row)

    def _forget_others(self, connection: Connection) -> None:
        prove(connection, self.lease)
        mine = (episodes.c.scenario == self.lease.scenario, episodes.c.step == self.step)
        query = select(episodes.c.task, episodes.c.side, episodes.c.copy_key).where(*mine).distinct()
        for task, side, key in connection.execute(query).all():
            if self.run_keys.get((task, side)) != key:
                its = (
                    episodes.c.task == task,
                    episodes.c.side == side,
                    episodes.c.copy_key.is_not_distinct_from(key),
                )
                connection.execute(delete(episodes).where(*mine, *its))

    def _reuse(self, connection: Connection) -> None:
        """Copy what an equal run gave, in whatever step it ran."""
        mine = select(episodes.c.task, episodes.c.side, episodes.c.repeat).where(
            episodes.c.scenario == self.lease.scenario, episodes.c.step == self.step
        )
        there = {tuple(row) for row in connection.execute(mine)}
        for (task, side), key in self.run_keys.items():
            query = select(episodes).where(
                episodes.c.copy_key == key, episodes.c.status != "error", episodes.c.reused.is_(False)
            )
            known = connection.execute(query.limit(1)).mappings().first()
            if known is None or (task, side, 0) in there:
                continue
            row = dict(known) | {
                "scenario": self.lease.scenario,
                "step": self.step,
                "task": task,
                "side": side,
                "repeat": 0,
                "split": "gate",
                "reused": True,
            }
            self._insert(connection, row)
