"""Reading an answer of an upstream: what it is, and a buffered one to its end."""

from collections.abc import AsyncIterator

from daemon.wire.encoding import decode
from reef.errors import Invalid, UpstreamFailed
from reef.runtime import ProviderResponse

ANSWER_LIMIT = 2**30
"""Bytes of one answer when unpacked."""
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""With one of these a stream of events begins."""


async def is_event_stream(response: ProviderResponse, *, wanted: bool) -> bool:
    """Whether the body is events. Some servers give another type to those that were `wanted`, and clients do
    not look at it; then its first bytes say what it is."""
    kind = (response.header("content-type") or "").lower()
    if kind.startswith("text/event-stream"):
        return True
    if not wanted or "json" in kind or response.header("content-encoding"):
        return False
    first = await anext(response.body, b"")
    response.body = _followed(first, response.body)
    return first.lstrip().startswith(_FIELDS)


async def _followed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


def is_object(body: bytes) -> bool:
    """Whether a body begins and ends as a JSON object does. It is not parsed for it; white space around it is
    what some providers send while they think."""
    plain = body.strip()  # no copy where there is nothing to strip
    return plain[:1] == b"{" and plain[-1:] == b"}"


async def read_whole(response: ProviderResponse, name: str) -> bytes:
    """The body in plain bytes; the response is closed then.

    Raises:
        UpstreamFailed, TimedOut: it broke, or is not what its `content-encoding` says.
    """
    try:
        body = b"".join([chunk async for chunk in response.body])
    finally:
        await response.close()
    try:
        return decode(body, response.header("content-encoding"), limit=ANSWER_LIMIT)
    except Invalid as error:
        raise UpstreamFailed(
            f"the answer of `{name}` cannot be read: {error.message}", hint="look at its own log"
        ) from error
