"""When an engine has had nothing to do for so long that its memory is worth more than its readiness."""

import asyncio
import time


class Idleness:
    """Counts who uses something. `after_s` seconds after the last use, `over` returns."""

    def __init__(self, after_s: float) -> None:
        self.after_s = after_s
        self._users = 0
        self._since = time.monotonic()

    def enter(self) -> None:
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        self.touch()

    def touch(self) -> None:
        """Count anew."""
        self._since = time.monotonic()

    async def over(self) -> None:
        while (left := self._left_s()) > 0:  # noqa: ASYNC110 - time has no event to wait for
            await asyncio.sleep(left)

    def _left_s(self) -> float:
        if self._users:
            return self.after_s
        return self._since + self.after_s - time.monotonic()
