"""Each screen as a picture, small and large, from the recording that comes with Reef.

A change is looked at before it is accepted: `pytest tests/tui/test_snapshots.py --snapshot-update`.
"""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from reef_cli.tui.app import ReefApp
from reef_cli.tui.recording import Recording
from reef_cli.tui.replay import replaying

KEYS: dict[str, tuple[str, ...]] = {
    "home": ("h",),
    "traffic": ("t",),
    "record": ("t", "enter"),
    "inbox": ("i",),
    "steps": ("s",),
    "step": ("s", "enter"),
    "step diff": ("s", "enter", "d"),
    "step episodes": ("s", "enter", "g"),
    "history": ("y",),
    "compare": ("y", "d"),
    "tree": ("e",),
    "runtimes": ("n",),
    "log": ("l",),
    "help": ("y", "question_mark"),
    "check out": ("y", "end", "b"),
}
SETTLE_S = 0.4


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["small", "large"])
@pytest.mark.parametrize("screen", KEYS)
def test_screen(screen: str, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    connect, now = replaying(Recording.shipped(), math.inf)

    async def open_it(pilot: Pilot[None]) -> None:
        await pilot.pause(SETTLE_S)
        for key in KEYS[screen]:
            await pilot.press(key)
            while any(worker.group == "load" for worker in pilot.app.workers):
                await pilot.pause(0.02)
            await pilot.pause(SETTLE_S)

    assert snap_compare(ReefApp(connect, now=now), terminal_size=size, run_before=open_it)


def test_the_pictures_are_there() -> None:
    pictures = Path(__file__).parent / "__snapshots__" / "test_snapshots"
    assert len(list(pictures.glob("*.raw"))) + len(list(pictures.glob("*.svg"))) == 2 * len(KEYS)
