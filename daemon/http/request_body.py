"""Reads a request's body, within a bound."""

from starlette.types import Receive

from reef.errors import TooLarge

LARGER = "raise [reef] max_body_mb"
"""How to have a body taken that is too large."""


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """The body as it was sent; None when the client left before all of it was there.

    Raises:
        TooLarge: it has more than `limit` bytes. It was read to its end, since a client that still sends
            does not see the answer; what is over the limit was not kept.
    """
    chunks: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunk = message.get("body", b"")
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
        else:
            chunks.clear()
        more = message.get("more_body", False)
    if size > limit:
        raise TooLarge(f"the request body has {size} bytes; the limit is {limit}", hint=LARGER)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
