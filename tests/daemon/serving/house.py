"""A daemon with nothing in it but serving: the real ASGI app on a real port, records kept in memory."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.types import Receive, Scope, Send

from daemon.http.auth import Guard
from daemon.http.inference import InferenceApp
from daemon.records.draft import Draft
from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.serving.exchange import Exchange
from daemon.serving.served import Served
from daemon.settings.model import UpstreamSection
from daemon.wire.prefix import Prefix
from reef.errors import ReefError, Unavailable
from reef.feedback import Usage
from reef.runtime import Billed


@dataclass
class MemoryRecords:
    """Keeps drafts; `trouble` makes it fail, `refused` are those that it did not keep then. Where it is known
    to have `failed`, it still does so."""

    drafts: list[Draft] = field(default_factory=list)
    trouble: ReefError | None = None
    failed: Unavailable | None = None
    refused: list[Draft] = field(default_factory=list)
    running: set[str] = field(default_factory=set)

    async def ready(self) -> None:
        if self.failed is not None:
            raise self.failed

    async def measure(self, draft: Draft) -> None:
        draft.usage, draft.tokens = Usage(5, 5), Billed(5, 5)

    def opened(self, receipt: str, scenario: str) -> None:
        self.running.add(receipt)

    def closed(self, receipt: str) -> None:
        self.running.discard(receipt)

    async def append(self, draft: Draft) -> None:
        if self.trouble is not None:
            self.refused.append(draft)
            raise self.trouble
        self.drafts.append(draft)

    def wait(self, count: int = 1) -> list[Draft]:
        """The drafts, once there are so many."""
        until = time.monotonic() + 5
        while len(self.drafts) < count and time.monotonic() < until:
            time.sleep(0.005)
        assert len(self.drafts) >= count
        return self.drafts


@dataclass
class OneRelease:
    """Every scenario serves `prefix` as release `release`; pins are read off the records."""

    records: MemoryRecords
    prefix: Prefix | None = None
    release: str = "r1"
    starts: list[str | None] = field(default_factory=list)
    known: dict[str, Served] = field(default_factory=dict)

    async def serve(self, scenario: str, *, start: str | None = None) -> Served:
        self.starts.append(start)
        served = Served(scenario, self.release, f"content-{self.release}", self.prefix)
        self.known[self.release] = served
        return served

    async def default(self, scenario: str) -> Served:
        return Served(scenario, "", "", self.prefix)

    async def pinned(self, scenario: str, conversation: str) -> Served | None:
        for draft in self.records.drafts:
            if draft.scenario == scenario and draft.conversation == conversation and draft.release_id:
                return self.known.get(draft.release_id)
        return None


@dataclass
class House:
    url: str
    records: MemoryRecords
    scenarios: OneRelease
    exchange: Exchange
    seen: list[Draft]


@contextmanager
def house(
    upstream: str | list[UpstreamSection],
    *,
    prefix: Prefix | None = None,
    on_record_failure: str = "refuse",
    tokens: Sequence[str] = (),
    upstream_of: Callable[[str], str | None] = lambda _: None,
    **options: object,
) -> Iterator[House]:
    """Serve in front of an upstream; `options` are `InferenceApp`'s. With `tokens` they are asked for."""
    sections = (
        upstream
        if isinstance(upstream, list)
        else [UpstreamSection(name="stub", base_url=upstream, model="stub-model")]
    )
    records = MemoryRecords()
    scenarios = OneRelease(records, prefix)
    seen: list[Draft] = []
    router = Router(
        [HttpUpstream(section, {"STUB_KEY": "upstream-secret"}) for section in sections], sections
    )
    exchange = Exchange(
        router,
        records,
        scenarios,
        on_record_failure=on_record_failure,
        on_record=seen.append,
        upstream_of=upstream_of,
    )
    inference = InferenceApp(exchange, **options)
    app = Guard(inference, tokens=tokens, hosts=[]) if tokens else inference

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        await receive()
        await router.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await router.close()
        await send({"type": "lifespan.shutdown.complete"})

    with serving(whole) as url:
        yield House(url, records, scenarios, exchange, seen)


@contextmanager
def serving(app: Callable[..., object], *, server_header: str = "") -> Iterator[str]:
    """Run an ASGI app on a free port, in a thread."""
    headers = [("server", server_header)] if server_header else []
    config = uvicorn.Config(
        app,
        port=0,
        ws="none",
        log_level="warning",
        server_header=False,
        headers=headers,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="house", daemon=True)
    thread.start()
    until = time.monotonic() + 10
    while not server.started and time.monotonic() < until:
        time.sleep(0.002)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
