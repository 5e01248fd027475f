"""Noticing that a client went away while it waits for its answer."""

import asyncio
from collections.abc import Callable

from starlette.types import Receive

BEGIN_S = 0.02
"""Whoever is answered sooner is not watched: a task would cost that answer more than it could save."""


class ClientWatch:
    """Calls `left` when the client disconnects, from `BEGIN_S` after now until `end()`."""

    def __init__(self, receive: Receive, left: Callable[[], None]) -> None:
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(
            BEGIN_S, self._begin, receive, left
        )

    def end(self) -> None:
        """Look no more. Nothing refers back to this from then on: what an answer holds on to is large, and
        must not wait for the collector."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._timer = self._task = None

    def _begin(self, receive: Receive, left: Callable[[], None]) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(_watch(receive, left))


async def _watch(receive: Receive, left: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    left()
