"""How long the terminal interface takes to its first paint, and from a key to its effect under load."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from bench.measure import Row, rounds, timings
from bench.report import Options, Report
from reef.async_client import AsyncClient, Event
from reef_cli.tui.app import ReefApp

BASELINE = "an empty Textual app"
PAINT = "reef tui, first paint"
ROUNDS = 5
RATIO = 1.5
KEY = "a key to its effect"
KEY_S = 0.1
RECORDS, EVENTS_PER_S, KEYS = 10_000, 200, 60

_PAINTED = "self.call_after_refresh(self.exit)"
_EMPTY = f"""
from textual.app import App
class Empty(App):
    def on_ready(self): {_PAINTED}
Empty().run(headless=True)
"""
_REEF = f"""
from reef_cli.tui.app import ReefApp
class Painted(ReefApp):
    def on_ready(self): {_PAINTED}
def connect():
    from reef.async_client import AsyncClient
    return AsyncClient("http://127.0.0.1:9")
Painted(connect).run(headless=True)
"""


def run(_: Options) -> Report:
    """The first paint, in processes of their own; a key, with 10,000 records and 200 events a second."""

    def python(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    rows = rounds(
        {BASELINE: lambda: python(_EMPTY), PAINT: lambda: python(_REEF)}, count=ROUNDS, baseline=BASELINE
    )
    allowed = min(row.best_s for row in rows if row.name == BASELINE) * RATIO
    targets = {PAINT: allowed}
    shown = [Row(row.name, row.seconds, row.best_s, row.ratio, targets.get(row.name)) for row in rows]
    times = asyncio.run(_keys())
    median = statistics.median(times)  # what a person feels; the quickest key would hide a slow one
    return timings([*shown, Row(KEY, median, median, median / rows[0].seconds, KEY_S)], BASELINE)


class Busy(AsyncClient):
    """A daemon with many records that is never quiet."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9", token="")
        self._rows = [_record(number) for number in reversed(range(RECORDS))]

    async def status(self) -> dict[str, Any]:
        return {"serving": {"upstreams": []}, "scenarios": {}}

    async def records(
        self, *_: Any, limit: int | None = None, after: str | None = None, **__: Any
    ) -> dict[str, Any]:
        at = RECORDS - int(after) if after else 0
        page = self._rows[at : at + (limit or 50)]
        return {"records": page, "next_after": page[-1]["agent_record_id"] if page else None}

    async def events(self, *_: Any, **__: Any) -> AsyncIterator[Event]:
        number = 0
        while True:
            await asyncio.sleep(1 / EVENTS_PER_S)
            number += 1
            yield Event(f"b-{number}", "record", _record(number) | {"at": "2026-01-01T00:00:00.000Z"})


def _record(number: int) -> dict[str, Any]:
    keys = ("input_tokens", "output_tokens", "cached_tokens", "cost")
    return {
        "agent_record_id": f"{number:08}",
        "scenario": "default",
        "sequence": number,
        "created_at": "2026-01-01T00:00:00.000Z",
        "kind": "turn",
        "status": "complete",
        "model": "m",
        "run": None,
        "session": None,
        "usage": dict.fromkeys(keys),
        "timing": {"total_ms": 12.0, "ttft_ms": 3.0},
        "upstream": {"name": "main", "model": "m"},
        "error": None,
        "metadata": {"tags": {}},
        "request_type": "inference",
        "dialect": "chat",
        "stream": False,
        "http_status": 200,
        "superseded_by": None,
        "release_id": None,
    }


async def _keys() -> list[float]:
    """Seconds from each key to the frame that shows the cursor on another row.

    Keys come as from a terminal: the pilot's own `press` also waits for all else that is going on.
    """
    from textual.events import Key

    from reef_cli.tui.widgets.row_list import RowList

    client = Busy()
    app = ReefApp(lambda: client)
    times = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("t")
        deadline = time.monotonic() + 30
        while len(app.screen.query_one(RowList).rows) < RECORDS and time.monotonic() < deadline:
            await pilot.press("end")
            await pilot.pause(0.05)
        rows = app.screen.query_one(RowList)
        assert len(rows.rows) >= RECORDS, len(rows.rows)
        for number in range(KEYS):
            at = rows.cursor
            began = time.perf_counter()
            app.post_message(Key("up" if number % 2 else "pageup", None))
            while rows.cursor == at:
                await asyncio.sleep(0)
            painted = asyncio.Event()
            app.screen.call_after_refresh(painted.set)
            await painted.wait()
            times.append(time.perf_counter() - began)
    return times
