"""`python -m reef_cli.tui.record FOLDER`: take a recording of a real `reef demo`.

While the demo plays, every event is kept as it came, and after each the routes that the screens read are
asked. Nothing is changed but names of this machine: the home, the address and the model's folder.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import orjson

from reef._calls import record
from reef._protocol import Call
from reef.async_client import AsyncClient, Event
from reef.errors import ReefError
from reef_cli.demo.play import play
from reef_cli.demo.stage import SCENARIO, Stage, fetch_model, stage
from reef_cli.output import say
from reef_cli.tui.recording import Recording
from reef_cli.tui.replay import RECORDS

SETTLE_S = 0.3
SHOWN_URL, SHOWN_HOME = "http://127.0.0.1:8900", "~/.reef"


class Recorder:
    """Follows one daemon until it ends."""

    def __init__(self, setting: Stage, model: Path) -> None:
        self._setting = setting
        self._hidden = ((str(setting.home), SHOWN_HOME), (setting.url, SHOWN_URL), (str(model), model.name))
        self._began = time.monotonic()
        self._stale = asyncio.Event()
        self.recording = Recording("")

    async def run(self) -> None:
        async with AsyncClient(self._setting.url, home=self._setting.home) as client:
            asking = asyncio.create_task(self._ask(client))
            try:
                async for event in client.events():
                    self._keep(event)
            except ReefError:
                pass  # the demo is over
            asking.cancel()

    def _keep(self, event: Event) -> None:
        self.recording.began = self.recording.began or str(event.data.get("at") or "")
        told = orjson.loads(self._shown(orjson.dumps(event.data).decode()))
        self.recording.events.append((self._at(), Event(event.id, event.name, told)))
        self._stale.set()

    async def _ask(self, client: AsyncClient) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            for call in self._calls():
                await self._one(client, call)
            for call in self._further_calls():
                await self._one(client, call)
            await asyncio.sleep(SETTLE_S)

    async def _one(self, client: AsyncClient, call: Call, target: str | None = None) -> None:
        answer = await client._send(call)
        if answer.status == 200:
            body = self._shown(answer.body.decode())
            self.recording.keep(self._at(), target or call.target, body)

    def _calls(self) -> Iterable[Call]:
        """What the screens ask, whatever is there."""
        scenario = {"scenario": SCENARIO}
        yield Call("GET", "/reef/status")
        yield Call("GET", "/reef/steps", scenario)
        yield Call("GET", f"/reef/scenarios/{SCENARIO}/releases")
        yield Call("GET", "/reef/harness", headers={"x-reef-scenario": SCENARIO})
        yield Call("GET", "/reef/reports", scenario)
        yield Call("GET", "/reef/logs", {"after": 0, "limit": 200})

    def _further_calls(self) -> Iterable[Call]:
        """What is behind a row of those answers."""
        at = self._at()
        steps = orjson.loads(self.recording.answer(f"/reef/steps?scenario={SCENARIO}", at) or "{}")
        for step in steps.get("steps") or []:
            yield Call("GET", f"/reef/steps/{SCENARIO}/{step['step']}")
            if step["candidate_id"]:
                yield self._diff(step["base_release_id"], step["candidate_id"])
        releases = orjson.loads(self.recording.answer(f"/reef/scenarios/{SCENARIO}/releases", at) or "{}")
        for row in releases.get("releases") or []:
            if row["published"] and row["parent_release_id"]:
                yield self._diff(row["parent_release_id"], row["release_id"])

    @staticmethod
    def _diff(older: str, newer: str) -> Call:
        return Call("GET", f"/reef/scenarios/{SCENARIO}/diff", {"from": older, "to": newer})

    async def records(self, client: AsyncClient) -> None:
        """All records with their payload and whether a report names them; one by one with their story."""
        listed = []
        for reported in (True, False):
            found = await client.records(
                SCENARIO, limit=1000, request_type="inference", order="desc", payload=True, reported=reported
            )
            rows = found["records"]
            listed += [row | {"reported": reported} for row in rows]
        listed.sort(key=lambda row: row["sequence"], reverse=True)
        body = self._shown(orjson.dumps({"records": listed}).decode())
        self.recording.keep(self._at(), RECORDS, body)
        for row in listed:
            await self._one(client, Call("GET", f"/reef/records/{row['agent_record_id']}"))
            if row["kind"] == "turn":
                await self._one(client, record(SCENARIO, row["agent_record_id"], raw=True))

    def _shown(self, text: str) -> str:
        for hidden, shown in self._hidden:
            text = text.replace(hidden, shown)
        return text

    def _at(self) -> float:
        return round(time.monotonic() - self._began, 2)


def main(folder: Path) -> None:
    model = fetch_model()
    with stage(keep=False) as setting:
        recorder = Recorder(setting, model)
        follower = threading.Thread(target=lambda: asyncio.run(recorder.run()), daemon=True)
        follower.start()
        play(setting, time.monotonic())
        time.sleep(1.0)  # the last answers settle

        async def finish() -> None:
            async with AsyncClient(setting.url, home=setting.home) as client:
                await recorder.records(client)

        asyncio.run(finish())
    follower.join(timeout=10)
    say(f"kept in {recorder.recording.write(folder)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
