"""Noticing that a client went away while it waits for its answer."""

import asyncio
from collections.abc import Callable

from starlette.types import Receive

BEGIN_S = 0.02
"""Whoever is answered sooner is not watched: a task would cost that answer more than it could save."""


class ClientWatch:
    """Calls `left` when the client disconnects, from `BEGIN_S` after now until `end()`."""

    def __init__(self, receive: Receive, left: Callable[[], None]) -> None:
        self._receive = receive
        self._left = left
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(BEGIN_S, self._begin)

    def end(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left()
