"""Opening a connection: to the server itself or over a proxy, with TLS where the address says so."""

import asyncio
import ssl

from daemon.runtimes.http.connection import Connection
from daemon.runtimes.http.dialing import dial
from daemon.runtimes.http.errors import ConnectTimedOut, HttpError, ProxyFailed, TlsFailed, cause
from daemon.runtimes.http.route import Place, Proxy, Route
from daemon.runtimes.http.trust import untrusted


async def open_to(route: Route, connection: Connection, tls: ssl.SSLContext | None, timeout_s: float) -> None:
    """Connect; requests may go out then. `tls` is needed where the server or the proxy wants it.

    Raises:
        HttpError: there is no connection, for whatever reason.
    """
    try:
        async with asyncio.timeout(timeout_s):
            if route.proxy is None:
                await _connect(route.place, connection, tls)
            else:
                await _through(route.proxy, route.place, connection, tls)
    except TimeoutError as error:
        connection.abort()
        raise ConnectTimedOut("no connection in time") from error
    except BaseException:
        connection.abort()
        raise


async def _connect(place: Place, connection: Connection, tls: ssl.SSLContext | None) -> None:
    connected = await dial(place.host, place.port)
    make = asyncio.get_running_loop().create_connection
    await make(lambda: connection, sock=connected)
    if place.tls:
        await _secure(place, connection, tls)


async def _secure(place: Place, connection: Connection, tls: ssl.SSLContext | None) -> None:
    """TLS from now on. A layer of its own above the socket, which the connection goes on to know."""
    transport = connection.transport
    if transport is None or tls is None or not connection.alive:
        raise TlsFailed("it hung up, or spoke first")
    start_tls = asyncio.get_running_loop().start_tls
    try:
        secured = await start_tls(transport, connection, tls, server_hostname=place.host)
    except ssl.SSLCertVerificationError as error:
        raise untrusted(error) from error
    except OSError as error:
        raise TlsFailed(cause(error)) from error
    if secured is None:
        raise TlsFailed("it hung up")
    connection.use(secured)


async def _through(proxy: Proxy, place: Place, connection: Connection, tls: ssl.SSLContext | None) -> None:
    """Over a proxy; to a server with TLS through a tunnel."""
    if proxy.trouble:
        raise ProxyFailed(proxy.trouble)
    try:
        await _connect(proxy.place, connection, tls)
        if not place.tls:
            return
        await _ask_for_tunnel(proxy, place, connection)
    except HttpError as error:
        raise ProxyFailed(str(error)) from error
    await _secure(place, connection, tls)


async def _ask_for_tunnel(proxy: Proxy, place: Place, connection: Connection) -> None:
    lines = [f"CONNECT {place.shown} HTTP/1.1", f"host: {place.shown}"]
    if proxy.authorization:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    status = await connection.tunnel("\r\n".join([*lines, "", ""]).encode())
    if status >= 300:
        raise ProxyFailed(f"it answered {status}")
