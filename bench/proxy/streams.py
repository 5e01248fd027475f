"""A client by hand on sockets: when an answer's first event came, and how late each one was; for a buffered
answer, when it was whole."""

import asyncio
import re
import statistics
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import uvloop

_SENT = re.compile(rb"@(\d+)@")
_END = b"0\r\n\r\n"
"""The end of the chunked body; some servers never say `[DONE]`."""
_BETWEEN_S = 0.005
_LENGTH = re.compile(rb"content-length: *(\d+)", re.I)


@dataclass(frozen=True)
class Streamed:
    """Milliseconds. `ttft_*`: to the first event, or the whole of a buffered answer; `late_*`: from an
    event's leaving the upstream to its arrival here."""

    ttft_p50: float
    ttft_p99: float
    late_p50: float
    late_p99: float
    requests: int
    seconds: float


class _Connection(asyncio.Protocol):
    """One connection that asks again and again."""

    def __init__(self, head: bytes, parts: tuple[bytes, bytes], numbers: "_Numbers", marked: bool) -> None:
        self._head, self._parts, self._numbers, self._marked = head, parts, numbers, marked
        self.ttft: list[float] = []
        self.late: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def ask(self) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._tail = b""
        self._first = True
        first, last = self._parts
        self._asked = time.monotonic_ns()
        self._transport.write(b"".join((self._head, first, self._numbers.next(), last)))

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self._marked:
            self._whole(data, now)
            return
        for sent in _SENT.findall(data):
            if self._first:
                self._first = False
                self.ttft.append((now - self._asked) / 1e6)
            self.late.append((now - int(sent)) / 1e6)
        self._tail = (self._tail + data)[-len(_END) :]
        if self._tail == _END and not self.done.done():
            self.done.set_result(None)

    def _whole(self, data: bytes, now: int) -> None:
        self._tail += data
        end = self._tail.find(b"\r\n\r\n")
        if end < 0:
            return
        told = _LENGTH.search(self._tail, 0, end)
        whole = len(self._tail) == end + 4 + int(told[1]) if told else self._tail.endswith(_END)
        if whole:
            assert self._tail.startswith(b"HTTP/1.1 200"), self._tail[:200]
            self.ttft.append((now - self._asked) / 1e6)
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(f"the connection was closed: {error}"))


class _Numbers:
    """Makes each body another one."""

    def __init__(self, start: int) -> None:
        self._now = start

    def next(self) -> bytes:
        self._now += 1
        return b"%012d" % self._now


def stream(
    url: str,
    headers: dict[str, str],
    parts: tuple[bytes, bytes],
    *,
    streams: int,
    each: int,
    start: int,
    marked: bool = True,
) -> Streamed:
    """Keep `streams` answers under way at once, `each` so many times in a row. `marked`: they are streams
    whose events carry the time they left."""
    return uvloop.run(_stream(url, headers, parts, streams, each, _Numbers(start), marked))


async def _stream(
    url: str,
    headers: dict[str, str],
    parts: tuple[bytes, bytes],
    streams: int,
    each: int,
    numbers: _Numbers,
    marked: bool,
) -> Streamed:
    place = urlsplit(url)
    length = sum(map(len, parts)) + 12
    named = {
        "host": place.netloc,
        "content-type": "application/json",
        "content-length": str(length),
    } | headers
    lines = [f"POST {place.path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    head = "\r\n".join(lines).encode()
    loop = asyncio.get_running_loop()
    connections = []
    for _ in range(streams):
        _, connection = await loop.create_connection(
            lambda: _Connection(head, parts, numbers, marked), place.hostname, place.port
        )
        connections.append(connection)

    async def work(connection: _Connection, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        for _ in range(each):
            if not marked:  # as clients do, which have something to do between requests
                await asyncio.sleep(_BETWEEN_S)
            connection.ask()
            async with asyncio.timeout(60):
                await connection.done

    began = time.perf_counter()
    # Spread over one pace of the upstream, as people's requests are.
    await asyncio.gather(*(work(c, 0.02 * at / streams) for at, c in enumerate(connections)))
    seconds = time.perf_counter() - began
    for connection in connections:
        connection._transport.close()
    ttft = sorted(value for connection in connections for value in connection.ttft)
    late = sorted(value for connection in connections for value in connection.late) or [0.0]
    assert len(ttft) == streams * each, "an answer had no event in it"
    return Streamed(
        statistics.median(ttft), _p99(ttft), statistics.median(late), _p99(late), streams * each, seconds
    )


def _p99(values: list[float]) -> float:
    return values[min(int(len(values) * 0.99), len(values) - 1)]
