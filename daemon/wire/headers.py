"""Which headers pass the daemon. Names are lower-case."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from reef.runtime import Header

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
CREDENTIALS = frozenset({"authorization", "x-api-key"})
_SECRET = CREDENTIALS | {"cookie"}
_REQUEST = HOP_BY_HOP | _SECRET | {"host", "content-length", "content-encoding", "accept-encoding", "expect"}
_REQUEST_BUT_KEYS = _REQUEST - CREDENTIALS
NAMED_KEPT = 64
"""Values of `connection` that are read once; there are few."""
_RESPONSE = HOP_BY_HOP | {"content-length", "content-encoding", "set-cookie", "date", "server"}


def _without_named(dropped: frozenset[str], headers: Sequence[Header]) -> frozenset[str]:
    """With those that a `connection` header names, which are for the next server only."""
    for key, value in headers:
        if key == "connection":
            dropped = _and_named(dropped, value)
    return dropped


@lru_cache(NAMED_KEPT)
def _and_named(dropped: frozenset[str], value: str) -> frozenset[str]:
    return dropped | {name.strip().lower() for name in value.split(",")}


def for_upstream(headers: Sequence[Header], *, credentials: bool = False) -> list[Header]:
    """A request's headers without what belongs to the connection, to its client's account or to Reef.

    `credentials` keeps those that the client shows a provider.
    """
    dropped = _without_named(_REQUEST_BUT_KEYS if credentials else _REQUEST, headers)
    return [pair for pair in headers if pair[0] not in dropped and not pair[0].startswith("x-reef-")]


def for_client(headers: Sequence[Header]) -> list[Header]:
    """An answer's headers without what belongs to the connection, or pretends to be Reef's."""
    dropped = _without_named(_RESPONSE, headers)
    return [pair for pair in headers if pair[0] not in dropped and not pair[0].startswith("x-reef-")]


def advice(headers: Iterable[Header]) -> list[Header]:
    """What an upstream says about coming back later."""
    return [
        pair
        for pair in headers
        if pair[0] in {"retry-after", "retry-after-ms"} or "ratelimit" in pair[0].replace("-", "")
    ]
