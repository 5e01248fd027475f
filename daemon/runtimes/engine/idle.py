"""When an engine has had nothing to do for so long that its memory is worth more than its readiness."""

import asyncio
import time

FIRST_USE_S = 30.0
"""Who had it loaded was told to come back, and gets at least so long to do it."""


class Idleness:
    """Counts who uses something. `after_s` seconds after the last use, `over` returns."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._users = 0
        self._unused = True
        self._since = time.monotonic()

    def begin(self) -> None:
        """It is there, and nobody has used it yet."""
        self._unused = True
        self._since = time.monotonic()

    def enter(self) -> None:
        self._users += 1
        self._unused = False

    def leave(self) -> None:
        self._users -= 1
        self._since = time.monotonic()

    async def over(self) -> None:
        while (left := self._left_s()) > 0:  # noqa: ASYNC110 - time has no event to wait for
            await asyncio.sleep(min(left, self._after_s))

    def _left_s(self) -> float:
        if self._users:
            return self._after_s
        after = max(self._after_s, FIRST_USE_S) if self._unused else self._after_s
        return self._since + after - time.monotonic()
