"""Running chat episodes, and keeping what they gave so that a step can be resumed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import orjson
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from daemon.evaluation.comparison import EpisodeKey, FinishedEpisode
from daemon.evaluation.evaluators import load_evaluator
from daemon.growth.caller import Caller
from daemon.growth.lease import Lease, prove
from daemon.serving.served import Served
from daemon.store.schema import episodes
from daemon.store.store import Store
from daemon.wire.prefix import Prefix
from reef.feedback import Usage
from reef.ids import now, rfc3339
from reef.tasks import Episode, Grade, Side, Task


@dataclass(slots=True)
class ChatEpisodes:
    """One call per episode, with the side's tree in front of the task's messages.

    `served` holds what each side serves; nothing of the user's own traffic is in it.
    """

    caller: Caller
    scenario: str
    step: int
    served: Mapping[Side, Served]
    model: str | None
    temperature: float
    max_tokens: int = 512

    async def run(self, task: Task, side: Side, repeat: int) -> Episode:
        """Raises `UpstreamFailed`, `TimedOut` or `Unavailable` when it could not run."""
        started = time.monotonic()
        answer, receipt = await self.caller.ask(
            self.scenario,
            self.step,
            task.messages,
            served=self.served[side],
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

    async def grade(self, episode: Episode) -> Grade:
        return await load_evaluator(episode.task).grade(episode)


def chat_side(scenario: str, release_id: str, content_id: str, prefix: Prefix) -> Served:
    """A tree as an episode serves it."""
    return Served(scenario, release_id, content_id, prefix)


def copy_key(task: Task, content_id: str, engine: str, *, max_tokens: int) -> bytes:
    """Names all that decides an answer where a run is a copy: tree, task, engine and model file."""
    parts = [
        content_id,
        engine,
        task.messages,
        task.evaluator,
        dict(task.arguments),
        task.max_tokens or max_tokens,
    ]
    return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


@dataclass(slots=True)
class EpisodeRows:
    """The episodes of one step in the store, keyed by (task, side, repeat)."""

    store: Store
    lease: Lease
    step: int
    copy_keys: Mapping[tuple[str, Side], bytes]
    """Empty where a run is not a copy."""

    async def finished(self) -> dict[EpisodeKey, FinishedEpisode]:
        """What is there already: from before a restart, or copied from an equal run of an earlier step."""
        if self.copy_keys:
            await self.store.write(self._reuse)
        query = select(episodes).where(
            episodes.c.scenario == self.lease.scenario,
            episodes.c.step == self.step,
            episodes.c.status != "error",
            episodes.c.split == "gate",
        )
        rows = await self.store.read(lambda connection: list(connection.execute(query).mappings()))
        return {
            EpisodeKey(row["task"], row["side"], row["repeat"]): FinishedEpisode(
                score=row["score"],
                why=row["why"],
                usage=Usage(row["input_tokens"], row["output_tokens"], None, row["cost"]),
                seconds=row["seconds"] or 0.0,
                reused=row["reused"],
            )
            for row in rows
        }

    async def save(self, episode: Episode, grade: Grade, *, retried: bool) -> None:
        row = {
            "scenario": self.lease.scenario,
            "step": self.step,
            "task": episode.task.id,
            "side": episode.side,
            "repeat": episode.repeat,
            "split": episode.task.split,
            "status": "retried" if retried else "ok",
            "score": grade.score,
            "why": grade.why,
            "reused": False,
            "copy_key": self.copy_keys.get((episode.task.id, episode.side)),
            "started_at": rfc3339(now()),
            "seconds": episode.seconds,
            "input_tokens": episode.usage.input_tokens,
            "output_tokens": episode.usage.output_tokens,
            "cost": episode.usage.cost,
            "receipt": episode.receipt,
            "answer": episode.answer,
            "log": episode.log or None,
        }
        await self.store.write(lambda connection: self._insert(connection, row))

    def _insert(self, connection: Connection, row: Mapping[str, object]) -> None:
        prove(connection, self.lease)
        insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        connection.execute(insert(episodes).on_conflict_do_nothing(), row)

    def _reuse(self, connection: Connection) -> None:
        """Only the served side is reused: the candidate of an earlier step was another tree."""
        for (task, side), key in self.copy_keys.items():
            query = select(episodes).where(
                episodes.c.copy_key == key, episodes.c.status != "error", episodes.c.reused.is_(False)
            )
            known = connection.execute(query.limit(1)).mappings().first()
            if known is None or (known["scenario"], known["step"]) == (self.lease.scenario, self.step):
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
