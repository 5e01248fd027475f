"""Events: what happens in the daemon, as it happens, for `/reef/events`.

Kept in memory only: the last `KEPT` events can be replayed to a client that reconnects.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reef.ids import new_receipt, now, rfc3339

KEPT = 2000
QUEUE_LIMIT = 5000


@dataclass(frozen=True, slots=True)
class Event:
    """`number` counts from 1 within one boot of the daemon."""

    number: int
    name: str
    scenario: str | None
    data: dict[str, Any]


class EventBus:
    """Publishes from the event loop's thread; each subscriber has a queue of its own."""

    def __init__(self) -> None:
        self.boot = new_receipt()[-8:]
        self._last = 0
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._subscribers: set[asyncio.Queue[Event | None]] = set()

    @property
    def last(self) -> int:
        return self._last

    def publish(self, name: str, scenario: str | None = None, **data: Any) -> None:
        self._last += 1
        stamped = {"id": self.event_id(self._last), "at": rfc3339(now()), "scenario": scenario} | data
        event = Event(self._last, name, scenario, stamped)
        self._kept.append(event)
        for subscriber in tuple(self._subscribers):
            if subscriber.qsize() >= QUEUE_LIMIT:
                self._subscribers.discard(subscriber)
                subscriber.put_nowait(None)
            else:
                subscriber.put_nowait(event)

    def event_id(self, number: int) -> str:
        return f"{self.boot}-{number}"

    def missed(self, last_event_id: str | None) -> tuple[list[Event], bool]:
        """What to replay after `last_event_id`, and whether something in between is gone."""
        if not last_event_id:
            return [], False
        boot, _, number = last_event_id.rpartition("-")
        if boot != self.boot or not (number.isascii() and number.isdigit()):
            return [], True
        after = int(number)
        events = [event for event in self._kept if event.number > after]
        gap = after < self._last and (not events or events[0].number != after + 1)
        return events, gap

    async def subscribe(self) -> AsyncIterator[Event]:
        """Events from now on. Ends when this reader fell too far behind, or the bus closed."""
        mine: asyncio.Queue[Event | None] = asyncio.Queue()
        self._subscribers.add(mine)
        try:
            while (event := await mine.get()) is not None:
                yield event
        finally:
            self._subscribers.discard(mine)

    def close(self) -> None:
        for subscriber in tuple(self._subscribers):
            with suppress(asyncio.QueueFull):
                subscriber.put_nowait(None)
        self._subscribers.clear()
