"""Reading a buffered answer of an upstream to its end."""

from daemon.wire.encoding import decode
from reef.errors import Invalid, UpstreamFailed
from reef.runtime import ProviderResponse

ANSWER_LIMIT = 2**30
"""Bytes of one answer when unpacked."""


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
