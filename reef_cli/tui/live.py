"""The live connection: events as they happen, and finding the daemon again when it was away."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from reef.errors import ReefError
from reef_cli.tui.messages import Connected, Disconnected, Happened

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 5.0


class Live:
    """Owns the client. `connect` makes a new one: a daemon that was restarted may have another address."""

    def __init__(self, connect: "Callable[[], AsyncClient]", post: Callable[[Message], object]) -> None:
        self._connect = connect
        self._post = post
        self._client: AsyncClient | None = None
        self.last_event_id: str | None = None

    @property
    def client(self) -> "AsyncClient":
        """The client of the daemon as it was found last. Raises `DaemonUnreachable` when there is none."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    async def run(self) -> None:
        """Follow the events for ever; after a break, go on with the last one seen."""
        delay = FIRST_DELAY_S
        while True:
            try:
                self._post(Connected(await self.client.status()))
                delay = FIRST_DELAY_S
                async for event in self.client.events(last_event_id=self.last_event_id):
                    self.last_event_id = event.id or self.last_event_id
                    self._post(Happened(event))
                reason = "it ended"
            except ReefError as error:
                reason = error.message.splitlines()[0]
            except Exception as error:  # whatever it was, the app must find the daemon again
                reason = f"a bug: {error!r}"
            self._post(Disconnected(reason))
            await self._forget()
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def close(self) -> None:
        await self._forget()

    async def _forget(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
