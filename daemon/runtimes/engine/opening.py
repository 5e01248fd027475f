"""How a stream of llama.cpp's server opens: as its dialect says, whatever the first token is.

Where that is no whole character (an answer that begins with an emoji), the server leaves the opening event
out (`message_start`, `response.created`), or sends it a second time in the middle; clients fail at both.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

from daemon.wire import sse
from daemon.wire.values import Json, dump, load_object, mapping
from reef.runtime import ProviderRequest, ProviderResponse

Send = Callable[[ProviderRequest], Awaitable[ProviderResponse]]
_ONCE = frozenset({b"response.created", b"response.in_progress"})


async def well_opened(
    body: AsyncIterator[bytes], request: ProviderRequest, model: str | None, send: Send
) -> AsyncIterator[bytes]:
    """The stream that answers `request`, its opening events there and there once. Chat needs no mending.

    Chunks are of whole events then; what arrived of an event that never ended comes last. `send` asks the
    same server what it needs to know for an event that is missing.
    """
    if request.dialect == "chat":
        async for chunk in body:
            yield chunk
        return
    events = sse.EventSplitter()
    seen: set[bytes] = set()
    async for chunk in body:
        kept = []
        for event in events.feed(chunk):
            name = sse.name(event)
            if not seen and name.startswith((b"content_block", b"message_delta")):
                kept.append(await _message_start(request, model, send))
            elif not seen and name == b"response.completed":
                kept.append(_response_created(event))
            if name not in _ONCE or name not in seen:
                kept.append(event)
            seen.add(name)
        if kept:
            yield b"".join(kept)
    if events.rest:
        yield events.rest


async def _message_start(request: ProviderRequest, model: str | None, send: Send) -> bytes:
    """The first event of a stream of messages, with the size of the prompt as the server counts it."""
    response = await send(ProviderRequest("messages", "/messages/count_tokens", (), request.body))
    counted = load_object(b"".join([chunk async for chunk in response.body])) or {}
    await response.close()
    message: Json = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": counted.get("input_tokens", 0), "output_tokens": 0},
    }
    return sse.encode(dump({"type": "message_start", "message": message}), "message_start")


def _response_created(completed: bytes) -> bytes:
    """The first event of a stream of responses whose last event is all there was."""
    whole = mapping(load_object(sse.data(completed)))
    response = mapping(whole.get("response")) | {"status": "in_progress", "output": [], "usage": None}
    return sse.encode(dump({"type": "response.created", "response": response}), "response.created")
