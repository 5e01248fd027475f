"""Reading an answer of an upstream: what it is, and a buffered one to its end."""

from collections.abc import AsyncIterator

from daemon.records.draft import Draft
from daemon.serving.turn import ANSWER_LIMIT
from daemon.wire.codec import Codec
from daemon.wire.encoding import decode
from daemon.wire.errors import error_in, shown
from daemon.wire.values import load_object
from reef.errors import Invalid, TooLarge, UpstreamFailed
from reef.runtime import Parsed, ProviderResponse

_CHECK = "check that base_url is a provider's API"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""With one of these a stream of events begins, after what may stand before it."""
_LONGEST = max(map(len, _FIELDS))
_BEFORE = b"\xef\xbb\xbf \t\r\n"


async def is_event_stream(response: ProviderResponse, *, wanted: bool) -> bool:
    """Whether the body is events. Some servers give another type to those that were `wanted`, or their type
    to what is none, and clients do not look at it; then its first bytes say what it is."""
    kind = (response.header("content-type") or "").lower()
    told = kind.startswith("text/event-stream")
    if told == wanted or response.header("content-encoding"):
        return told
    first = b""
    async for chunk in response.body:
        first += chunk
        if len(first.lstrip(_BEFORE)) >= _LONGEST:
            break
    response.body = _followed(first, response.body)
    return first.lstrip(_BEFORE).startswith(_FIELDS)


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
        UpstreamFailed, TimedOut: it broke, is too long, or is not what its `content-encoding` says.
    """
    try:
        body = b"".join([chunk async for chunk in response.body])
    finally:
        await response.close()
    try:
        return decode(body, response.header("content-encoding"), limit=ANSWER_LIMIT)
    except (Invalid, TooLarge) as error:
        raise UpstreamFailed(
            f"the answer of `{name}` cannot be read: {error.message}", hint="look at its own log"
        ) from error


def read(codec: Codec, draft: Draft, body: bytes) -> Parsed:
    """Read a buffered answer once, for its record too.

    Raises:
        UpstreamFailed: it is none.
    """
    upstream = draft.upstream_name
    parsed = draft.parsed = codec.parse(body, stream=False)
    response = parsed.response if parsed.response is not None else load_object(body)
    if response is None:
        raise no_answer(upstream, body)
    if codec.answers(response):
        return parsed
    if told := error_in(response):
        raise UpstreamFailed(f"upstream `{upstream}` answered 200 with an error: {told}")
    raise UpstreamFailed(
        f"upstream `{upstream}` answered with no answer of the dialect `{draft.dialect}`: {shown(body)}",
        hint=_CHECK,
    )


def no_answer(upstream: str | None, body: bytes) -> UpstreamFailed:
    return UpstreamFailed(
        f"upstream `{upstream}` answered with what is no JSON object: {shown(body)}", hint=_CHECK
    )


def unwanted_stream(upstream: str | None) -> UpstreamFailed:
    """A client that waits for JSON cannot read events."""
    return UpstreamFailed(
        f"upstream `{upstream}` answered with a stream where none was asked for",
        hint="it may do nothing else: ask with `stream`, or name another model",
    )


def no_stream(upstream: str | None, body: bytes) -> UpstreamFailed:
    """A client that waits for events takes JSON for a stream without any."""
    if told := error_in(load_object(body)):
        return UpstreamFailed(f"upstream `{upstream}` answered 200 with an error: {told}")
    return UpstreamFailed(
        f"upstream `{upstream}` answered with JSON where a stream was asked for",
        hint="it may not stream: ask without `stream`, or name another model",
    )
