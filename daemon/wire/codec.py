"""One codec per dialect: what its requests, answers, streams and errors look like.

To add a dialect: a module with a `CODEC`, one line in `_CODECS`, its paths in `dialect_of`.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol

from daemon.wire import chat, messages, responses
from daemon.wire.facts import RequestFacts
from daemon.wire.prefix import Prefix
from daemon.wire.tail import Mark
from reef.errors import ReefError
from reef.feedback import Message
from reef.runtime import Dialect, Parsed


class Codec(Protocol):
    """What the daemon knows of one dialect. `event` is always one event's raw bytes."""

    @property
    def path(self) -> str:
        """Where its requests go, after `/v1`."""

    def facts(self, body: bytes) -> RequestFacts:
        """Read a request. Raises Invalid when it is no JSON object."""

    def inject(self, body: bytes, prefix: Prefix) -> bytes:
        """Put a release in front of a request that `facts` has read; no other byte changes."""

    def fill_model(self, body: bytes, model: str) -> bytes:
        """Name a model where the request names none."""

    def set_model(self, body: bytes, model: str) -> bytes:
        """Name another model in a request that names one."""

    def parse(self, body: bytes, *, stream: bool) -> Parsed:
        """Read an answer (or an error) off its bytes. What cannot be read has response None."""

    def answers(self, response: Mapping[str, Any]) -> bool:
        """Whether a buffered answer, or an event of a stream, says something: not all does that comes with
        200."""

    def turn(self, response: Mapping[str, Any]) -> Message | None:
        """The answer as the assistant message that the next request of its conversation will carry."""

    def mark(self, event: bytes) -> Mark:
        """What an event of a stream means for its end."""

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes:
        """The terminal event with the receipt; `first` is the stream's first event with data."""

    def error_body(self, error: ReefError, status: int) -> bytes:
        """An error as this provider would say it."""

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes:
        """The event that ends a broken stream, the `sequence`-th of it."""

    def ask(
        self,
        messages: Sequence[Message],
        *,
        model: str | None,
        max_tokens: int,
        temperature: float,
        schema: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> bytes:
        """A buffered request of Reef's own."""


_CODECS: dict[Dialect, Codec] = {
    "chat": chat.CODEC,
    "messages": messages.CODEC,
    "responses": responses.CODEC,
}


_PATHS: dict[str, Dialect] = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/messages/count_tokens": "messages",
    "/responses": "responses",
}


PATHS = tuple(_PATHS)
"""What is recorded, as it stands after `/v1`."""


def codec_for(dialect: Dialect) -> Codec:
    return _CODECS[dialect]


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a path after `/v1` (query string or not), for the recorded routes; else None."""
    return _PATHS.get(path.partition("?")[0])


def shape_of(path: str, headers: Container[str]) -> Dialect:
    """The dialect in whose shape an error is told, by the path after `/v1` and the names of its headers."""
    if path.startswith("/messages") or "anthropic-version" in headers:
        return "messages"
    return dialect_of(path) or "chat"
