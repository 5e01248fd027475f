"""A provider over HTTP."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from yarl import URL

from daemon.runtimes.again import send_again
from daemon.runtimes.failures import explain
from daemon.runtimes.keys import key_of
from daemon.runtimes.queue import FairQueue, Slot
from daemon.settings.model import UpstreamSection
from daemon.wire.headers import CREDENTIALS, for_upstream
from reef._url import http_address
from reef.errors import ConfigError, Invalid, Unauthorized
from reef.runtime import Dialect, Header, ProviderRequest, ProviderResponse, RuntimeKind, RuntimeState

_ANTHROPIC_VERSION = "2023-06-01"
_MODELS_TIMEOUT = aiohttp.ClientTimeout(total=5.0)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104  # names, not a bind


def full_base(base_url: str) -> str:
    """The base that a request's path is appended to: without a path of its own it gets `/v1`.

    Raises:
        ConfigError: it is no http(s) URL.
    """
    try:
        parts = http_address(base_url.strip())
    except Invalid as error:
        raise ConfigError(f"an upstream's address is wrong: {error.message}", hint=error.hint) from error
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


@dataclass(slots=True)
class _Answer(ProviderResponse):
    call: aiohttp.ClientResponse
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
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=section.connect_timeout_s, sock_read=section.read_timeout_s
        )
        self._reuse = reuse
        self._session: aiohttp.ClientSession | None = None
        self._traced: aiohttp.ClientSession | None = None
        """For requests whose sender wants to know when they left: tracing costs each request of a session."""
        self._trouble = ""

    def speaks(self, dialect: Dialect) -> bool:
        return self._dialects is None or dialect in self._dialects

    def state(self) -> RuntimeState:
        """`down` after a call that could not be made, until one is answered."""
        waiting = self._queue.waiting if self._queue else 0
        return RuntimeState(
            self.name,
            self.kind,
            "down" if self._trouble else "ready",
            self.model,
            self.base_url,
            self._trouble,
            waiting,
        )

    async def start(self) -> None:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, force_close=not self._reuse)
            self._session = self._open(connector, ())
            self._traced = self._open(connector, (_telling_when_sent(),))

    def _open(
        self, connector: aiohttp.TCPConnector, traces: Sequence[aiohttp.TraceConfig]
    ) -> aiohttp.ClientSession:
        """A session; one without traces closes the connector with it."""
        return aiohttp.ClientSession(
            connector=connector,
            connector_owner=not traces,
            timeout=self._timeout,
            proxy=_proxy(self.base_url),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=list(traces),
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            max_line_size=65536,
            max_field_size=65536,
        )

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
        if self._session is None:
            await self.start()
        session = self._traced if request.on_sent else self._session
        assert session is not None
        try:
            answer = await session.request(
                request.method,
                URL(self.base_url + request.path, encoded=True),
                headers=self._headers(request),
                data=_payload(request.body),
                allow_redirects=False,
                trace_request_ctx=request.on_sent,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            failure = explain(error, self.name, self.base_url)
            self._trouble = failure.message
            raise failure from error
        self._trouble = ""
        headers: list[Header] = [(key.lower(), value) for key, value in answer.headers.items()]
        return _Answer(answer.status, headers, self._read(answer), answer)

    async def models(self) -> Sequence[str]:
        """Its models. That it does not answer, or refuses the key, is then its `state`."""
        await self.start()
        assert self._session is not None
        own = [self.model] if self.model else []
        headers = self._headers(ProviderRequest(None, "/models", (), b"", method="GET"))
        try:
            async with self._session.get(
                URL(self.base_url + "/models", encoded=True), headers=headers, timeout=_MODELS_TIMEOUT
            ) as answer:
                payload = orjson.loads(await answer.read()) if answer.status == 200 else {}
        except ValueError:
            payload = {}
        except (aiohttp.ClientError, OSError) as error:
            self._trouble = explain(error, self.name, self.base_url).message
            return own
        refused = answer.status in (401, 403) and not self._passthrough
        self._trouble = f"{self.name} at {self.base_url} {self._wanted_key()}" if refused else ""
        return list(dict.fromkeys(own + model_ids(payload)))

    def _wanted_key(self) -> str:
        if self._key is None:
            return "wants a key, and none is configured"
        return "does not accept the key it is given" + (f" (from {self._variable})" if self._variable else "")

    def copy_key(self) -> str | None:
        return None

    async def close(self) -> None:
        if self._session is not None and self._traced is not None:
            await self._traced.close()
            await self._session.close()
            self._session = self._traced = None

    async def _read(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            with _awake(answer):
                async for chunk in answer.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, OSError) as error:
            answer.close()
            raise explain(error, self.name, self.base_url) from error

    def _headers(self, request: ProviderRequest) -> list[Header]:
        headers = for_upstream(request.headers, credentials=self._passthrough)
        headers.append(("accept-encoding", "identity"))
        names = {name for name, _ in headers}
        if request.body and "content-type" not in names:
            headers.append(("content-type", "application/json"))
        if self._key:
            headers.append(("authorization", f"Bearer {self._key}"))
        if request.dialect == "messages" or (request.dialect is None and self._dialects == ("messages",)):
            if self._key:
                headers.append(("x-api-key", self._key))
            if "anthropic-version" not in names:
                headers.append(("anthropic-version", _ANTHROPIC_VERSION))
        return headers


def _telling_when_sent() -> aiohttp.TraceConfig:
    """Calls a request's `on_sent` once its head has been written to a connection."""

    async def tell(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx()

    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(tell)
    return config


@contextmanager
def _awake(answer: aiohttp.ClientResponse) -> Iterator[None]:
    """Where a body's chunks are malformed, the client library closes the connection and lets its reader wait
    for ever, the timeout dropped. So the end of the connection wakes it."""
    protocol = answer.connection.protocol if answer.connection is not None else None
    closed = protocol.closed if protocol is not None else None
    if closed is None:  # all of it is here already
        yield
        return

    def wake(_: object) -> None:
        if not answer.content.is_eof() and answer.content.exception() is None:
            answer.content.set_exception(aiohttp.ClientPayloadError("the connection ended in the middle"))

    closed.add_done_callback(wake)
    try:
        yield
    finally:
        closed.remove_done_callback(wake)


def model_ids(payload: object) -> list[str]:
    """The ids in an answer to `GET /models`, OpenAI's or Anthropic's."""
    rows = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(rows, list):
        return []
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


def _payload(body: bytes) -> bytes | BytesIO | None:
    """The client library writes large bytes in one go, and files piece by piece."""
    return BytesIO(body) if len(body) > 2**20 else body or None


def _proxy(base_url: str) -> str | None:
    """The proxy that the environment names for this address; never one for this machine itself."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)
