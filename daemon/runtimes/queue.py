"""A bound on what runs at once, and a fair queue before it."""

import asyncio
from collections import OrderedDict, deque


class Slot:
    """The right to run one request; `leave` gives it back, once however often it is called."""

    __slots__ = ("_queue",)

    def __init__(self, queue: "FairQueue") -> None:
        self._queue: FairQueue | None = queue

    def leave(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue._pass_on()


class FairQueue:
    """At most `slots` run. Who waits is served in turn: one of each scenario, each scenario in its order."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    async def enter(self, scenario: str) -> Slot:
        """Wait for a slot. Cancelling it leaves the queue."""
        if self._free > 0:
            self._free -= 1
            return Slot(self)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(scenario, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            else:
                self._forget(scenario, turn)
            raise
        return Slot(self)

    def _pass_on(self) -> None:
        """Give a slot to who waits longest in the scenario whose turn it is, or keep it free."""
        while self._waiting:
            scenario, line = next(iter(self._waiting.items()))
            turn = line.popleft()
            if line:
                self._waiting.move_to_end(scenario)
            else:
                del self._waiting[scenario]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, scenario: str, turn: "asyncio.Future[None]") -> None:
        line = self._waiting.get(scenario)
        if line is None or turn not in line:
            return
        line.remove(turn)
        if not line:
            del self._waiting[scenario]
