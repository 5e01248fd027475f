"""`Engine`: a `Runtime` that answers with a model on this machine."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from daemon.runtimes.engine.process import EngineConfig, EngineProcess
from daemon.runtimes.engine.refusals import restated
from daemon.runtimes.keeping import file_sha256
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import Unavailable, Unsupported, UpstreamFailed
from reef.runtime import Dialect, Price, ProviderRequest, ProviderResponse, RuntimeKind, RuntimeState

_KEY = "REEF_ENGINE_KEY"
LOADING_RETRY_S = 1
DOWN_RETRY_S = 5


class Engine:
    """Serves one GGUF file. While its child loads, requests are refused with `Unavailable`.

    Raises:
        Unsupported: no local engine is installed.
    """

    kind: RuntimeKind = "engine"
    price: Price | None = None

    def __init__(self, config: EngineConfig, logs: Path) -> None:
        self.name = "engine"
        self.model: str | None = config.name
        self._config = config
        self._version = engine_version()
        self._sending: HttpUpstream | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._why_down = ""
        self._digest: str | None = None
        self._process = EngineProcess(
            config, logs / f"engine-{config.name}.log", on_ready=self._ready, on_down=self._down
        )

    def speaks(self, dialect: Dialect) -> bool:
        return True

    def state(self) -> RuntimeState:
        if self._sending is not None:
            return RuntimeState(self.name, self.kind, "ready", self.model, self._sending.base_url)
        state = "down" if self._why_down else "loading"
        return RuntimeState(
            self.name,
            self.kind,
            state,  # type: ignore[arg-type]
            self.model,
            str(self._config.model_path),
            self._why_down,
        )

    async def start(self) -> None:
        self._process.start()
        self._digest = await asyncio.to_thread(file_sha256, self._config.model_path)

    async def send(self, request: ProviderRequest) -> ProviderResponse:
        if self._sending is None:
            if self._why_down:
                raise Unavailable(
                    f"the model {self.model} is down: {self._why_down}",
                    hint="see `reef logs`; it is started again by itself",
                    retry_after_s=DOWN_RETRY_S,
                )
            raise Unavailable(
                f"the model {self.model} is loading", hint="try again", retry_after_s=LOADING_RETRY_S
            )
        try:
            response = await self._sending.send(request)
        except UpstreamFailed as error:
            if error.sent:
                raise self._broke_off() from error
            raise Unavailable(
                f"the engine of {self.model} is restarting", hint="try again", retry_after_s=LOADING_RETRY_S
            ) from error
        response.body = self._whole(response.body)
        if response.status >= 400 and request.dialect is not None:
            return await restated(response, request.dialect)
        return response

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
        await self._process.stop()
        self._retire()
        await asyncio.gather(*self._retiring)

    @property
    def pid(self) -> int | None:
        """The child's process id."""
        return self._process.pid

    def _ready(self, url: str, key: str) -> None:
        section = UpstreamSection(name=self.name, base_url=url, model=self.model, api_key_env=_KEY)
        self._sending = HttpUpstream(section, {_KEY: key}, reuse=False)  # llama.cpp hangs up after a stream
        self._why_down = ""

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


def engine_version() -> str:
    try:
        return f"xllamacpp {version('xllamacpp')}"
    except PackageNotFoundError:
        raise Unsupported(
            "serving a local model needs the engine, which is not installed",
            hint="pip install 'reefd[local]', or name an upstream: reef up --upstream URL",
        ) from None
