"""The provider routes, as bare ASGI: `/v1/...`, also below `/s/{scenario}` and `/s/{scenario}/r/{run}`.

Owns: reading a request, writing an answer, noticing that a client has left. Does not own authentication (a
wrapper's) or what an exchange is (`daemon.serving`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from daemon.http.model_list import model_list
from daemon.http.request_body import LARGER, read_body
from daemon.http.strays import SCOPED, methods_of, unknown_path, wrong_method
from daemon.http.watch import ClientWatch
from daemon.serving.call import Answer, Call, tags_of
from daemon.serving.exchange import Exchange
from daemon.serving.refusal import refusal
from daemon.serving.relay import Relay
from daemon.wire.codec import codec_for, dialect_of, shape_of
from daemon.wire.encoding import decode
from reef.errors import Invalid, ReefError, TooLarge, Unavailable, Unsupported
from reef.ids import DEFAULT_SCENARIO, check_scenario
from reef.runtime import Dialect, Header

log = logging.getLogger("reef.http")

PLACES_KEPT = 256
"""Paths that are taken apart once; clients use few."""


class _CutOff(Exception):
    """An answer that has begun cannot go on: the server ends the connection, so that nobody takes it for
    whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path taken apart: `path` is what follows `/v1`, `target` the same as an upstream is asked for it."""

    scenario: str | None
    run: str | None
    path: str
    target: str


@lru_cache(PLACES_KEPT)
def place_of(path: str) -> Place | None:
    """Where a path belongs among the provider routes; None when it does not. A slash at the end of one that
    is served counts for nothing."""
    found = SCOPED.fullmatch(path)
    if found is None:
        return None
    after = found[3] or "/"
    plain = after.rstrip("/")
    return _place(found[1], found[2], plain if methods_of(plain) else after)


def _place(scenario: str | None, run: str | None, path: str) -> Place:
    return Place(scenario, run, path, quote(path, safe="/:@!$&'()*+,;=~"))


class InferenceApp:
    """`max_body` in bytes, unpacked. `require_scenario`: a request that names none is refused. `relay`: shell
    patterns of further paths that are passed on. `drain`: when a client leaves, the upstream's answer is read
    to its end for the record; else the upstream call is ended."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        max_body: int = 64 * 2**20,
        require_scenario: bool = False,
        relay: Sequence[str] = (),
        drain: bool = False,
    ) -> None:
        self._exchange = exchange
        self._relay = Relay(exchange.router, exchange.upstream_of, exchange.budgets, relay)
        self._max_body = max_body
        self._require_scenario = require_scenario
        self._drain = drain
        self._running: dict[asyncio.Task[None], Call] = {}

    def stop(self) -> None:
        """End what is still in flight, with an error that says so."""
        for task, call in self._running.items():
            if not call.settled:
                call.stopping = True
                task.cancel()

    def under_way(self) -> int:
        """How many requests are being answered."""
        return len(self._running)

    def claims(self, path: str) -> bool:
        """Whether a request to `path` is for this app."""
        return place_of(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place = place_of(scope["path"]) or _place(None, None, scope["path"])
        headers: list[Header] = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        method, dialect = scope["method"], dialect_of(place.path)
        try:
            recorded = method == "POST" and dialect is not None
            if not recorded and (own := await self._other(scope, place, headers)) is not None:
                await _write(own, send)
                return
            body = await read_body(receive, self._max_body)
            if body is None:
                return
            call = self._call(scope, place, headers, dialect or shape_of(place.path, dict(headers)), body)
            answering = self._exchange.answer if recorded else partial(self._relay.answer, method)
            await self._answered(call, answering, receive, send, drain=recorded and self._drain)
        except ReefError as error:
            await _write(refusal(error, codec_for(shape_of(place.path, dict(headers)))), send)
        except _CutOff as cut:
            log.exception("%s %s was cut off", scope["method"], scope["path"], exc_info=cut.__cause__)
            raise
        except Exception as error:
            log.exception("%s %s failed", scope["method"], scope["path"])
            bug = ReefError(f"the daemon failed: {type(error).__name__}", hint="a bug; see `reef logs`")
            await _write(refusal(bug, codec_for(shape_of(place.path, dict(headers)))), send)

    def _call(self, scope: Scope, place: Place, headers: list[Header], dialect: Dialect, body: bytes) -> Call:
        named = dict(headers)
        scenario = named.get("x-reef-scenario") or place.scenario
        if scenario is None and self._require_scenario:
            raise Invalid("the request names no scenario", hint="send the header x-reef-scenario")
        query = scope["query_string"].decode("latin-1")
        return Call(
            dialect,
            f"{place.target}?{query}" if query else place.target,
            headers,
            _unpacked(body, named.get("content-encoding"), self._max_body),
            scenario=check_scenario(scenario or DEFAULT_SCENARIO),
            tags=tags_of(headers, place.run),
            kind="count_tokens" if place.path == "/messages/count_tokens" else "turn",
            start=named.get("x-reef-release-id") or named.get("x-reef-artifact-version"),
        )

    async def _answered(
        self,
        call: Call,
        answering: Callable[[Call], Awaitable[Answer]],
        receive: Receive,
        send: Send,
        *,
        drain: bool,
    ) -> None:
        """Answer a call. When the client leaves before the answer is there, call it off, or with `drain` let
        it go on: what is sent to nobody is dropped by the server."""
        task = asyncio.current_task()
        assert task is not None

        def leave() -> None:
            if not call.settled:
                call.left = True
                if not drain:
                    task.cancel()

        watch = ClientWatch(receive, leave)
        self._running[task] = call
        answer: Answer | None = None
        try:
            answer = await answering(call)
            await _write(answer, send)
        except asyncio.CancelledError:
            if not (call.left or call.stopping):
                raise
            task.uncancel()
            if call.stopping and answer is not None:
                await send({"type": "http.response.body", "body": b""})
            elif call.stopping:
                raise Unavailable("the daemon is stopping", hint="try again") from None
        finally:
            call.settled = True
            del self._running[task]
            watch.end()

    async def _other(self, scope: Scope, place: Place, headers: list[Header]) -> Answer | None:
        """What is answered here; None for what is passed on."""
        named, method, path = dict(headers), scope["method"], place.path
        if method == "GET" and path == "/responses" and named.get("upgrade", "").lower() == "websocket":
            answer = refusal(
                Unsupported("this server has no websockets", hint="use HTTP"), codec_for("responses")
            )
            answer.status = 426
            answer.headers.append(("upgrade", "HTTP/1.1"))
            return answer
        allowed = methods_of(path)
        if method in allowed and method != "POST":
            return await self._models(place, named)
        if self._relay.takes(method, path):
            return None
        if allowed:
            return wrong_method(method, path, allowed, shape_of(path, named))
        raise unknown_path(scope, path, named)

    async def _models(self, place: Place, headers: Mapping[str, str]) -> Answer:
        """What the same client can ask for: by the same scenario, in the dialects of the same provider."""
        router, wanted = self._exchange.router, place.path[len("/models/") :]
        anthropic = "anthropic-version" in headers
        scenario = headers.get("x-reef-scenario") or place.scenario or DEFAULT_SCENARIO
        upstream = self._exchange.upstream_of(check_scenario(scenario))
        dialects: tuple[Dialect, ...] = ("messages",) if anthropic else ("chat", "responses")
        models = await router.models(dialects, upstream, wanted=wanted or None)
        return model_list(models, wanted, router.configured(), anthropic=anthropic)


def _unpacked(body: bytes, encoding: str | None, limit: int) -> bytes:
    try:
        return decode(body, encoding, limit=limit)
    except TooLarge as error:
        raise TooLarge(error.message, hint=LARGER) from error


async def _write(answer: Answer, send: Send) -> None:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    start: dict[str, Any] = {"type": "http.response.start", "status": answer.status, "headers": raw}
    if answer.pump is None:
        raw.append((b"content-length", str(len(answer.body)).encode()))
        await send(start)
        await send({"type": "http.response.body", "body": answer.body})
        return

    begun = False

    async def begin() -> None:
        nonlocal begun
        begun = True
        await send(start)

    async def write(chunk: bytes) -> None:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    try:
        await answer.pump(begin, write)
    except Exception as error:
        if begun:
            raise _CutOff from error
        raise
    await send({"type": "http.response.body", "body": b""})
