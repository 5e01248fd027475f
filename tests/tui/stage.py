"""The app over a real daemon, for pilot tests: keys in, text on the screen out."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from reef.async_client import AsyncClient
from reef_cli.tui.app import ReefApp
from tests.e2e.running import TOKEN, Daemon

SMALL = (80, 24)


class Stage:
    """One running app. `see` waits until a text is on the screen."""

    def __init__(self, app: ReefApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    @property
    def text(self) -> str:
        """What is on the screen, line by line."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in lines)

    async def see(self, *texts: str, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            shown = self.text
            if all(text in shown for text in texts):
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"{texts} not all on the screen:\n{self.text}")

    async def told(self, text: str, seconds: float = 10.0) -> None:
        """Wait for a notice; they are not drawn in tests."""

        def there() -> bool:
            return any(text in f"{notice.title} {notice.message}" for notice in self.app._notifications)

        await self.until(there, seconds)

    def hear(self) -> list[str]:
        """What is notified from now on, in place of being shown."""
        heard: list[str] = []
        self.app.notify = lambda message, **_: heard.append(message)
        return heard

    async def until(self, holds: Callable[[], bool], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"it did not come:\n{self.text}"
            await self.pilot.pause(0.05)


@asynccontextmanager
async def on_stage(app: ReefApp, size: tuple[int, int] = SMALL) -> AsyncIterator[Stage]:
    async with app.run_test(size=size) as pilot:
        yield Stage(app, pilot)


def play(daemon: Daemon, act: Callable[[Stage], Awaitable[None]], size: tuple[int, int] = SMALL) -> None:
    """Run one scene against a daemon; the app finds it again when it is restarted."""

    async def scene() -> None:
        app = ReefApp(lambda: AsyncClient(daemon.url, token=TOKEN))
        async with on_stage(app, size) as stage:
            await act(stage)

    asyncio.run(scene())
