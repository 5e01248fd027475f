"""Judging again goes on, whatever one report does to it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from daemon.growth import observer
from daemon.growth.observer import Observer
from reef.errors import Unavailable


def test_judging_again_outlives_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "JUDGE_EVERY_S", 0.0)
    troubles = [Unavailable("the disk is full"), RuntimeError("a plug-in")]
    judged = asyncio.Event()

    async def recover() -> None:
        if troubles:
            raise troubles.pop(0)
        judged.set()

    rooms: Any = SimpleNamespace(recover=recover, names=list)

    async def go() -> None:
        keeping = asyncio.create_task(Observer(rooms, rooms, rooms, rooms, rooms, rooms).keep_judging())
        await asyncio.wait_for(judged.wait(), 5)
        assert not keeping.done()
        keeping.cancel()

    asyncio.run(go())
