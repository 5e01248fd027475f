"""A client that answers from a recording: for `reef tui --demo`, for tests and for pictures."""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

from reef._protocol import Answer, Call
from reef.async_client import AsyncClient, Event
from reef.errors import Unsupported
from reef_cli.tui.conversation import answered, asked
from reef_cli.tui.recording import Recording

RECORDS = "/reef/records"


class ReplayClient(AsyncClient):
    """`speed` 1 is as it was, 10 ten times as fast; infinite shows the end at once."""

    def __init__(self, recording: Recording, *, speed: float = 1.0) -> None:
        super().__init__("http://127.0.0.1:8900", token="")
        self._recording = recording
        self._speed = speed
        self._began = time.monotonic()

    @property
    def at(self) -> float:
        """Seconds of the recording that have passed."""
        if math.isinf(self._speed):
            return self._recording.seconds
        return (time.monotonic() - self._began) * self._speed

    def now(self) -> datetime:
        """The time of day in the recording."""
        return datetime.fromisoformat(self._recording.began) + timedelta(seconds=self.at)

    async def events(
        self, scenario: str | None = None, *, last_event_id: str | None = None
    ) -> AsyncIterator[Event]:
        for at, event in self._recording.events:
            if at > self.at:
                await asyncio.sleep((at - self.at) / self._speed)
            if scenario in (None, event.data.get("scenario")):
                yield event
        await asyncio.Event().wait()  # the daemon of a recording does not end

    async def _send(self, call: Call) -> Answer:
        if call.method != "GET":
            raise Unsupported("this is a replay of a recording", hint="nothing is changed in it")
        body = self._recording.answer(call.target, self.at)
        if body is None:
            body = self._derived(call)
        if body is None:
            told = {"error": {"type": "not_found", "message": "the recording does not hold this", "hint": ""}}
            return Answer(404, {}, json.dumps(told).encode())
        return Answer(200, {}, body.encode())

    def _derived(self, call: Call) -> str | None:
        """Answers to questions that were not asked while it was recorded: the same route, other filters."""
        if call.path.endswith("/records"):
            return self._records(call)
        scoped = re.fullmatch(r"/reef/scenarios/[^/]+(/records/[^/]+)", call.path)
        if scoped and not call.query:
            return self._recording.answer(f"/reef{scoped[1]}", self.at)
        nearest = (target for target in self._recording.answers if target.partition("?")[0] == call.path)
        return next((self._recording.answer(target, self.at) for target in nearest), None)

    def _records(self, call: Call) -> str | None:
        whole = self._recording.answer(RECORDS, self.at)
        if whole is None:
            return None
        rows: list[dict[str, Any]] = json.loads(whole)["records"]
        query = {key: str(value) for key, value in call.query.items() if value is not None}
        scenario = _scenario(call, query)
        mine = [row for row in rows if scenario in (None, row["scenario"])]
        ordered = _behind(mine, query, within=scenario is not None)
        wanted = [row for row in ordered if _fits(row, query)][: int(query.get("limit", 50))]
        last = wanted[-1]["agent_record_id"] if wanted else query.get("after")
        if sought := query.get("text", "").casefold():
            wanted = [row for row in wanted if _says(row["payload"], sought)]
        return json.dumps({"records": wanted, "next_after": last})


def _scenario(call: Call, query: dict[str, str]) -> str | None:
    parts = call.path.split("/")
    return parts[3] if parts[2] == "scenarios" else query.get("scenario")


def _behind(rows: list[dict[str, Any]], query: dict[str, str], *, within: bool) -> list[dict[str, Any]]:
    """The rows in the daemon's order, from where the last page ended: `within` a scenario as they ended,
    over all as they began."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return (row["sequence"],) if within else (row["created_at"], row["agent_record_id"])

    falling = query.get("order") == "desc"
    last = next((key(row) for row in rows if row["agent_record_id"] == query.get("after")), None)
    if sequence := int(query.get("after_sequence", 0)):
        last = (sequence,)
    left = [row for row in rows if last is None or (key(row) < last if falling else key(row) > last)]
    return sorted(left, key=key, reverse=falling)


def _says(payload: dict[str, Any], sought: str) -> bool:
    return any(sought in part.text.casefold() for part in (*asked(payload), *answered(payload)))


def _fits(row: dict[str, Any], query: dict[str, str]) -> bool:
    reported = query.get("reported")
    return all(query.get(key) in (None, row.get(key)) for key in ("kind", "request_type", "status")) and (
        reported is None or (reported.lower() in ("1", "true")) == row["reported"]
    )


def replaying(recording: Recording, speed: float) -> tuple[Callable[[], AsyncClient], Callable[[], datetime]]:
    """What `ReefApp` needs to show a recording: how to connect, and what time it is."""
    client = ReplayClient(recording, speed=speed)
    return (lambda: client), client.now
