"""Start the daemon in the background and stop it.

The daemon is a process of its own (`python -m daemon serve`), in its own session, so that it outlives the
terminal. It tells through a pipe when it serves or why it cannot; when it dies without a word, its last log
lines do.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import ConfigError, Conflict, NotFound, ReefError, TimedOut
from reef.home import DaemonInfo, is_running, lock_holder, make_home, read_daemon, unwritable

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
QUIET_S = 1.0
LOG_LINES = 15
_KINDS: dict[int, type[ReefError]] = {2: ConfigError, 4: NotFound}
"""What a daemon's exit code says of the error that it told."""

DAEMON = (sys.executable, "-P", "-m", "daemon")
"""`-P`: a folder named `daemon` where the user happens to work is not taken for ours."""
SERVE = (*DAEMON, "serve")


@dataclass(frozen=True, slots=True)
class Started:
    """A daemon that serves."""

    pid: int
    url: str


def start(
    home: Path,
    words: Sequence[str],
    *,
    command: Sequence[str] = SERVE,
    life: int | None = None,
    timeout_s: float = START_TIMEOUT_S,
    on_wait: Callable[[], None] = lambda: None,
) -> Started:
    """Start the daemon of `home` and return when it serves. `on_wait` is called once if that takes long.
    `life` is the reading end of a pipe: the daemon stops once its writing end is closed.

    Raises:
        ConfigError: the daemon refused its configuration.
        Conflict: another daemon has the home.
        ReefError: it could not start; the message holds what it said, or its last log lines.
        TimedOut: it did not come up in time, and was ended.
    """
    make_home(home)
    log_file = home / "logs" / "daemon.log"
    log_start = log_file.stat().st_size if log_file.exists() else 0
    tied = [] if life is None else ["--life-fd", str(life)]
    try:
        opened = log_file.open("ab")
    except OSError as error:
        raise unwritable(home, error) from error
    reading, writing = os.pipe()
    try:
        with opened as log:
            child = subprocess.Popen(
                [*command, "--ready-fd", str(writing), *tied, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writing, *([] if life is None else [life])),
                start_new_session=True,
            )
    except OSError as error:
        os.close(reading)
        raise ReefError(f"cannot start the daemon\n{error}", hint=f"see {log_file}") from error
    finally:
        os.close(writing)
    line = _first_line(reading, timeout_s, on_wait)
    if line is None:
        _end(child)
        raise TimedOut(f"the daemon did not come up within {timeout_s:g} s", hint="see `reef logs`")
    if not line:
        raise _died(child, log_file, log_start)
    return _started(child, json.loads(line))


def await_other(home: Path, *, timeout_s: float = START_TIMEOUT_S) -> DaemonInfo | None:
    """The daemon that somebody else is starting in `home`, once it serves; None when it did not come up."""
    deadline = time.monotonic() + timeout_s
    while is_running(home) and time.monotonic() < deadline:
        if (daemon := read_daemon(home)) is not None:
            return daemon
        time.sleep(0.05)
    return None


def check_config(words: Sequence[str]) -> tuple[int, str]:
    """The exit code of reading the configuration with `words` anew, and what is wrong with it."""
    command = [*DAEMON, "check-config", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.rstrip()


def stop(home: Path, *, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
    """Ask the daemon of `home` to end and wait until it has. Returns its pid, None when none runs.

    Raises:
        TimedOut: it is still there.
        ReefError: it belongs to somebody else.
    """
    pid = lock_holder(home)
    if pid is None:
        return None
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return None
    except PermissionError as error:
        raise ReefError(f"process {pid} belongs to another user", hint="stop it as that user") from error
    deadline = time.monotonic() + timeout_s
    while is_running(home):
        if time.monotonic() > deadline:
            raise TimedOut(
                f"the daemon (process {pid}) has not ended after {timeout_s:g} s",
                hint=f"look at `reef logs`; nothing acknowledged is lost by `kill -9 {pid}`",
            )
        time.sleep(0.02)
    return pid


def tail(file: Path, lines: int, *, start: int = 0) -> str:
    """The last `lines` lines of `file`, nothing before byte `start`.

    Raises:
        NotFound: there is no such file.
    """
    try:
        with file.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            at = size
            data = b""
            while at > start and data.count(b"\n") <= lines:
                step = min(8192, at - start)
                at -= step
                log.seek(at)
                data = log.read(step) + data
    except FileNotFoundError as error:
        raise NotFound(f"there is no log at {file}", hint="start the daemon with `reef up`") from error
    return "\n".join(data.decode("utf-8", "replace").splitlines()[-lines:])


def _first_line(descriptor: int, timeout_s: float, on_wait: Callable[[], None]) -> bytes | None:
    """What the child writes before it closes the pipe: empty when it died, None when time ran out."""
    deadline = time.monotonic() + timeout_s
    told, data = False, b""
    with os.fdopen(descriptor, "rb", buffering=0) as pipe:
        while (left := deadline - time.monotonic()) > 0:
            wait_s = left if told else min(QUIET_S, left)
            if not select.select([pipe], [], [], wait_s)[0]:
                if not told:
                    told = True
                    on_wait()
                continue
            chunk = pipe.read(65536)
            data += chunk
            if not chunk or data.endswith(b"\n"):
                return data
    return None


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a daemon that did not come up, politely first."""
    child.terminate()
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _started(child: subprocess.Popen[bytes], message: dict[str, Any]) -> Started:
    if "url" in message:
        child.returncode = 0  # it is meant to outlive us; spare Popen's warning about that
        return Started(child.pid, message["url"])
    child.wait()
    told = message["error"]
    kind = Conflict if message.get("type") == Conflict.type else _KINDS.get(message.get("exit", 1), ReefError)
    raise kind(told["message"], hint=told["hint"])


def _died(child: subprocess.Popen[bytes], log_file: Path, log_start: int) -> ReefError:
    code = child.wait()
    last = tail(log_file, LOG_LINES, start=log_start)
    how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
    return ReefError(f"the daemon ended {how} before it served\n{last}".rstrip(), hint=f"see {log_file}")
