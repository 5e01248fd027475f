"""Driving the terminal interface against a real daemon."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from textual.pilot import Pilot

from reef.async_client import AsyncClient
from reef_cli.tui.app import ReefApp
from tests.e2e.running import TOKEN, Daemon

T = TypeVar("T")


def app_for(daemon: Daemon) -> ReefApp:
    return ReefApp(lambda: AsyncClient(daemon.url, token=TOKEN))


async def until(pilot: Pilot[Any], look: Callable[[], T | None], what: str, *, seconds: float = 15.0) -> T:
    """Let the app live until `look` finds something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        await pilot.pause()
        if found := look():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(
        f"{what} did not come within {seconds} s; the screen shows:\n{screen_text(pilot.app)}"
    )


def screen_text(app: Any) -> str:
    """What is on the screen, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
