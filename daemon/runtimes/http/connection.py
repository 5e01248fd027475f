"""One connection: a request goes out, its answer comes in, then the next."""

import asyncio
import os
import select
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from daemon.runtimes.http.errors import BrokeOff, HttpError, ReadTimedOut
from daemon.runtimes.http.response import Response

_SMALL = 2**16
"""A body up to here leaves with its head; a larger one is never copied."""
_PIECE = 2**18


class Owner(Protocol):
    """Who is told of a connection that is free for the next request, or gone."""

    def free(self, connection: "Connection") -> None: ...

    def gone(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """`read_timeout_s` is how long a server may take or say nothing while somebody waits for it."""

    def __init__(self, owner: Owner, read_timeout_s: float) -> None:
        self.closed = False
        self.heard = False
        """Something came since it was last asked."""
        self.transport: asyncio.Transport | None = None
        self._owner = owner
        self._patience = read_timeout_s
        self._loop = asyncio.get_running_loop()
        self._answer: Response | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._full = False
        self._uploading = False
        self._tunnelling = False
        self._socket: asyncio.Transport | None = None
        """What is below TLS; the same as `transport` where there is none."""
        self._unread = select.poll()

    @property
    def alive(self) -> bool:
        return not self.closed and self.transport is not None and not self.transport.is_closing()

    @property
    def silent(self) -> bool:
        """Whether nothing waits to be read. Where the loop was busy, the end of an idle connection, or an
        answer that nobody asked for, may have come without anybody's notice."""
        return not self._unread.poll(0)

    async def ask(
        self,
        head: bytes,
        body: bytes = b"",
        *,
        bodiless: bool = False,
        on_sent: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request and return when the head of its answer is there. `bodiless`: none has a body (HEAD).

        Raises:
            BrokeOff, ReadTimedOut, NotHttp, BadAnswer: the connection is closed then.
        """
        transport = self.transport
        if transport is None or self.closed or self._answer is not None:
            raise BrokeOff("the connection is closed")
        answer = self._answer = Response(self, bodiless=bodiless)
        self.heard = False
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience, self._look)
        try:
            if len(body) <= _SMALL:
                transport.write(head + body)
            else:
                transport.write(head)
            if on_sent is not None:
                on_sent()
            if len(body) > _SMALL:
                await self._upload(transport, body, answer)
            while not answer.status:
                if answer.error is not None:
                    raise answer.error
                await answer.wait()
        except BaseException:
            answer.close()
            raise
        return answer

    async def tunnel(self, head: bytes) -> int:
        """Ask a proxy for a tunnel: the status of its answer. The connection stays. Raises as `ask`."""
        self._tunnelling = True
        try:
            return (await self.ask(head, bodiless=True)).status
        finally:
            self._tunnelling = False

    async def _upload(self, transport: asyncio.Transport, body: bytes, answer: Response) -> None:
        """Write a large body as the server takes it. One that answers before it has all of it may be done
        with the request: the rest is left to the transport, and the connection is not used again."""
        self._uploading = True
        pieces = memoryview(body)
        for start in range(0, len(body), _PIECE):
            while (self._full or transport.is_closing()) and not answer.status and answer.error is None:
                await answer.wait()
            if answer.over or answer.error is not None:
                return
            if answer.status:
                transport.write(pieces[start:])
                return
            transport.write(pieces[start : start + _PIECE])
        self._uploading = False

    def abort(self) -> None:
        """End it at once."""
        self.closed = True
        if self.transport is not None:
            self.transport.abort()

    def pause_reading(self) -> None:
        """Let the server wait. Below TLS: what it sends stays with the system, and its end comes after it. A
        layer of TLS that is paused itself loses what it holds when the connection ends."""
        if self._socket is not None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._socket is not None:
            self._socket.resume_reading()

    # The event loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast("asyncio.Transport", transport)
        self._unread.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self.use(self._socket)

    def use(self, transport: asyncio.Transport) -> None:
        """Where bytes come and go from now on."""
        self.transport = transport
        if self.closed:
            transport.abort()

    def eof_received(self) -> None:
        """The server says no more, whatever of the request still has to go out. That is not waited for: a
        server that does not take it resets the connection, and the loop would tell of that alone."""
        answer = self._answer
        if answer is None:
            self.abort()
            return
        answer.ended(cleanly=self._is_servers_end())
        self._finish(answer)

    def _is_servers_end(self) -> bool:
        """Anybody on the way can end a connection, so under TLS a server says itself that it does. Without
        that, an answer of unknown length may be half of one."""
        layer = None if self.transport is None else self.transport.get_extra_info("ssl_object")
        if layer is None:
            return True
        try:
            return not layer.read(1)
        except ssl.SSLError:
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        """It broke, or was closed here; what a server ends is over before (see `eof_received`)."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        answer, self._answer = self._answer, None
        transport, below = self.transport, self._socket
        self.transport = self._socket = None
        if answer is not None:
            if exc is not None and below is not None and transport is below:
                self._read_rest(answer, below)
            answer.ended(cleanly=False)
            answer.detach()
        self._owner.gone(self)

    def _read_rest(self, answer: Response, broken: asyncio.Transport) -> None:
        """Where a write notices that a connection broke, the system may still hold what came before: a
        server that refuses an upload and hangs up. Under TLS it is out of reach."""
        number = broken.get_extra_info("socket").fileno()
        try:
            while not answer.over and answer.error is None and (data := os.read(number, _PIECE)):
                self.heard = True
                answer.feed(data)
        except OSError:
            pass

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or self.closed:
            self.abort()  # nobody asked
            return
        self.heard = True
        answer.feed(data)
        if answer.over or answer.error is not None:
            self._finish(answer)

    def _finish(self, answer: Response) -> None:
        self._answer = None
        answer.detach()
        if self._tunnelling and answer.error is None:
            return
        if answer.reusable and not self._uploading:
            if answer.paused:
                self.resume_reading()
            self._owner.free(self)
        else:
            self.abort()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._answer is not None:
            self._answer.wake()

    def _look(self) -> None:
        """Whether somebody has waited for too long; one timer serves all requests of the connection."""
        self._timer = None
        answer = self._answer
        if answer is None:
            return
        now = self._loop.time()
        due = (now if answer.waiting_since is None else answer.waiting_since) + self._patience
        if due <= now:
            self._give_up(answer, ReadTimedOut("silence"))
        else:
            self._timer = self._loop.call_at(due, self._look)

    def _give_up(self, answer: Response, error: HttpError) -> None:
        answer.fail(error)
        self._answer = None
        answer.detach()
        self.abort()
