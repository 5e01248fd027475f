"""Reading answers, whatever an upstream sent: one that stumbles its reader says nothing, and is kept."""

import logging
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from daemon.wire import sse
from daemon.wire.errors import shown
from daemon.wire.values import Json, load_object, mapping, mappings, string
from reef.runtime import Parsed

log = logging.getLogger(__name__)

_LAST = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})
"""What follows one of these is no part of the answer."""
DONE = b"[DONE]"
"""Ends a stream of chat completions; some servers end those of any dialect with it."""
_IDLE = frozenset({b"ping", b"keepalive", b"keep-alive", b"heartbeat"})
"""Names of events that keep a connection open, whatever their data."""


def forgiving(parse: Callable[..., Parsed]) -> Callable[..., Parsed]:
    """A `parse` that never fails; what it cannot read has response None."""

    @wraps(parse)
    def parsed(reader: Any, body: bytes, *, stream: bool) -> Parsed:
        try:
            return parse(reader, body, stream=stream)
        except Exception:
            log.exception("an answer of %d bytes cannot be read", len(body))
            return Parsed(None)

    return parsed


def response_in(
    body: bytes, assemble: Callable[[Iterator[Json]], Json | None], *, stream: bool
) -> tuple[Json | None, str | None]:
    """What an answer says in its buffered form, of a stream by `assemble`, and what of a stream is unread."""
    if not stream:
        return load_object(body), None
    events = Events(body)
    return assemble(iter(events)), events.unread


class Events:
    """What the events of a whole stream say, one after another. Iterated, it notes in `unread` the first one
    in which there is something else, and what it shows of it: nobody knows what is missing then."""

    def __init__(self, body: bytes) -> None:
        self._events, self._rest = sse.split(body)
        self.unread: str | None = None

    def __iter__(self) -> Iterator[Json]:
        over = False
        for event in self._events:
            data = sse.data(event)
            payload = load_object(data)
            if payload is not None:
                over = over or _is_last(payload)
                yield payload
            elif data.strip() == DONE:
                over = True
            elif not over and self.unread is None:
                self.unread = unread(event, data)
        if (payload := load_object(sse.data(self._rest))) is not None:
            yield payload


def _is_last(payload: Json) -> bool:
    """Whether an event says why the answer, or each of the answers in it, ends."""
    if string(payload.get("type")) in _LAST or mapping(payload.get("delta")).get("stop_reason"):
        return True
    choices = mappings(payload.get("choices"))
    return bool(choices) and all(choice.get("finish_reason") for choice in choices)


def unread(event: bytes, data: bytes) -> str | None:
    """What an event whose `data` is no object shows that it says; None where it says nothing."""
    if said := data.strip():
        return None if said == b"null" or sse.name(event) in _IDLE else shown(data)
    return None if data or sse.is_event(event) else shown(event)
