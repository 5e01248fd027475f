"""The log view: it follows the end, holds still where a person reads, and goes on when told."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from textual.widgets import RichLog

from reef.async_client import AsyncClient
from reef_cli.tui.app import ReefApp
from tests.tui.stage import Stage, on_stage


class Talker:
    """A client of a daemon whose log grows when told."""

    def __init__(self) -> None:
        self.lines = [self._line(number) for number in range(1, 201)]

    def _line(self, number: int) -> dict[str, Any]:
        return {"number": number, "level": "info", "text": f"line {number:04}"}

    def say(self, count: int) -> None:
        last = len(self.lines)
        self.lines += [self._line(last + number) for number in range(1, count + 1)]

    async def status(self) -> dict[str, Any]:
        return {"started_at": "2026-01-01T00:00:00Z", "serving": {"upstreams": []}, "scenarios": {}}

    async def events(self, **_: Any) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None

    async def logs(self, *, after: int, limit: int) -> dict[str, Any]:
        return {"lines": [line for line in self.lines if line["number"] > after][-limit:]}

    async def close(self) -> None: ...


def test_scrolling_up_holds_it_still_and_the_end_lets_it_go_on() -> None:
    daemon = Talker()

    async def scene(stage: Stage) -> None:
        await stage.until(lambda: bool(stage.app.status))
        await stage.press("l")
        await stage.see("line 0200", "follows")
        await stage.press("pageup", "pageup")
        await stage.see("holds still")
        output = stage.app.screen.query_one(RichLog)
        at = output.scroll_y
        daemon.say(50)
        await stage.until(lambda: len(output.lines) == 250)
        assert output.scroll_y == at
        assert "line 0250" not in stage.text
        await stage.press("end")
        await stage.see("line 0250", "follows")
        daemon.say(5)
        await stage.see("line 0255", "follows")

    async def main() -> None:
        async with on_stage(ReefApp(lambda: cast(AsyncClient, daemon))) as stage:
            await scene(stage)

    asyncio.run(main())
