"""The contract of a runtime: who answers a provider request.

The bytes of a provider pass through untouched, so a runtime deals in bytes; what they mean is
`daemon.wire`'s business.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Dialect = Literal["chat", "messages", "responses"]
DIALECTS: tuple[Dialect, ...] = ("chat", "messages", "responses")
RuntimeKind = Literal["http", "engine", "vllm"]
Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request as it is sent on. `path` is what follows `/v1`, query string included
    (`/chat/completions`, `/messages?beta=true`). Header names are lower-case."""

    dialect: Dialect | None
    path: str
    headers: Sequence[Header] = field(repr=False)
    body: bytes = field(repr=False)
    stream: bool = False
    method: str = "POST"
    scenario: str = ""
    """Whose turn it takes where an upstream bounds what runs at once."""
    attempts: list[str] = field(default_factory=list, compare=False)
    """Filled in by who sends it: how each try before the last ended."""
    dropped: list[str] = field(default_factory=list, compare=False)
    """What who sends it could not pass on: paths in the words of its dialect; `[]` is any index."""
    on_sent: Callable[[], None] | None = field(default=None, compare=False)
    """Called by who sends it as soon as its head has left, for each try: from then on it may cost money."""
    on_again: Callable[[bool], Awaitable[None]] | None = field(default=None, compare=False)
    """Awaited by who sends it before another try, with whether the one before may have cost money: it left,
    and was not answered with an error. What it raises ends the request."""

    @property
    def counts(self) -> bool:
        """Whether it asks how many tokens a request has, which not every server can tell."""
        return self.path.startswith("/messages/count_tokens")


@dataclass(slots=True)
class ProviderResponse:
    """The answer: status and headers have arrived, `body` is read as it comes.

    Iterating `body` raises `UpstreamFailed` or `TimedOut` when the connection breaks. `close` ends
    the upstream call (and so tells the provider that nobody listens) and may be called twice.
    """

    status: int
    headers: Sequence[Header]
    body: AsyncIterator[bytes]

    def header(self, name: str) -> str | None:
        for key, value in self.headers:
            if key == name:
                return value
        return None

    async def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class RuntimeState:
    """What `reef status` shows. `state` is `ready`, `loading` or `down`; `detail` says why."""

    name: str
    kind: RuntimeKind
    state: Literal["ready", "loading", "down"]
    model: str | None
    url: str
    detail: str = ""
    waiting: int = 0
    """Requests that wait for their turn."""
    hint: str = ""
    """What to do about `detail`, where that is known."""


@dataclass(frozen=True, slots=True)
class Billed:
    """The tokens of one answer by what they cost, none of them counted twice.

    `cached` were read from the provider's cache, `written` put into it; `fresh` is the rest of the input.
    """

    fresh: int
    output: int
    cached: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.fresh + self.output + self.cached + self.written


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. What a cache is not priced for costs as other input does."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def cost(self, tokens: Billed) -> float:
        """US dollars."""
        cached = self.input if self.cached_input is None else self.cached_input
        written = self.input if self.cache_write is None else self.cache_write
        usd = tokens.fresh * self.input + tokens.cached * cached + tokens.written * written
        return (usd + tokens.output * self.output) / 1e6


class Runtime(Protocol):
    """Answers provider requests: an upstream over HTTP, a local engine, vLLM."""

    name: str
    kind: RuntimeKind
    model: str | None
    """What Reef itself asks for, and what is filled in where a request names no model."""

    def speaks(self, dialect: Dialect) -> bool: ...

    def state(self) -> RuntimeState: ...

    async def start(self) -> None: ...

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        """Send one request and return when its headers have arrived.

        Raises:
            UpstreamFailed: it could not be reached or broke.
            TimedOut: no headers in time.
            Unavailable: it is loading; carries `retry_after_s`.
        """

    async def models(self) -> Sequence[str]:
        """The model names it offers, its own first."""

    def copy_key(self) -> str | None:
        """Names everything that decides an answer at temperature 0 (model file, engine version).

        None where two equal requests may be answered differently.
        """

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a finished exchange said, read off a copy of its bytes by `daemon.wire`."""

    response: dict[str, object] | None
    """The assembled answer in the provider's buffered form."""
    text: str = ""
    model: str | None = None
    finish: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    billed: Billed | None = None
    """None where the input or the output is unknown."""
    aliases: Sequence[str] = field(default=())
    """Body id and tool-call ids: other names by which clients know this answer."""
    unread: str | None = None
    """The beginning of what a stream held where an event should be: what was lost there is not known."""
