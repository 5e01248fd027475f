"""`Client`: requests to one base URL, over connections that are kept for the next."""

import asyncio
import ssl
from collections.abc import Callable, Iterable

from daemon.runtimes.http.connection import Connection
from daemon.runtimes.http.errors import BrokeOff, Closed, HttpError, Unreachable
from daemon.runtimes.http.head import head_of
from daemon.runtimes.http.opening import open_to
from daemon.runtimes.http.response import Response
from daemon.runtimes.http.route import route_to
from daemon.runtimes.http.trust import trusted
from reef.runtime import Header

IDLE_S = 15.0
"""How long a connection is kept without a request; most servers keep it longer."""
AT_ONCE_S = 1.0
"""A server that has worked on a request, and may want money for it, answers later."""
_LAST_S = 1.0
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class Client:
    """As many connections as there are requests at once. Belongs to one event loop; `close` it there.

    The environment's proxies and certificates are those of the time it is made, and of its first connection.
    `reuse` False opens a connection for each request.
    """

    def __init__(
        self, base_url: str, *, connect_timeout_s: float, read_timeout_s: float, reuse: bool = True
    ) -> None:
        self._route = route_to(base_url)
        self._prefix = self._route.prefix
        self._fixed = [*self._route.fixed, *([] if reuse else ["connection: close"])]
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._reuse = reuse
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._tls: ssl.SSLContext | None = None
        self._open: set[Connection] = set()
        self._idle: dict[Connection, float] = {}
        """Since when; the latest last."""
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    async def ask(
        self,
        method: str,
        path: str,
        headers: Iterable[Header] = (),
        body: bytes = b"",
        *,
        on_sent: Callable[[], None] | None = None,
        on_again: Callable[[HttpError | int], None] | None = None,
    ) -> Response:
        """Send a request and return when the head of its answer is there. Redirects are not followed, bodies
        not unpacked. `on_sent` is called once its head is written.

        Where the connection breaks off before that, a request that may be repeated is, once. So is any that
        met the end of a kept connection: it ends at once without a word, or with a 408, by which a server
        says that it waited in vain. `on_again` is called before, with how the first try ended: its error or
        its status.

        Raises:
            Invalid: a header or the path would break the request.
            HttpError: there is no answer; `Closed`: nothing was sent.
        """
        head = head_of(method, self._prefix + path, self._fixed, headers, len(body))
        bodiless = method == "HEAD"
        kept, asked_at = self._kept(), self._loop.time()
        connection = kept or await self._connect()
        try:
            response = await connection.ask(head, body, bodiless=bodiless, on_sent=on_sent)
        except BrokeOff as error:
            ended = kept is not None and not kept.heard and self._loop.time() - asked_at <= AT_ONCE_S
            if self._closed or (method not in _IDEMPOTENT and not ended):
                raise
            fate: HttpError | int = error
        else:
            in_vain = response.status == 408 and _says_close(response)
            if kept is None or not in_vain or self._loop.time() - asked_at > AT_ONCE_S:
                return response
            response.close()
            fate = response.status
        if on_again is not None:
            on_again(fate)
        connection = await self._connect()
        return await connection.ask(head, body, bodiless=bodiless, on_sent=on_sent)

    async def close(self) -> None:
        """Break off what is under way, and wait until all connections are gone."""
        self._closed, self._reuse = True, False
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self._open):
            connection.abort()
        self._open = {connection for connection in self._open if connection.transport is not None}
        if self._open:
            self._emptied = self._loop.create_future()
            await asyncio.wait([self._emptied], timeout=_LAST_S)

    def _kept(self) -> Connection | None:
        """The connection that was used last: it is the least likely to be closed just now."""
        since = self._loop.time() - IDLE_S
        while self._idle:
            connection, when = self._idle.popitem()
            if when > since and connection.alive and connection.silent:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        route = self._route
        if self._tls is None and (route.place.tls or (route.proxy is not None and route.proxy.place.tls)):
            self._tls = await asyncio.to_thread(trusted)
        if self._closed:
            raise Closed("the client is closed")
        connection = Connection(self, self._read_timeout_s)
        self._open.add(connection)
        try:
            await open_to(route, connection, self._tls, self._connect_timeout_s)
            if not connection.alive:
                raise Unreachable("it hung up, or spoke first")
        except BaseException as error:
            self.gone(connection)
            if self._closed and isinstance(error, HttpError):
                raise Closed("the client is closed") from error
            raise
        return connection

    # Connections call these.

    def free(self, connection: Connection) -> None:
        if not self._reuse:
            connection.abort()
            return
        self._idle[connection] = self._loop.time()
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(IDLE_S, self._sweep)

    def gone(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._idle.pop(connection, None)
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _sweep(self) -> None:
        """Close what was idle for too long, and look again while there is anything."""
        self._sweeper = None
        for connection, when in list(self._idle.items()):
            if when > self._loop.time() - IDLE_S:
                self._sweeper = self._loop.call_at(when + IDLE_S, self._sweep)
                return
            del self._idle[connection]
            connection.abort()


def _says_close(response: Response) -> bool:
    return any(name == "connection" and value.lower() == "close" for name, value in response.headers)
