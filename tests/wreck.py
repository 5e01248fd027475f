"""A provider that goes wrong, byte by byte: what it says to each request is a script of bytes and pauses.

with Wreck(lambda asked: [b"HTTP/1.1 200 OK\\r\\ncontent-length: 9\\r\\n\\r\\nhalf", CUT]) as wreck: ...
"""

import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests import stub_dialects
from tests.stub_dialects import Reply

CUT = "cut"
"""Breaks the connection off. At the end of a script it is closed in order."""
Step = bytes | float | str
_DIALECTS = {"/v1/chat/completions": "chat", "/v1/messages": "messages", "/v1/responses": "responses"}
_NEVER = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Asked:
    """One request as the wreck got it."""

    dialect: str
    payload: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.payload["model"])

    @property
    def stream(self) -> bool:
        return self.payload.get("stream") is True

    @property
    def whole(self) -> bytes:
        """A right answer, buffered."""
        return json.dumps(
            stub_dialects.buffered(self.dialect, Reply("one two three"), self.model, 1, "x")
        ).encode()

    @property
    def events(self) -> list[bytes]:
        """A right answer as events."""
        return list(stub_dialects.streamed(self.dialect, Reply("one two three"), self.model, 1, "x"))

    def error(self, status: int, message: str) -> bytes:
        return json.dumps(stub_dialects.error(self.dialect, status, message)).encode()


def said(status: int, body: bytes, kind: str = "application/json", *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body


def begun(body: bytes, kind: str = "application/json") -> bytes:
    """The beginning of an answer of which half is missing."""
    return said(200, body * 2, kind)[: -len(body)]


def stream(*events: bytes, ends: bool = True, headers: Sequence[str] = ()) -> bytes:
    """An event stream in chunks of HTTP; without `ends` its end is missing."""
    lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "transfer-encoding: chunked", *headers]
    head = "\r\n".join([*lines, "connection: close", "", ""]).encode()
    chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events if event]
    return b"".join([head, *chunks, b"0\r\n\r\n" if ends else b""])


class Wreck(socketserver.ThreadingTCPServer):
    """Serves in threads of its own while its `with` block lasts. `asked` is every request so far."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, script: Callable[[Asked], Sequence[Step]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[Asked] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> "Wreck":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


class _Handler(socketserver.StreamRequestHandler):
    server: Wreck

    def handle(self) -> None:
        if self.rfile.peek(1)[:1] == b"\x16":
            self.wfile.write(said(400, b"{}"))  # to TLS, as servers of plain HTTP do
            return
        path = self.rfile.readline().decode().split(" ")[1].partition("?")[0]
        length = 0
        while (line := self.rfile.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if path not in _DIALECTS:
            self.wfile.write(said(404, b"{}"))
            return
        asked = Asked(_DIALECTS[path], json.loads(self.rfile.read(length)))
        self.server.asked.append(asked)
        try:
            for step in self.server.script(asked):
                if isinstance(step, bytes):
                    self.wfile.write(step)
                elif isinstance(step, float):
                    self.server.over.wait(step)
                else:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NEVER)
                    return
        except OSError:
            return
