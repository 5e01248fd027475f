"""A provider over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from daemon.runtimes.again import send_again
from daemon.runtimes.failures import explain
from daemon.runtimes.http.client import Client
from daemon.runtimes.http.errors import Closed, HttpError, ReadTimedOut
from daemon.runtimes.http.response import Response
from daemon.runtimes.keys import key_of
from daemon.runtimes.queue import FairQueue, Slot
from daemon.settings.address import base_address
from daemon.settings.model import UpstreamSection
from daemon.wire.headers import CREDENTIALS, for_upstream
from reef.errors import ConfigError, Invalid, Unauthorized
from reef.runtime import Dialect, Header, ProviderRequest, ProviderResponse, RuntimeKind, RuntimeState

_ANTHROPIC_VERSION = "2023-06-01"
_MODELS_TIMEOUT_S = 5.0
_NONE = ("", "")
"""No trouble, and no remedy."""
_PLAIN: Header = ("accept-encoding", "identity")
_JSON: Header = ("content-type", "application/json")
_FORM: Header = ("content-type", "application/x-www-form-urlencoded")
"""What `curl -d` calls everything."""
_VERSION: Header = ("anthropic-version", _ANTHROPIC_VERSION)


def full_base(base_url: str) -> str:
    """The base that a request's path is appended to: without a path of its own it gets `/v1`.

    Raises:
        ConfigError: it is no http(s) URL, or not the base of one.
    """
    try:
        parts = base_address(base_url)
    except Invalid as error:
        raise ConfigError(f"an upstream's address is wrong: {error.message}", hint=error.hint) from error
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


class _Body(AsyncIterator[bytes]):
    """The body of an answer; what breaks it is told of the upstream."""

    __slots__ = ("_address", "_call", "_name")

    def __init__(self, call: Response, name: str, address: str) -> None:
        self._call, self._name, self._address = call, name, address

    async def __anext__(self) -> bytes:
        try:
            return await self._call.__anext__()
        except HttpError as error:
            raise explain(error, self._name, self._address) from error


@dataclass(slots=True)
class _Answer(ProviderResponse):
    call: Response
    slot: Slot | None = None

    async def close(self) -> None:
        self.call.close()
        if self.slot is not None:
            self.slot.leave()


class HttpUpstream:
    """A `reef.runtime.Runtime` that passes requests on to `section.base_url` under the upstream's own key.

    `reuse` False opens a connection for each request: for a server that closes them without a word.

    Raises:
        ConfigError: the address is none, or its key is not where the section says.
    """

    kind: RuntimeKind = "http"

    def __init__(self, section: UpstreamSection, environ: Mapping[str, str], *, reuse: bool = True) -> None:
        self.name = section.name
        self.model = section.model
        self.base_url = full_base(section.base_url)
        self._dialects = section.dialects()
        self._key = key_of(section, environ)
        self._variable = section.api_key_env
        self._passthrough = section.auth == "passthrough"
        self._retries = section.retries
        self._queue = FairQueue(section.concurrency) if section.concurrency else None
        self._timeouts = (section.connect_timeout_s, section.read_timeout_s)
        self._reuse = reuse
        self._client: Client | None = None
        self._closed = False
        self._bearer: list[Header] = [("authorization", f"Bearer {self._key}")] if self._key else []
        self._own_key: list[Header] = [("x-api-key", self._key)] if self._key else []
        self._trouble: tuple[str, str] = _NONE

    def speaks(self, dialect: Dialect) -> bool:
        return self._dialects is None or dialect in self._dialects

    def state(self) -> RuntimeState:
        """`down` after a call that could not be made, until one is answered."""
        waiting = self._queue.waiting if self._queue else 0
        trouble, remedy = self._trouble
        return RuntimeState(
            self.name,
            self.kind,
            "down" if trouble else "ready",
            self.model,
            self.base_url,
            trouble,
            waiting,
            remedy,
        )

    async def start(self) -> None:
        self._closed = False
        self._opened()

    def _opened(self) -> Client:
        """Raises Closed after `close`, until it is started again."""
        if self._closed:
            raise Closed("it is closed")
        if self._client is None:
            connect, read = self._timeouts
            self._client = Client(
                self.base_url, connect_timeout_s=connect, read_timeout_s=read, reuse=self._reuse
            )
        return self._client

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        """See `reef.runtime.Runtime`. Raises Unauthorized too: the request lacks the key it has to bring."""
        if self._passthrough and not any(name in CREDENTIALS for name, _ in request.headers):
            raise Unauthorized(
                f"upstream `{self.name}` takes the client's own key, and the request brings none",
                hint="send Reef's token as x-reef-token, and the provider's key the usual way",
            )
        return await send_again(self._send_in_turn, request, self.name, self._retries)

    async def _send_in_turn(self, request: ProviderRequest) -> ProviderResponse:
        if self._queue is None:
            return await self._send(request)
        slot = await self._queue.enter(request.scenario)
        try:
            answer = await self._send(request)
        except BaseException:
            slot.leave()
            raise
        answer.slot = slot
        return answer

    async def _send(self, request: ProviderRequest) -> _Answer:
        try:
            client = self._client or self._opened()
            call = await client.ask(
                request.method,
                request.path,
                self._headers(request),
                request.body,
                on_sent=request.on_sent,
                on_again=lambda fate: request.attempts.append(self._told(fate)),
            )
        except HttpError as error:
            failure = explain(error, self.name, self.base_url)
            self._trouble = failure.message, failure.hint
            raise failure from error
        self._trouble = _NONE
        return _Answer(call.status, call.headers, _Body(call, self.name, self.base_url), call)

    def _told(self, fate: HttpError | int) -> str:
        """How a try ended, for the record."""
        if isinstance(fate, int):
            return f"upstream `{self.name}` answered {fate}"
        return explain(fate, self.name, self.base_url).message

    async def models(self) -> Sequence[str]:
        """Its models. That it does not answer, or refuses the key, is then its `state`."""
        own = [self.model] if self.model else []
        headers = self._headers(ProviderRequest(None, "/models", (), b"", method="GET"))
        try:
            async with asyncio.timeout(_MODELS_TIMEOUT_S):
                answer = await self._opened().ask("GET", "/models", headers)
                said = await answer.whole()
        except (HttpError, TimeoutError) as error:
            failed = error if isinstance(error, HttpError) else ReadTimedOut("silence")
            failure = explain(failed, self.name, self.base_url)
            self._trouble = failure.message, failure.hint
            return own
        try:
            payload = orjson.loads(said) if answer.status == 200 else {}
        except ValueError:
            payload = {}
        refused = answer.status in (401, 403) and not self._passthrough
        self._trouble = (f"{self.name} at {self.base_url} {self._wanted_key()}", "") if refused else _NONE
        return list(dict.fromkeys(own + model_ids(payload)))

    def _wanted_key(self) -> str:
        if self._key is None:
            return "wants a key, and none is configured"
        return "does not accept the key it is given" + (f" (from {self._variable})" if self._variable else "")

    def copy_key(self) -> str | None:
        return None

    async def close(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _headers(self, request: ProviderRequest) -> list[Header]:
        headers = for_upstream(request.headers, credentials=self._passthrough)
        if request.dialect is not None and _FORM in headers:
            # It was read as JSON, and vLLM reads nothing that is called a form.
            headers = [header for header in headers if header != _FORM]
        names = {name for name, _ in headers}
        headers.append(_PLAIN)
        if request.body and "content-type" not in names:
            headers.append(_JSON)
        headers += self._bearer
        if request.dialect == "messages" or (request.dialect is None and self._dialects == ("messages",)):
            headers += self._own_key
            if "anthropic-version" not in names:
                headers.append(_VERSION)
        return headers


def model_ids(payload: object) -> list[str]:
    """The ids in an answer to `GET /models`, OpenAI's or Anthropic's."""
    rows = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(rows, list):
        return []
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
