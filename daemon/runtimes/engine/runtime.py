"""`Engine`: a `Runtime` that answers with a model on this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from daemon.runtimes.engine.idle import Idleness
from daemon.runtimes.engine.kinds import KINDS
from daemon.runtimes.engine.process import EngineConfig, EngineProcess
from daemon.runtimes.engine.refusals import restated
from daemon.runtimes.engine.shaping import may_need_shaping, shaping
from daemon.runtimes.keeping import file_sha256
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import Loading, Unavailable, Unsupported, UpstreamFailed
from reef.runtime import Dialect, ProviderRequest, ProviderResponse, RuntimeState

_KEY = "REEF_ENGINE_KEY"
DOWN_RETRY_S = 5


@dataclass(slots=True)
class _Lent(ProviderResponse):
    """An answer that is under way; `over` is called once, when it is closed."""

    inner: ProviderResponse
    over: Callable[[], None] | None

    async def close(self) -> None:
        await self.inner.close()
        if self.over is not None:
            self.over()
            self.over = None


class Engine:
    """Serves one model. While its child loads, requests are refused with `Unavailable`. With `idle_unload_s`
    the child is stopped after so many seconds without a request, and the next request starts it again.

    Raises:
        Unsupported: the engine is not installed.
    """

    def __init__(self, config: EngineConfig, logs: Path, *, idle_unload_s: float | None = None) -> None:
        self.name = "engine"
        self.model: str | None = config.name
        self._config = config
        self._engine = KINDS[config.engine].started_with(config.args)
        self.kind = self._engine.runtime
        self._version = self._engine.version()
        self._sending: HttpUpstream | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._why_down = ""
        self._digest: str | None = None
        self._idleness = Idleness(idle_unload_s) if idle_unload_s is not None else None
        self._wanted = asyncio.Event()
        self._unloading: asyncio.Task[None] | None = None
        log_file = logs / f"engine-{config.name.replace('/', '-')}.log"
        self._process = EngineProcess(config, log_file, on_ready=self._ready, on_down=self._down)

    def speaks(self, dialect: Dialect) -> bool:
        return True

    def state(self) -> RuntimeState:
        name, kind, model, path = self.name, self.kind, self.model, str(self._config.model_path)
        if self._sending is not None:
            return RuntimeState(name, kind, "ready", model, self._sending.base_url)
        if self._asleep:
            return RuntimeState(
                name, kind, "ready", model, path, "idle and unloaded; a request loads it again"
            )
        return RuntimeState(name, kind, "down" if self._why_down else "loading", model, path, self._why_down)

    async def start(self) -> None:
        self._wanted.set()
        if self._idleness is None:
            self._process.start()
        elif self._unloading is None:
            self._unloading = asyncio.create_task(self._live_by_demand(self._idleness))
        if self._engine.runtime == "engine":
            self._digest = await asyncio.to_thread(file_sha256, self._config.model_path)

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        """See `reef.runtime.Runtime`. Raises Unsupported too: what is asked for is no text."""
        if self.kind == "engine" and request.path.partition("?")[0] == "/embeddings":
            raise Unsupported(
                f"the local model {self.model} makes no embeddings",
                hint='name an upstream for them: an [[upstream]] with models = ["NAME"]',
            )
        if self._sending is None:
            raise self._not_now()
        shape = None
        if may_need_shaping(request, self._engine):  # others' streams go on meanwhile
            shape = await asyncio.to_thread(shaping, request, self._engine)
        if self._sending is None:
            raise self._not_now()
        if self._idleness is not None:
            self._idleness.enter()
        over = self._idleness.leave if self._idleness is not None else None
        try:
            inner = await self._sending.send(shape.request if shape else request)
            response = _Lent(inner.status, inner.headers, self._whole(inner.body), inner, over)
        except UpstreamFailed as error:
            if over is not None:
                over()
            if error.sent:
                raise self._broke_off() from error
            raise self._not_now("is restarting") from error
        except BaseException:
            if over is not None:
                over()
            raise
        try:
            cannot_count = request.counts and response.status in (404, 405, 501)
            if response.status >= 400 and not cannot_count and request.dialect is not None:
                return await restated(response, request, self._config.name, wider=self._engine.wider)
            return await shape.shaped(response) if shape else response
        except BaseException:
            await response.close()
            raise

    def _not_now(self, what: str = "is loading") -> Unavailable:
        """Why there is no answer now, and when to come back. What sleeps wakes up."""
        if self._why_down and what == "is loading":
            return Unavailable(
                f"the model {self.model} is down: {self._why_down}",
                hint="see `reef logs`; it is started again by itself",
                retry_after_s=DOWN_RETRY_S,
            )
        self._wanted.set()
        after_s = self._engine.loading_retry_s
        return Loading(f"the model {self.model} {what}", hint="try again", retry_after_s=after_s)

    async def _whole(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for chunk in body:
                yield chunk
        except UpstreamFailed as error:
            raise self._broke_off() from error

    def _broke_off(self) -> UpstreamFailed:
        """What to say of a child that went away: it is started again by itself."""
        return UpstreamFailed(
            f"the engine of {self.model} stopped in the middle and is restarting", hint="try again"
        )

    async def models(self) -> Sequence[str]:
        return [self._config.name]

    def copy_key(self) -> str | None:
        """The model file and the engine version decide an answer at temperature 0."""
        return f"{self._digest}:{self._version}:{self._config.context}" if self._digest else None

    async def close(self) -> None:
        if self._unloading is not None:
            self._unloading.cancel()
            await asyncio.gather(self._unloading, return_exceptions=True)
        await self._process.stop()
        self._retire()
        await asyncio.gather(*self._retiring)

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._process.pid

    @property
    def _asleep(self) -> bool:
        return self._unloading is not None and not self._wanted.is_set()

    async def _live_by_demand(self, idleness: Idleness) -> None:
        while True:
            await self._wanted.wait()
            idleness.begin()
            self._process.start()
            await idleness.over()
            if self._sending is None:
                continue  # it loads, or is down: whoever waits for it comes back
            self._wanted.clear()
            self._retire()
            await self._process.stop()

    def _ready(self, url: str, key: str) -> None:
        section = UpstreamSection(name=self.name, base_url=url, model=self.model, api_key_env=_KEY)
        self._sending = HttpUpstream(section, {_KEY: key}, reuse=False)  # llama.cpp hangs up after a stream
        self._why_down = ""
        if self._idleness is not None:
            self._idleness.begin()

    def _down(self, why: str) -> None:
        self._retire()
        self._why_down = why

    def _retire(self) -> None:
        """Close the connections to a child that is gone."""
        if self._sending is not None:
            task = asyncio.create_task(self._sending.close())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        self._sending = None
