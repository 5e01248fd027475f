"""The least that a recording proxy costs in Python, beside which Reef's own cost is to be read.

`python -m bench.proxy.floor PORT UPSTREAM_PORT DATABASE`. uvicorn as the daemon runs it, a client that trusts
its upstream, and one row in SQLite, committed in a thread of its own before the answer goes out. It knows no
errors, no streams and nobody's rights, and it reads nothing of what it passes on.
"""

import asyncio
import queue
import sqlite3
import sys
import threading
from typing import NamedTuple

import uvicorn
from starlette.types import Receive, Scope, Send

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: upstream\r\ncontent-length: %d\r\n\r\n"


class _Row(NamedTuple):
    request: bytes
    answer: bytes
    stored: "asyncio.Future[None]"


class _Upstream(asyncio.Protocol):
    """One connection; takes a request when the answer before it is whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._answer = b""
        self._whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def ask(self, body: bytes) -> "asyncio.Future[bytes]":
        """The body of the answer."""
        self._answer = b""
        self._whole = asyncio.get_running_loop().create_future()
        self.transport.write(_HEAD % len(body) + body)
        return self._whole

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if end and len(body) == int(head.lower().partition(b"content-length:")[2].split(None, 1)[0]):
            self._whole.set_result(body)


class Floor:
    """The proxy, as an ASGI app."""

    def __init__(self, upstream_port: int, database: str) -> None:
        self._port = upstream_port
        self._idle: list[_Upstream] = []
        self._rows: queue.SimpleQueue[_Row] = queue.SimpleQueue()
        threading.Thread(target=self._write, args=(database,), daemon=True).start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, more = b"", True
        while more:
            message = await receive()
            request += message.get("body", b"")
            more = message.get("more_body", False)
        upstream = self._kept() or await self._connect()
        answer = await upstream.ask(request)
        self._idle.append(upstream)
        stored = asyncio.get_running_loop().create_future()
        self._rows.put(_Row(request, answer, stored))
        await stored
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _kept(self) -> _Upstream | None:
        """One that the upstream has not closed since."""
        while self._idle:
            if not (upstream := self._idle.pop()).transport.is_closing():
                return upstream
        return None

    async def _connect(self) -> _Upstream:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(_Upstream, "127.0.0.1", self._port))[1]

    def _write(self, database: str) -> None:
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, request BLOB, answer BLOB)")
        while True:
            rows = [self._rows.get()]
            while not self._rows.empty():
                rows.append(self._rows.get())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO records (request, answer) VALUES (?, ?)", [row[:2] for row in rows]
            )
            connection.execute("COMMIT")
            rows[0].stored.get_loop().call_soon_threadsafe(_tell, rows)


def _tell(rows: list[_Row]) -> None:
    for row in rows:
        row.stored.set_result(None)


if __name__ == "__main__":
    uvicorn.run(
        Floor(int(sys.argv[2]), sys.argv[3]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
        ws="none",
        lifespan="off",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=1024,
    )
