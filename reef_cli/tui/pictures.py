"""`python -m reef_cli.tui.pictures FOLDER`: the pictures in the documents, from the recording of a demo."""

import asyncio
import math
import os
import sys
import time
from pathlib import Path

from reef_cli.output import say
from reef_cli.tui.app import ReefApp
from reef_cli.tui.recording import Recording
from reef_cli.tui.replay import replaying

SIZE = (100, 26)
SETTLE_S = 0.5
PICTURES: dict[str, tuple[str, ...]] = {
    "inbox": ("i",),
    "step": ("s", "enter"),
    "diff": ("s", "enter", "d"),
    "episodes": ("s", "enter", "g"),
    "history": ("y",),
}


async def take(folder: Path) -> None:
    for name, keys in PICTURES.items():
        connect, now = replaying(Recording.shipped(), math.inf)
        app = ReefApp(connect, now=now)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause(SETTLE_S)
            for key in keys:
                await pilot.press(key)
                await pilot.pause(SETTLE_S)
            file = folder / f"{name}.svg"
            file.write_text(app.export_screenshot(title=f"reef tui: {name}"), "utf-8")
            say(f"{file}")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(take(Path(sys.argv[1])))
