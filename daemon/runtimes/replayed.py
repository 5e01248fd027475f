"""An answer whose body is there already."""

from collections.abc import AsyncIterator


async def once(body: bytes) -> AsyncIterator[bytes]:
    """A body that comes in one piece."""
    yield body
