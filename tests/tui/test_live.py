"""Following the daemon: whatever breaks, it is found again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from textual.message import Message

from reef.async_client import AsyncClient, Event
from reef.errors import DaemonUnreachable
from reef_cli.tui import live
from reef_cli.tui.live import Live
from reef_cli.tui.messages import Connected, Disconnected, Happened


class Daemon:
    """Breaks with each of `troubles` in turn, then sends one event and stays."""

    def __init__(self, troubles: list[Exception]) -> None:
        self.troubles = troubles
        self.asked_after: list[str | None] = []

    async def status(self) -> dict[str, Any]:
        if self.troubles:
            raise self.troubles.pop(0)
        return {"version": "1"}

    async def events(self, *, last_event_id: str | None = None) -> AsyncIterator[Event]:
        self.asked_after.append(last_event_id)
        yield Event("b-7", "record", {})
        if len(self.asked_after) == 2:
            await asyncio.sleep(60)

    async def close(self) -> None:
        return


def test_it_goes_on_after_any_trouble_and_from_the_last_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "FIRST_DELAY_S", 0.01)
    daemon = Daemon([DaemonUnreachable("away"), ValueError("odd bytes")])
    told: list[Message] = []

    async def scene() -> None:
        following = Live(lambda: cast(AsyncClient, daemon), told.append)
        task = asyncio.create_task(following.run())
        async with asyncio.timeout(10):
            while len(daemon.asked_after) < 2:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await following.close()

    asyncio.run(scene())
    assert daemon.asked_after == [None, "b-7"]
    away = [message.reason for message in told if isinstance(message, Disconnected)]
    assert away[0] == "away"
    assert "odd bytes" in away[1]
    assert any(isinstance(message, Connected) for message in told)
    assert any(isinstance(message, Happened) for message in told)
