"""Composition: opens the rooms, hands them to each other, serves until told to stop.

The only module that knows all the others.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import cache

import uvicorn
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon import memory
from daemon.compose import open_rooms
from daemon.growth.plugins import check_recipes, load_recipe
from daemon.http import events, harness, logs, metrics, records, releases, reports, scenarios, status, steps
from daemon.http.auth import Guard
from daemon.http.errors import HANDLERS
from daemon.http.inference import InferenceApp
from daemon.http.rooms import Rooms
from daemon.journal import Journal
from daemon.runtimes.keys import check_keys
from daemon.serve import Start
from daemon.serving.budgets import warnings
from daemon.settings.load import Loaded
from daemon.settings.model import ReefSection
from reef import __version__
from reef.errors import ConfigError, ReefError

FINISH_S = 3.0
"""How long answers in flight may take to end when the daemon stops; then they are ended."""
GOODBYE_S = 5
"""How long connections may take to close when the daemon stops."""
BACKLOG = 2048

_RESOURCES = (status, reports, records, scenarios, releases, harness, steps, events, logs, metrics)


def create_app(rooms: Rooms, *, token: str | None) -> tuple[ASGIApp, InferenceApp]:
    """The whole HTTP surface over rooms that are open, and the part of it whose answers take long."""
    starlette = Starlette(
        routes=[route for resource in _RESOURCES for route in resource.routes], exception_handlers=HANDLERS
    )
    starlette.router.redirect_slashes = False
    starlette.state.rooms = rooms
    section = rooms.settings.reef
    inference = InferenceApp(
        rooms.exchange,
        max_body=section.max_body_mb * 2**20,
        require_scenario=rooms.settings.scenarios.require_header,
        relay=section.relay,
        drain=section.on_client_gone == "drain",
    )

    # A stream's end is no pace: who waits for several of them has several begin at once again.
    rooms.store.writer.under_way = lambda: inference.under_way() - rooms.book.streams

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        app = inference if scope["type"] == "http" and inference.claims(scope["path"]) else starlette
        await app(scope, receive, send)

    return Guard(dispatch, tokens=[token] if token else [], hosts=section.hosts), inference


def check(loaded: Loaded) -> list[str]:
    """Check what the settings name: task files, adapters, gate policies, keys. Raises `ConfigError`; returns
    what is to be warned of."""
    check_recipes(loaded)
    return [*check_keys(loaded, os.environ), *warnings(loaded.settings)]


def recipe_options(use: str) -> type[BaseModel]:
    """The model of a recipe's own options. Raises `ConfigError` when there is no such recipe."""
    return load_recipe(use).Options


def run(start: Start) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight and return.

    Raises:
        ReefError: it cannot start.
    """
    journal = Journal()
    logging.basicConfig(
        level=logging.INFO,
        handlers=[logging.StreamHandler(sys.stderr), journal],
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("uvicorn.error", "alembic", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(start, journal))


async def _serve(start: Start, journal: Journal) -> None:
    section = start.loaded.settings.reef
    _refuse_open_door(section, start.token)
    with listen(section.host, section.port) as door:
        url = _url(door)
        async with AsyncExitStack() as stack:
            rooms = await open_rooms(stack, start, url, journal)
            app, inference = create_app(rooms, token=start.token)

            def stopping() -> None:
                rooms.events.close()
                asyncio.get_running_loop().call_later(FINISH_S, inference.stop)

            config = uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                headers=[("server", f"reef/{__version__}")],
                timeout_graceful_shutdown=GOODBYE_S,
                proxy_headers=bool(section.trusted_proxies),
                forwarded_allow_ips=list(section.trusted_proxies),
                backlog=BACKLOG,
            )
            memory.collect_less()
            giving_back = asyncio.create_task(memory.give_back(), name="memory")
            stack.callback(giving_back.cancel)
            await _Server(config, lambda: start.ready(url), stopping).serve(sockets=[door])


class _Server(uvicorn.Server):
    """Tells when it serves, and stops on a signal without passing it on once everything is closed."""

    def __init__(
        self, config: uvicorn.Config, on_started: Callable[[], None], on_stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._on_stopping = on_stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self.should_exit = True
        self._on_stopping()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 picks a free one. Raises `ReefError` when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
            door.listen(BACKLOG)
        except OSError as error:
            raise ReefError(
                f"cannot listen on {host}:{port}\n{error.strerror}",
                hint="where another Reef has this port, `reef down` in the folder where it was started; "
                "else choose one with --port, or --port 0 for a free one",
            ) from error
        yield door
    finally:
        door.close()


def _url(door: socket.socket) -> str:
    host, port = door.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104  # named, not bound
    return f"http://{host}:{port}"


def _refuse_open_door(section: ReefSection, token: str | None) -> None:
    if token is None and section.host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError(
            f'[reef] host = "{section.host}" is reachable from other machines, and auth is off',
            hint="turn auth on, or bind to 127.0.0.1",
        )


@cache
def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
