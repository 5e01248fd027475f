"""Tens of thousands of records in traffic, from a client that makes them up."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from reef.async_client import AsyncClient
from reef_cli.tui import tail
from reef_cli.tui.app import ReefApp
from reef_cli.tui.widgets.row_list import RowList
from tests.tui.stage import Stage, on_stage


def rows(stage: Stage) -> RowList:
    return stage.app.screen.query_one(RowList)


class Archive:
    """A client of a daemon with very many records."""

    def __init__(self, count: int) -> None:
        self.records_there = [self._record(number) for number in range(count, 0, -1)]
        self.asked = 0

    def _record(self, number: int) -> dict[str, Any]:
        return {
            "agent_record_id": f"receipt-{number:06}",
            "scenario": "work",
            "sequence": number,
            "request_type": "inference",
            "created_at": "2026-01-01T00:00:00Z",
            "kind": "turn",
            "status": "failed" if number == 7 else "complete",
            "model": f"model-{number % 3}",
            "usage": {"input_tokens": number, "output_tokens": 1, "cost": 0.1},
            "timing": {"total_ms": 12.0},
        }

    async def status(self) -> dict[str, Any]:
        return {"scenarios": {}}

    async def events(self, **_: Any) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None

    async def records(self, scenario: str, *, limit: int, after: str | None, **_: Any) -> dict[str, Any]:
        self.asked += 1
        found = [r for r in self.records_there if after is None or r["agent_record_id"] < after]
        return {"records": found[:limit]}

    async def close(self) -> None: ...


def scrolling(count: int, scene: Any) -> Archive:
    archive = Archive(count)

    async def main() -> None:
        app = ReefApp(lambda: cast(AsyncClient, archive))
        async with on_stage(app) as stage:
            await stage.until(lambda: bool(app.status))
            app.status = {"scenarios": {"home": {}}}
            await stage.press("t")
            await stage.see("the newest 500 records")
            await scene(stage)

    asyncio.run(main())
    return archive


def test_ten_thousand_records_scroll() -> None:
    async def scene(stage: Stage) -> None:
        while "the newest" in stage.text:
            await stage.press("end")
        assert len(rows(stage).rows) == 10_000
        await stage.press("end")
        await stage.see("000001")
        await stage.press("home")
        await stage.see("010000")

    assert scrolling(10_000, scene).asked <= 25


def test_a_filter_looks_through_what_is_not_loaded_yet() -> None:
    async def scene(stage: Stage) -> None:
        await stage.press("slash", *"status:failed")
        await stage.see("1 match", "000007", "in 3000 records")

    scrolling(3_000, scene)


def test_what_is_kept_while_new_ones_come_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "KEPT", 600)
    archive = Archive(3000)
    kept = tail.Tail()

    async def scene() -> None:
        client = cast(AsyncClient, archive)
        await kept.load_newest(client)
        for number in range(3001, 3301):
            archive.records_there.insert(0, archive._record(number) | {"created_at": f"2026-01-02T{number}"})
            if number % 50 == 0:
                await kept.load_newest(client)
        assert len(kept.listed) == 600
        assert kept.listed[0]["sequence"] == 3300
        assert not kept.whole
        for _ in range(3):
            await kept.load_older(client)
        await kept.load_newest(client)
        assert len(kept.listed) == 2100, "what a person scrolled to stays"

    asyncio.run(scene())
