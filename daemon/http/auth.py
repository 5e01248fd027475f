"""Who may speak to the daemon: the token, and the Host header that a browser cannot fake.

Pure ASGI, in front of everything but `/healthz`.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from functools import lru_cache
from typing import Any

import orjson

from daemon.http.errors import error_content
from daemon.http.inference import place_of
from daemon.http.strays import stray
from daemon.wire.codec import codec_for, shape_of
from daemon.wire.errors import status_of
from reef.errors import Invalid, ReefError, Unauthorized

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Refuses a request whose Host is not ours (400) or that brings no valid token (401).

    `tokens` empty means that no token is asked for. The credential is looked for in `x-reef-token`,
    then `authorization`, then `x-api-key`. A token of ours goes no further than this, wherever it stands:
    what the client shows there otherwise is for a provider.
    """

    def __init__(self, app: App, *, tokens: Collection[str], hosts: Collection[str]) -> None:
        self._app = app
        self._tokens = [token.encode() for token in tokens]
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
            return
        headers = dict(reversed(scope["headers"]))
        if problem := self._problem(headers):
            await _refuse(scope, send, problem)
            return
        await self._app(self._without_token(scope), receive, send)

    def _without_token(self, scope: Scope) -> Scope:
        headers = scope["headers"]
        kept = [
            (name, value)
            for name, value in headers
            if name not in _PLACES or not self._valid(_credential({name: value}))
        ]
        return {**scope, "headers": kept} if len(kept) < len(headers) else scope

    def _problem(self, headers: dict[bytes, bytes]) -> ReefError | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._known(host):
            return Invalid(
                f"host `{host}` is not one of this daemon's",
                hint='list it in reef.toml: [reef] hosts = ["..."]',
            )
        if self._tokens and not self._valid(_credential(headers)):
            return Unauthorized(
                "no valid token",
                hint="send what `reef token` prints as x-reef-token or as Authorization: Bearer",
            )
        return None

    def _known(self, host: str) -> bool:
        return _is_local(host) or _name(host) in self._hosts

    def _valid(self, given: bytes) -> bool:
        matches: Iterable[bool] = [hmac.compare_digest(given, token) for token in self._tokens]
        return any(matches)


_PLACES = (b"x-reef-token", b"authorization", b"x-api-key")


def _credential(headers: dict[bytes, bytes]) -> bytes:
    if token := headers.get(b"x-reef-token"):
        return token
    if (authorization := headers.get(b"authorization")) is not None:
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() == b"bearer":
            return token.strip()
    return headers.get(b"x-api-key", b"")


def _name(host: str) -> str:
    """A Host header without its port."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.strip("[]").lower()


@lru_cache(64)
def _is_local(host: str) -> bool:
    name = _name(host)
    if name in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _refuse(scope: Scope, send: Send, problem: ReefError) -> None:
    place = place_of(scope["path"])
    after = stray(scope["path"]) if place is None else place.path
    if after is None:
        body = orjson.dumps(error_content(problem))
    else:
        names = {name.decode("latin-1") for name, _ in scope["headers"]}
        body = codec_for(shape_of(after, names)).error_body(problem, status_of(problem))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status_of(problem), "headers": headers})
    await send({"type": "http.response.body", "body": body})
