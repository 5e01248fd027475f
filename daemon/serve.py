"""Start the daemon: arguments, settings, home, lock, token; then `daemon.app` serves.

Owns: the order in which a daemon comes up and goes down, `daemon.json`, and what is told to whoever
started it. Does not own: what it does while it runs (`daemon.app`).
"""

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pydantic import BaseModel

import reef
from daemon.scrub import masked
from daemon.settings.home import Home
from daemon.settings.load import Loaded, find_config, load_settings
from daemon.settings.lock import hold
from daemon.settings.overrides import Flags
from daemon.settings.token import resolve_token
from reef._plain import exit_code
from reef.errors import ReefError
from reef.home import DaemonInfo
from reef.ids import new_receipt, now, rfc3339


@dataclass(frozen=True, slots=True)
class Start:
    """What a daemon is started with. `token` is None where no authentication is asked for.

    `boot` names this start (event ids carry it). Call `ready` once, with the address that answers, as soon
    as requests are accepted: `daemon.json` is written then, and whoever waits for the start is told.
    """

    loaded: Loaded
    home: Home
    token: str | None = field(repr=False)
    boot: str
    started_at: str
    ready: Callable[[str], None]


class App(Protocol):
    """What `daemon.app` provides."""

    def run(self, start: Start) -> None:
        """Serve until SIGTERM or SIGINT, then finish what is in flight and return.

        Raises:
            ReefError: it cannot start (a port in use, a store that does not open, no runtime).
        """

    def check(self, loaded: Loaded) -> Sequence[str]:
        """Check what the settings name: task files, adapters, gate policies, keys. Raises `ConfigError`;
        returns what is to be warned of."""

    def recipe_options(self, use: str) -> type[BaseModel]:
        """The model of the options of the recipe that `use` names. Raises `ReefError` when there is none."""


def serve(words: Sequence[str]) -> int:
    """`serve [-c FILE] [flags] [--section.key VALUE ...]`: the daemon in the foreground."""
    arguments, rest = _parser("serve").parse_known_args(words)
    line = _open_line(arguments.ready_fd)
    try:
        _run(arguments, rest, line)
    except ReefError as error:
        told = {"message": masked(error.message), "hint": masked(error.hint)}
        line({"error": told, "exit": exit_code(error), "type": error.type})
        raise
    return 0


def check_config(words: Sequence[str]) -> int:
    """`check-config [-c FILE] [--section.key VALUE ...]`: read the configuration and say what it is."""
    arguments, rest = _parser("check-config").parse_known_args(words)
    loaded, warnings = _load(arguments, rest, Home.find(), cast(App, import_module("daemon.app")))
    for line in warnings:
        print(f"warning: {line}", file=sys.stderr)
    source = loaded.settings.source
    print(f"{source or 'no configuration file; the defaults'}: ok")
    return 0


def _run(arguments: argparse.Namespace, rest: Sequence[str], line: "Line") -> None:
    app = cast(App, import_module("daemon.app"))
    home = Home.find()
    loaded, _ = _load(arguments, rest, home, app)
    home.create()
    with hold(home):
        home.forget_daemon()  # of a daemon that was killed
        token = resolve_token(home, loaded.settings)
        boot, started_at = new_receipt(), rfc3339(now())

        def ready(url: str) -> None:
            home.write_daemon(DaemonInfo(os.getpid(), url, reef.__version__, started_at, boot))
            line({"url": url})

        if arguments.life_fd is not None:
            _stop_with(arguments.life_fd)
        try:
            app.run(Start(loaded, home, token, boot, started_at, ready))
        finally:
            home.forget_daemon()


def _load(
    arguments: argparse.Namespace, rest: Sequence[str], home: Home, app: App
) -> tuple[Loaded, Sequence[str]]:
    """The settings, and what is to be warned of."""
    flags = Flags(
        port=arguments.port,
        upstream=arguments.upstream,
        api=tuple(arguments.api),
        model=arguments.model,
        upstream_key_env=arguments.upstream_key_env,
        no_auth=arguments.no_auth,
        engine=arguments.engine,
    )
    file = find_config(arguments.config, home)
    loaded = load_settings(file, flags=flags, words=rest, options_of=app.recipe_options)
    return loaded, app.check(loaded)


def _parser(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m daemon {verb}", allow_abbrev=False)
    parser.add_argument("-c", dest="config", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--upstream")
    parser.add_argument("--api", action="append", default=[])
    parser.add_argument("--model")
    parser.add_argument("--upstream-key-env")
    parser.add_argument("--no-auth", action="store_true")
    parser.add_argument("--engine")
    parser.add_argument(
        "--life-fd", type=int, help="a pipe's reading end: the daemon stops when its writing end is closed"
    )
    parser.add_argument(
        "--ready-fd", type=int, help="a pipe to write one JSON line to: {url} or {error, exit}"
    )
    return parser


def _stop_with(descriptor: int) -> None:
    """Stop, as on SIGTERM, once nobody holds the other end of this pipe: whoever started us is gone."""
    os.set_inheritable(descriptor, False)

    def watch() -> None:
        os.read(descriptor, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="life", daemon=True).start()


Line = Callable[[dict[str, object]], None]


def _open_line(descriptor: int | None) -> Line:
    """How to tell the starter, once: through the pipe it gave, else on stderr when it serves."""
    if descriptor is None:

        def say(message: dict[str, object]) -> None:
            if "url" in message:
                print(f"reef serves at {message['url']}", file=sys.stderr, flush=True)

        return say
    os.set_inheritable(descriptor, False)  # no child of ours may keep it open
    pipe = os.fdopen(descriptor, "w", encoding="utf-8")

    def write(message: dict[str, object]) -> None:
        if not pipe.closed:
            with pipe:
                pipe.write(json.dumps(message) + "\n")

    return write
