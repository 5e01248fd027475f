"""Memory that is free goes back to the system."""

import asyncio
import sys
from typing import Any

import pytest

from daemon import memory


@pytest.mark.skipif(memory._trim() is None, reason="this C library cannot give memory back")
@pytest.mark.parametrize("in_a_circle", [False, True])
def test_what_a_burst_took_goes_back(monkeypatch: pytest.MonkeyPatch, in_a_circle: bool) -> None:
    monkeypatch.setattr(memory, "EVERY_S", 0.02)

    async def burst() -> tuple[int, int]:
        giving_back = asyncio.create_task(memory.give_back())
        await asyncio.sleep(0)
        blocks: list[Any] = [bytes(60_000) for _ in range(3_000)]  # too small to be mapped each by itself
        most = memory.resident()
        kept = blocks[::100]
        if in_a_circle:
            blocks.append(blocks)
        del blocks
        try:
            async with asyncio.timeout(10):
                while memory.resident() > most - 100_000_000:
                    await asyncio.sleep(0.02)
        finally:
            giving_back.cancel()
        return most, memory.resident() + sys.getsizeof(kept)

    most, after = asyncio.run(burst())
    assert after < most - 90_000_000
