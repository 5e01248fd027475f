"""From a name to a connected socket. uvloop itself waits for one address in full before the next is tried."""

import asyncio
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from daemon.runtimes.http.errors import NoHost, Unreachable, cause

HEAD_START_S = 0.25
"""How long an address has before the next is tried as well."""

Address = tuple[int, int, int, str, Any]
"""As `getaddrinfo` gives it."""


async def dial(host: str, port: int) -> socket.socket:
    """A socket connected to the address that answers first.

    Raises:
        NoHost, Unreachable: there is none.
        TimeoutError: the system gave up.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise NoHost(cause(error)) from error
    try:
        return await _first([*_by_turns(found)])
    except TimeoutError:
        raise
    except OSError as error:
        raise Unreachable(cause(error)) from error


async def _first(addresses: list[Address]) -> socket.socket:
    """Raises the error of the last one that failed."""
    if len(addresses) == 1:
        return await _connected(addresses[0])
    tries: set[asyncio.Task[socket.socket]] = set()
    failed = OSError("it has no address")
    try:
        while addresses or tries:
            if addresses:
                tries.add(asyncio.create_task(_connected(addresses.pop(0))))
            head_start = HEAD_START_S if addresses else None
            done, tries = await asyncio.wait(tries, timeout=head_start, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    connected = task.result()
                except OSError as error:
                    failed = error
                else:
                    tries |= done - {task}
                    return connected
    finally:
        for task in tries:
            task.add_done_callback(_close)
            task.cancel()
    raise failed


async def _connected(address: Address) -> socket.socket:
    family, kind, protocol, _, where = address
    connecting = socket.socket(family, kind, protocol)
    try:
        connecting.setblocking(False)
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, where)
    except BaseException:
        connecting.close()
        raise
    return connecting


def _close(task: asyncio.Task[socket.socket]) -> None:
    """Of the connection that came too late."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _by_turns(found: Sequence[Address]) -> list[Address]:
    """IPv6 and IPv4 in turns, beginning with what the system prefers."""
    first = [address for address in found if address[0] == found[0][0]]
    second = [address for address in found if address[0] != found[0][0]]
    return [address for address in chain(*zip_longest(first, second)) if address is not None]
