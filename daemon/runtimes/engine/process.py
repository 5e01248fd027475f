"""Keeps one child alive: starts it, waits until it serves, restarts it with back-off when it dies."""

import asyncio
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from daemon.runtimes.engine.child import KEY_VARIABLE
from daemon.runtimes.engine.last_words import LONGEST, why_not_loaded
from daemon.runtimes.environment import without_keys

log = logging.getLogger("reef.engine")

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
STEADY_AFTER_S = 60.0
"""A child that served this long starts the back-off anew. To load does not count: vLLM may do it for minutes
and then fail."""
STOP_S = 5.0
LOG_TAIL_BYTES = 64_000
"""vLLM ends with the stack traces of three processes."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What one child serves, and `engine` (see `kinds.KINDS`) with what. `context` is in tokens, shared by
    `parallel` requests at once; None: as much as the engine gives. `args` are further words for an engine
    that is a program. `withheld` are variables with upstreams' keys, which a child has no use for."""

    name: str
    model_path: Path
    context: int | None = 8192
    parallel: int = 4
    threads: int | None = None
    engine: str = "xllamacpp"
    args: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()

    def line(self) -> bytes:
        config = {
            "engine": self.engine,
            "name": self.name,
            "model_path": str(self.model_path),
            "context": self.context,
            "parallel": self.parallel,
            "threads": self.threads or max(1, len(os.sched_getaffinity(0))),
            "args": self.args,
        }
        return orjson.dumps(config) + b"\n"


class EngineProcess:
    """`on_ready(url, key)` is called each time a child serves, `on_down(why)` each time one is gone."""

    def __init__(
        self,
        config: EngineConfig,
        log_file: Path,
        *,
        on_ready: Callable[[str, str], None],
        on_down: Callable[[str], None],
        command: tuple[str, ...] = (sys.executable, "-m", "daemon.runtimes.engine.child"),
    ) -> None:
        self.config = config
        self.log_file = log_file
        self._on_ready = on_ready
        self._on_down = on_down
        self._command = command
        self._child: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ready_at: float | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def start(self) -> None:
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"engine {self.config.name}")

    async def stop(self) -> None:
        """Close the child's stdin, which ends it; kill it if that takes too long. It can be started again."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)  # who waits here may be cancelled too
            self._keeper = None
        child = self._child
        if child is None or child.returncode is not None:
            return
        assert child.stdin is not None
        child.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), STOP_S)
        _kill_group(child.pid)
        await child.wait()

    async def _keep(self) -> None:
        delay = FIRST_DELAY_S
        while True:
            self._ready_at = None
            why = await self._live()
            log.warning("engine %s: %s", self.config.name, why)
            self._on_down(why)
            if self._ready_at is not None and time.monotonic() - self._ready_at > STEADY_AFTER_S:
                delay = FIRST_DELAY_S
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def _live(self) -> str:
        """One life of a child; returns how it ended."""
        key = secrets.token_urlsafe(32)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as sink:
            start = sink.tell()
            child = self._child = await self._spawn(key, sink)
            assert child.stdin is not None
            assert child.stdout is not None
            with suppress(BrokenPipeError, ConnectionResetError):  # it ended at once; perhaps it said why
                child.stdin.write(self.config.line())
                await child.stdin.drain()
            answer = _object(await child.stdout.readline())
            if "url" in answer:
                log.info("engine %s serves at %s after %s s", self.config.name, answer["url"], answer["boot"])
                self._ready_at = time.monotonic()
                self._on_ready(answer["url"], key)
            code = await child.wait()
            _kill_group(child.pid)  # what it started itself
        said = self._said(start)
        if problem := answer.get("error"):
            why = why_not_loaded(said)
            told = "" if why in ("", problem) else f" ({why})"
            return f"it could not load {self.config.model_path}: {problem}{told}"
        if code < 0:  # nobody asked the engine, so its log has nothing to say about it
            return f"it was ended by {_signal(-code)}"
        # What its log says before the last line may be about requests.
        last = (said[-1][:LONGEST] if said else "") if "url" in answer else why_not_loaded(said)
        return f"it ended with status {code}" + (f" ({last})" if last else "")

    async def _spawn(self, key: str, sink: IO[bytes]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            env=without_keys(os.environ, self.config.withheld) | {KEY_VARIABLE: key},
            start_new_session=True,  # Ctrl-C in the terminal is for the daemon, which ends its children
        )

    def _said(self, start: int) -> list[str]:
        """The last lines of what the child's log says since byte `start`."""
        with suppress(OSError), self.log_file.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(start, file.tell() - LOG_TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
            return [line for line in lines if line]
        return []


def _kill_group(pid: int) -> None:
    """End a child, which leads a group, and all that is in the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _object(line: bytes) -> dict[str, str]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
