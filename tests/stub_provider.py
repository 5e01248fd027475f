"""A provider that behaves: three dialects, buffered and streamed, and every way to go wrong.

    with StubProvider() as stub:
        stub.answer = lambda asked: "Paris" if "France" in asked.user else Fault(503, "overloaded")
        ... requests to stub.url ...
        assert stub.asked[0].system == "Answer briefly."

By hand: `python -m tests.stub_provider --port 0 --mode rule:"Use metric units."`
"""

import argparse
import asyncio
import contextlib
import json
import random
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests import stub_dialects
from tests.stub_dialects import Reply, ToolCall

__all__ = ["Asked", "Fault", "Raw", "Reply", "StubProvider", "ToolCall", "coin", "rule"]

_DIALECTS = {
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
    "/v1/responses": "responses",
}


@dataclass(frozen=True)
class Fault:
    """An error status, or with `after` a stream of `reply` that breaks off after so many events (with `clean`
    it just ends there; with `event` that error event comes last)."""

    status: int = 500
    message: str = "the stub was told to fail"
    headers: dict[str, str] = field(default_factory=dict)
    after: int | None = None
    clean: bool = False
    event: bytes = b""
    reply: Reply = Reply("a b c d e f")


@dataclass(frozen=True)
class Raw:
    """An answer of these very chunks."""

    chunks: tuple[bytes, ...]
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200


Answer = str | Reply | Fault | Raw


@dataclass(frozen=True)
class Asked:
    """One request as the stub got it. Header names are lower-case."""

    dialect: str
    path: str
    headers: dict[str, str]
    body: bytes
    payload: dict[str, Any]

    @property
    def stream(self) -> bool:
        return bool(self.payload.get("stream"))

    @property
    def system(self) -> str:
        own = self.payload.get("system") or self.payload.get("instructions")
        texts = [_text(own)] if own else []
        return "\n\n".join(texts + [text for role, text in self._all() if role in ("system", "developer")])

    @property
    def turns(self) -> list[tuple[str, str]]:
        """(role, text) of what is not system text."""
        return [turn for turn in self._all() if turn[0] not in ("system", "developer")]

    @property
    def tools(self) -> list[str]:
        """The names of the tools it offers."""
        listed = self.payload.get("tools") or []
        return [(tool.get("function") or tool).get("name", tool.get("type", "")) for tool in listed]

    @property
    def results(self) -> list[str]:
        """The texts of the tools' results that it brings."""
        found = []
        for item in self.payload.get("messages", self.payload.get("input")) or []:
            content = item.get("content")
            if item.get("role") == "tool":
                found.append(_text(content))
            elif str(item.get("type", "")).endswith("_call_output"):
                found.append(_text(item.get("output")))
            elif isinstance(content, list):
                found += [_text(part.get("content")) for part in content if part.get("type") == "tool_result"]
        return found

    @property
    def user(self) -> str:
        """The text of the last user message."""
        return next((text for role, text in reversed(self._all()) if role == "user"), "")

    def _all(self) -> list[tuple[str, str]]:
        listed = self.payload.get("messages", self.payload.get("input"))
        if isinstance(listed, str):
            return [("user", listed)]
        return [
            (item.get("role") or item.get("type", ""), _text(item.get("content")))
            for item in listed or []
            if isinstance(item, dict)
        ]


class StubProvider:
    """Serves in a thread of its own while its `with` block lasts.

    Attributes:
        answer: called with each `Asked`; what it returns is said (a dialect's may be awaited).
        asked: every request so far.
        api: the dialects it speaks; it knows no path of the others.
        models: what `GET /v1/models` lists.
        key: what that route asks for, where it is not empty.
        delay_s, event_delay_s: waits before an answer, and between the events of a stream.
        left: set when a client went away before its answer was whole.
    """

    def __init__(self, answer: Callable[[Asked], Answer] | None = None, *, port: int = 0) -> None:
        self.answer: Callable[[Asked], Answer | Awaitable[Answer]] = answer or (
            lambda asked: f"echo: {asked.user}"
        )
        self.asked: list[Asked] = []
        self.api: tuple[str, ...] = tuple(_DIALECTS.values())
        self.models = ["stub-model"]
        self.key = ""
        self.delay_s = 0.0
        self.event_delay_s = 0.0
        self.left = threading.Event()
        self.headers: dict[str, str] = {}
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stub-provider", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "StubProvider":
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application(client_max_size=2**30)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/messages/count_tokens", self._count)
        for path in _DIALECTS:
            app.router.add_post(path, self._serve)
        app.router.add_route("*", "/v1/{other:embeddings|completions|files.*|messages/batches}", self._other)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        self._loop.run_until_complete(site.start())
        self.port = runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _models(self, request: web.Request) -> web.Response:
        if self.key and self.key not in request.headers.get("authorization", ""):
            return web.json_response(stub_dialects.error("chat", 401, "wrong key"), status=401)
        return web.json_response(
            {"object": "list", "data": [{"id": m, "object": "model"} for m in self.models]}
        )

    async def _count(self, request: web.Request) -> web.Response:
        self._check("messages")
        asked = await self._note(request, "messages")
        return web.json_response({"input_tokens": len(asked.system.split()) + len(asked.user.split())})

    async def _other(self, request: web.Request) -> web.StreamResponse:
        """A path of no dialect: what it got comes back, unless the answer is raw or a fault."""
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        is_json = body.startswith(b"{")
        asked = Asked(request.method, request.path_qs, headers, body, json.loads(body) if is_json else {})
        self.asked.append(asked)
        answer = self.answer(asked)
        if isinstance(answer, Raw):
            return await self._stream(request, list(answer.chunks), answer)
        if isinstance(answer, Fault):
            error = stub_dialects.error("chat", answer.status, answer.message)
            return web.json_response(error, status=answer.status, headers=answer.headers)
        return web.Response(body=body, content_type=request.content_type)

    def _check(self, dialect: str) -> None:
        if dialect not in self.api:
            raise web.HTTPNotFound

    async def _note(self, request: web.Request, dialect: str) -> Asked:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(dialect, request.path_qs, headers, body, json.loads(body))
        self.asked.append(asked)
        return asked

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._check(_DIALECTS[request.path])
        asked = await self._note(request, _DIALECTS[request.path])
        number = len(self.asked)
        try:
            await asyncio.sleep(self.delay_s)
            found = self.answer(asked)
            answer = await found if isinstance(found, Awaitable) else found
            if isinstance(answer, Raw):
                return await self._stream(request, list(answer.chunks), answer)
            if isinstance(answer, Fault) and answer.after is None:
                error = stub_dialects.error(asked.dialect, answer.status, answer.message)
                return web.json_response(error, status=answer.status, headers=answer.headers)
            if isinstance(answer, Fault):
                reply = answer.reply
            else:
                reply = Reply(answer) if isinstance(answer, str) else answer
            model = asked.payload.get("model") or self.models[0]
            said = (asked.dialect, reply, model, number, f"{asked.system} {asked.user}")
            if not asked.stream:
                return web.json_response(stub_dialects.buffered(*said), headers=self.headers)
            events = list(stub_dialects.streamed(*said))
            if isinstance(answer, Fault):
                return await self._cut(request, events, answer)
            return await self._stream(request, events, Raw((), "text/event-stream", self.headers))
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise

    async def _stream(self, request: web.Request, chunks: list[bytes], like: Raw) -> web.StreamResponse:
        headers = {"content-type": like.content_type, **like.headers}
        response = web.StreamResponse(status=like.status, headers=headers)
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            if self.event_delay_s:
                await asyncio.sleep(self.event_delay_s)
        await response.write_eof()
        return response

    async def _cut(self, request: web.Request, events: list[bytes], fault: Fault) -> web.StreamResponse:
        kept = [*events[: fault.after], *([fault.event] if fault.event else [])]
        like = Raw((), "text/event-stream", self.headers)
        if fault.clean or fault.event:
            return await self._stream(request, kept, like)
        response = web.StreamResponse(headers={"content-type": like.content_type, **like.headers})
        await response.prepare(request)
        for event in kept:
            await response.write(event)
        await asyncio.sleep(0.02)
        assert request.transport is not None
        request.transport.abort()
        return response


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def rule(sentence: str, *, right: str = "right", wrong: str = "wrong") -> Callable[[Asked], Answer]:
    """Right only when the sentence stands in the system text."""
    return lambda asked: right if sentence in asked.system else wrong


def coin(
    chance: float, *, right: str = "right", wrong: str = "wrong", seed: int = 0
) -> Callable[[Asked], Answer]:
    """Right with this probability, whatever was asked."""
    dice = random.Random(seed)
    return lambda asked: right if dice.random() < chance else wrong


def _mode(word: str) -> Callable[[Asked], Answer] | None:
    name, _, argument = word.partition(":")
    if name == "rule":
        return rule(argument)
    if name == "coin":
        return coin(float(argument))
    if name != "echo":
        raise SystemExit(f"error: no mode `{name}`; there are echo, rule:<sentence>, coin:<p>")
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description="A stub provider that speaks three dialects.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", default="echo", help="echo, rule:<sentence>, coin:<p>")
    parser.add_argument("--api", default="chat,messages,responses", help="the dialects it speaks")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    with StubProvider(_mode(options.mode), port=options.port) as stub:
        stub.delay_s = options.delay
        stub.api = tuple(options.api.split(","))
        print(stub.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
