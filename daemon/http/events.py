"""/reef/events: the life of the daemon as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

import orjson
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from daemon.events import EventBus
from daemon.http.rooms import rooms

KEEP_ALIVE_S = 15.0


async def events(request: Request) -> StreamingResponse:
    bus = rooms(request).events
    stream = _stream(bus, request.headers.get("last-event-id"), request.query_params.get("scenario"))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _stream(bus: EventBus, last_event_id: str | None, scenario: str | None) -> AsyncIterator[bytes]:
    live = bus.subscribe()
    next_event = asyncio.ensure_future(anext(live, None))
    await asyncio.sleep(0)
    yield _frame("hello", None, {"boot": bus.boot, "last": bus.last})
    replay, gap = bus.missed(last_event_id)
    if gap:
        yield _frame("gap", None, {"after": last_event_id})
    sent = 0
    for event in replay:
        sent = event.number
        if scenario in (None, event.scenario):
            yield _frame(event.name, bus.event_id(event.number), event.data)
    try:
        while True:
            done, _ = await asyncio.wait({next_event}, timeout=KEEP_ALIVE_S)
            if not done:
                yield b": still here\n\n"
                continue
            found = next_event.result()
            if found is None:
                return
            next_event = asyncio.ensure_future(anext(live, None))
            if found.number > sent and scenario in (None, found.scenario):
                yield _frame(found.name, bus.event_id(found.number), found.data)
    finally:
        next_event.cancel()


def _frame(name: str, event_id: str | None, data: dict[str, object]) -> bytes:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


routes = [Route("/reef/events", events)]
