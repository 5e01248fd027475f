"""One daemon per home: an exclusive lock that the kernel frees when its holder dies, `kill -9` included."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from daemon.settings.home import Home
from reef.errors import Conflict
from reef.home import read_daemon, unwritable

PATIENCE_S = 1.0
"""A client that asks whether a daemon runs holds the lock (shared) for an instant; outwait it."""


@contextmanager
def hold(home: Home) -> Iterator[None]:
    """Hold `daemon.lock` for as long as the block runs. The home must exist.

    Raises:
        Conflict: another daemon holds it.
        ReefError: the file cannot be written.
    """
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(home.root, error) from error
    try:
        _acquire(descriptor, home)
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())  # for `reef down`
        except OSError as error:
            raise unwritable(home.root, error) from error
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, home: Home) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise _taken(home) from error
            time.sleep(0.02)


def _taken(home: Home) -> Conflict:
    other = read_daemon(home.root)
    who = f" (process {other.pid}, {other.url})" if other else ""
    return Conflict(
        f"a daemon already runs in {home.root}{who}",
        hint="stop it with `reef down`, or use another home: REEF_HOME=DIR reef up",
    )
