"""Errors on the wire: which HTTP status each is, and its sentence for a provider's error shape."""

from collections.abc import Mapping
from typing import Any

from daemon.wire.values import load_object, mapping, string
from reef.errors import (
    Conflict,
    Invalid,
    NotFound,
    OverBudget,
    ReefError,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
    UpstreamFailed,
)

STATUS: tuple[tuple[type[ReefError], int], ...] = (
    (Unauthorized, 401),
    (NotFound, 404),
    (Conflict, 409),
    (TooLarge, 413),
    (Unsupported, 501),
    (UpstreamFailed, 502),
    (OverBudget, 429),
    (Unavailable, 503),
    (TimedOut, 504),
    (Invalid, 400),
)


_MOST_SAID = 300
"""Bytes of an error's body that are told where it does not say what is wrong."""
_MOST_SHOWN = 100
"""Bytes of an answer that are told where it is none."""
UPSTREAM_BROKE = "502 upstream overloaded: "
"""What an error event begins with that ends an upstream's stream; clients try again at this."""
STOPPING = "503 overloaded: the server is stopping; try again"
"""What an error event says where the daemon's stop ends a stream."""


def status_of(error: ReefError) -> int:
    """The HTTP status of an error (protocol section 1)."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def error_in(response: Mapping[str, Any] | None) -> str | None:
    """What an answer of any dialect says went wrong, where it says that and nothing else."""
    if response is None:
        return None
    error = response.get("error")
    says = any(response.get(key) for key in ("choices", "content", "output"))
    if not error or (says and response.get("status") != "failed"):
        return None
    return words_of(error) or "no reason given"


def error_in_event(event: Mapping[str, Any]) -> str:
    """What an event of any dialect says went wrong, whatever else it says."""
    error = (mapping(event.get("response")) or event).get("error")
    return words_of(error) or string(event.get("message")) or "no reason given"


def words_of(error: Any) -> str | None:
    """What a provider's `error` says, which is an object with a message or a mere text."""
    return string(error) or string(mapping(error).get("message"))


def said_in(body: bytes, *, otherwise: str) -> str:
    """What an error of any provider says, in one piece of text; `otherwise` where it says nothing."""
    payload = load_object(body) or {}
    said = words_of(payload.get("error")) or string(payload.get("message"))
    return said or body[:_MOST_SAID].decode(errors="replace").strip() or otherwise


def shown(body: bytes) -> str:
    """The beginning of a wrong answer, for an error."""
    return body[:_MOST_SHOWN].decode(errors="replace").strip() or "nothing"


def sentence(error: ReefError) -> str:
    """What and how to mend it, in one line: SDKs show nothing but the message."""
    return f"{error.message} (hint: {error.hint})" if error.hint else error.message
