"""A small HTTP server that stands for a daemon in tests of its clients. It answers what a test puts in."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "test-token"


@dataclass
class Asked:
    """One request as the fake saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


Responder = Callable[[Asked], Any]


@dataclass
class FakeDaemon:
    """`routes` maps `METHOD /path` to what it answers: a value, or a function of the request.

    A string is sent as text, bytes as server-sent events, `(status, value)` with that status.
    """

    url: str = ""
    routes: dict[str, Any] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def last(self, route: str) -> Asked:
        """The latest request to `METHOD /path`."""
        return next(each for each in reversed(self.asked) if f"{each.method} {each.path}" == route)


@contextmanager
def fake_daemon() -> Iterator[FakeDaemon]:
    fake = FakeDaemon()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                headers,
                json.loads(raw) if raw else None,
            )
            fake.asked.append(asked)
            status, value = 200, fake.routes.get(f"{self.command} {parts.path}")
            if callable(value):
                value = value(asked)
            if headers.get("x-reef-token") != TOKEN:
                value = (
                    401,
                    {"error": {"type": "unauthorized", "message": "the token is wrong", "hint": ""}},
                )
            elif value is None:
                said = {"type": "not_found", "message": f"no route {parts.path}", "hint": ""}
                value = (404, {"error": said})
            if isinstance(value, tuple):
                status, value = value
            self.send(status, value)

        def send(self, status: int, value: Any) -> None:
            events = isinstance(value, bytes)
            data = value if events else (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            for name, text in fake.headers.items():
                self.send_header(name, text)
            if events:
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.close_connection = True
            else:
                self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def log_message(self, format: str, *args: Any) -> None:
            return None

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            return None  # a client that went away is part of some tests

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
