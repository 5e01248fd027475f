"""One stream on its way from the upstream to the client, and into its record."""

import asyncio
import logging
from collections.abc import AsyncIterator

from daemon.serving.call import Begin, Write
from daemon.serving.keeper import Keeper
from daemon.serving.turn import Turn
from daemon.wire.encoding import BROKEN, Decoder
from daemon.wire.errors import STOPPING, UPSTREAM_BROKE, sentence, shown
from daemon.wire.tail import StreamTail
from reef.errors import ReefError, TimedOut, Unavailable, UpstreamFailed
from reef.runtime import ProviderResponse

log = logging.getLogger(__name__)

_TRAILING_S = 2.0
"""How long to wait for what an upstream sends after its terminal event."""
_AGAIN = "try again; look at the upstream's own log"


class Stream:
    """Sends bytes on as they arrive; the terminal event waits until the record is stored.

    `unpack` undoes a compression that the upstream chose unasked.
    """

    def __init__(
        self, turn: Turn, response: ProviderResponse, keeper: Keeper, unpack: Decoder | None = None
    ) -> None:
        self._turn = turn
        self._response = response
        self._keeper = keeper
        self._unpack = unpack
        self._tail = StreamTail(turn.codec)
        self._translator = turn.crossing.translator() if turn.crossing else None

    async def pump(self, begin: Begin, write: Write) -> None:
        """Write the whole stream, after `begin()`.

        Cancelling it ends the upstream call and records what had arrived.
        """
        body = aiter(self._response.body)
        try:
            self._keeper.open(self._turn.draft)
            await begin()
            error = await self._through(body, write)
            if await self._last(error, write):
                await self._trailing(body, write)
        except asyncio.CancelledError:
            if not self._turn.call.settled:
                await self._keeper.keep_anyway(self._turn.called_off())
                if self._turn.call.stopping:
                    await write(self._tail.error_event(STOPPING))
            raise
        except Exception as bug:
            if self._turn.call.settled:
                raise
            log.exception("the stream of record %s failed", self._turn.draft.id)
            error = ReefError(f"the daemon failed: {type(bug).__name__}", hint="a bug; see `reef logs`")
            await self._keeper.keep_anyway(self._turn.end("failed", error))
            await write(self._tail.error_event(f"500 internal: {error.message}"))
        finally:
            await self._response.close()

    async def _through(self, body: AsyncIterator[bytes], write: Write) -> ReefError | None:
        """Pass on all that comes before the terminal event; return what broke the stream, if anything did."""
        turn, tail, unpack, translator = self._turn, self._tail, self._unpack, self._translator
        try:
            async for chunk in body:
                plain = unpack(chunk) if unpack else chunk
                turn.take(plain)
                if translator:
                    plain = translator.feed(plain)
                if out := tail.feed(plain):
                    await write(out)
                if tail.finished:
                    return self._said_nothing()
        except (UpstreamFailed, TimedOut) as error:
            return error
        except BROKEN as error:
            return UpstreamFailed(f"the upstream's stream cannot be unpacked: {error}")
        last = tail.feed(translator.end()) if translator else b""
        rest = tail.end()
        whole = tail.finished or tail.reasoned or tail.errored
        if out := last + rest if whole else last:  # our error event may not follow half an event
            await write(out)
        if not whole and tail.answered:
            return UpstreamFailed("the stream ended before the answer did", hint=_AGAIN)
        return self._said_nothing()

    def _said_nothing(self) -> UpstreamFailed | None:
        """What is wrong with a stream in which nothing is said."""
        tail = self._tail
        if tail.answered or tail.reasoned or tail.errored or (self._translator and tail.finished):
            return None  # a bridge ends no stream well that said nothing, and gave no reason for its end
        came = b"".join(self._turn.arrived)
        return UpstreamFailed(f"the stream ended without an answer: {shown(came)}", hint=_AGAIN)

    async def _last(self, broke: ReefError | None, write: Write) -> bool:
        """Store the record, then let the end of the stream out. True: that was the upstream's own."""
        tail = self._tail
        error = broke
        if tail.errored:
            told = tail.told.removeprefix(UPSTREAM_BROKE)  # a bridge says it so
            error = error or UpstreamFailed(f"the upstream ended the stream with an error: {told}")
        draft = self._turn.end("failed" if error else "complete", error)
        try:
            stored = await self._keeper.keep(draft)
        except Unavailable as refusal:
            await write(tail.error_event(f"503 overloaded: {refusal.message}"))
            return False
        if broke is not None:
            if not tail.errored:
                await write(tail.error_event(UPSTREAM_BROKE + sentence(broke)))
            return False
        if last := tail.signed(draft.id) if stored else tail.plain():
            await write(last)
        return True

    async def _trailing(self, body: AsyncIterator[bytes], write: Write) -> None:
        """Pass on what follows the terminal event, for a little while. Over a bridge nothing does."""
        try:
            async with asyncio.timeout(_TRAILING_S):
                async for chunk in body:
                    if self._translator:
                        continue
                    await write(self._unpack(chunk) if self._unpack else chunk)
        except (TimeoutError, UpstreamFailed, TimedOut, *BROKEN):
            return
