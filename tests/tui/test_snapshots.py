"""Each screen as a picture, small and large, from the recording that comes with Reef.

A change is looked at before it is accepted: `pytest tests/tui/test_snapshots.py --snapshot-update`.
"""

import math
import time
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
"""How long a picture has to stay the same."""


async def settled(pilot: Pilot[None]) -> None:
    """Wait until nothing is loaded any more and the screen does not change."""
    shown, since, deadline = "", time.monotonic(), time.monotonic() + 20
    while (now := time.monotonic()) - since < SETTLE_S:
        assert now < deadline, "the screen does not settle"
        await pilot.pause(0.05)
        strips = pilot.app.screen._compositor.render_strips()
        picture = "\n".join(strip.text for strip in strips)
        loads = any(worker.group == "load" for worker in pilot.app.workers)
        if loads or picture != shown:
            shown, since = picture, time.monotonic()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["small", "large"])
@pytest.mark.parametrize("screen", KEYS)
def test_screen(screen: str, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    connect, now = replaying(Recording.shipped(), math.inf)

    async def open_it(pilot: Pilot[None]) -> None:
        await settled(pilot)
        for key in KEYS[screen]:
            await pilot.press(key)
            await settled(pilot)

    assert snap_compare(ReefApp(connect, now=now), terminal_size=size, run_before=open_it)


def test_the_pictures_are_there() -> None:
    pictures = Path(__file__).parent / "__snapshots__" / "test_snapshots"
    assert len(list(pictures.glob("*.raw"))) + len(list(pictures.glob("*.svg"))) == 2 * len(KEYS)
