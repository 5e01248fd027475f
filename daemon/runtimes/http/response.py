"""An answer while it arrives: its head, and its body as it comes."""

import asyncio
import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from daemon.runtimes.http.errors import BadAnswer, BrokeOff, HttpError, NotHttp, Unanswered
from reef.runtime import Header

HIGH_WATER = 2**18
"""Bytes that wait to be read; with more of them the server has to wait."""
_MOST_OVERHEAD = 2**18
"""Bytes that may come in a row and be no part of a body: heads, trailers."""
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Line(Protocol):
    """What an answer wants of its connection."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None: ...


class Response(AsyncIterator[bytes]):
    """`status` is 0 until the head is there; header names are lower-case, repeated ones are kept. A header
    whose name is no token, or with a control character in it, is left out: nobody may pass it on.

    Iterating gives the body, each time all that has arrived by then, without a wait where some has. It raises
    `BrokeOff` or `ReadTimedOut` after what arrived before that. One task at a time may wait.
    """

    __slots__ = (
        "_chunks",
        "_held",
        "_line",
        "_overhead",
        "_parser",
        "_waiter",
        "bodiless",
        "error",
        "headers",
        "over",
        "paused",
        "reusable",
        "status",
        "waiting_since",
    )

    def __init__(self, line: Line, *, bodiless: bool = False) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.bodiless = bodiless
        self.over = False
        """All of it has arrived."""
        self.reusable = False
        """The server keeps the connection after it, as far as it says."""
        self.error: HttpError | None = None
        self.paused = False
        """The server has to wait for the reader."""
        self.waiting_since: float | None = None
        self._line: Line | None = line
        self._waiter: asyncio.Future[None] | None = None
        self._chunks: list[bytes] = []
        self._held = self._overhead = 0
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # as browsers and other clients are
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def __aiter__(self) -> "Response":
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self.error is not None:
                raise self.error
            if self.over:
                raise StopAsyncIteration
            await self.wait()
        chunks, self._chunks, self._held = self._chunks, [], 0
        if self.paused and self._line is not None:
            self.paused = False
            self._line.resume_reading()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def whole(self) -> bytes:
        """All of the body."""
        return b"".join([chunk async for chunk in self])

    async def wait(self) -> None:
        """Until something happens. Cancelled, it breaks the connection off."""
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        self.waiting_since = loop.time()
        try:
            await waiter
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._waiter = self.waiting_since = None

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def close(self) -> None:
        """Break off the connection where the answer is not over; may be called twice."""
        if self._line is not None:
            line = self._line
            self.fail(BrokeOff("it was closed here"))
            self.detach()
            line.abort()

    def detach(self) -> None:
        """The connection is for others now."""
        self._line = self._parser = None

    def fail(self, error: HttpError) -> None:
        """No more of it comes. An answer that is over stays whole."""
        if not self.over and self.error is None:
            self.error = error
            self.wake()

    def ended(self, *, cleanly: bool) -> None:
        """The connection has ended: the only end that a body of unknown length has."""
        if cleanly and self.status and not self._is_framed():
            self.over = True
            self.wake()
        else:
            self.fail((BrokeOff if self.status else Unanswered)("the connection ended"))

    def feed(self, data: bytes) -> None:
        """Bytes of the connection. What makes no sense is its `error` then."""
        self._overhead += len(data)
        if self.waiting_since is not None:
            self.waiting_since = asyncio.get_running_loop().time()
        try:
            assert self._parser is not None
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.reusable = False
            self.fail(self._senseless(str(error)))
        if self._overhead > _MOST_OVERHEAD:
            self.fail(self._senseless("its head has no end"))

    # The parser calls these.

    def on_message_begin(self) -> None:
        if self.over:  # nobody asked for another
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # it is a trailer
        known = _known(name)
        text = value.decode("latin-1").rstrip(" \t")
        # `isprintable` is the faster, and says yes to most
        if known and (text.isprintable() or not _CONTROL.search(text)):
            self.headers.append((known, text))

    def on_headers_complete(self) -> None:
        if self.over or self.error is not None:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if not 100 <= status <= 599 or status == 101:
            self.fail(BadAnswer(f"its status is {status}"))
            return
        if status < 200:  # the real one follows
            self.headers = []
            return
        self.status = status
        self._overhead = 0
        if self.bodiless:
            self.over = True
        self.wake()

    def on_body(self, data: bytes) -> None:
        if self.over:
            return
        self._chunks.append(data)
        self._overhead = 0
        self._held += len(data)
        if self._held > HIGH_WATER and not self.paused and self._line is not None:
            self.paused = True
            self._line.pause_reading()
        self.wake()

    def on_message_complete(self) -> None:
        if self.status and not self.over:
            assert self._parser is not None
            self.over = True
            self.reusable = self._parser.should_keep_alive()
            self.wake()

    def _senseless(self, why: str) -> HttpError:
        if self.status:
            return BrokeOff("malformed")
        spoke = self._parser is not None and self._parser.get_status_code()
        return BadAnswer(why) if spoke else NotHttp(why)

    def _is_framed(self) -> bool:
        """Whether its head says where its body ends."""
        headers = dict(self.headers)  # of repeated ones the last counts
        codings = headers.get("transfer-encoding")
        if codings is not None:
            return codings.rpartition(",")[2].strip(" \t").lower() == "chunked"
        return "content-length" in headers


@lru_cache(1024)
def _known(name: bytes) -> str:
    """Without the blanks that some write before the colon; empty where it is no name of a header."""
    found = name.lower().rstrip(b" \t")
    return found.decode("ascii") if _TOKEN.fullmatch(found) else ""
