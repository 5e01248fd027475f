"""The engines that are held to the contract, and how the tests drive one."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

from daemon.runtimes.engine.runtime import Engine
from reef.runtime import Dialect, ProviderRequest

ENGINES = ("xllamacpp", "llama-cpp-python")
_MODULES = {"llama-cpp-python": "llama_cpp"}
INSTALLED = [kind for kind in ENGINES if find_spec(_MODULES.get(kind, kind)) is not None]
CONTEXT = 1024
READY_S = 20.0
LONG = 60_000  # tokens, which take the tiny model far longer than a test waits
LETTER = {"100": 100}
"""Has the tiny model say nothing but the letter `a`: bytes that are no text are held back for long."""
PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}

Make = Callable[..., Engine]
"""Makes an engine of the kind under test, serving the file that it is given, else the tiny model."""


@asynccontextmanager
async def started(engine: Engine) -> AsyncIterator[Engine]:
    await engine.start()
    try:
        await until(engine, "ready")
        yield engine
    finally:
        await engine.close()


async def until(engine: Engine, *states: str) -> None:
    async with asyncio.timeout(READY_S):
        while engine.state().state not in states:
            await asyncio.sleep(0.01)


def request_of(dialect: Dialect, say: str = "hi", path: str = "", **more: object) -> ProviderRequest:
    own: dict[str, object] = (
        {"input": say, "max_output_tokens": 4}
        if dialect == "responses"
        else {"messages": [{"role": "user", "content": say}], "max_tokens": 4}
    )
    body = json.dumps({"model": "tiny", "temperature": 0} | own | more).encode()
    return ProviderRequest(dialect, path or PATHS[dialect], (), body, bool(more.get("stream")))


async def said(engine: Engine, request: ProviderRequest) -> tuple[int, bytes]:
    response = await engine.send(request)
    try:
        return response.status, b"".join([chunk async for chunk in response.body])
    finally:
        await response.close()
