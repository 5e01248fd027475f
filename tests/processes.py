"""Which processes live: read from /proc, or from `ps` where there is none."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    words: str
    """Its command line."""


def processes() -> Iterator[Process]:
    """Every living process; one that is dead and not yet waited for is left out."""
    if not (PROC / "self" / "stat").exists():
        yield from _by_ps()
        return
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                yield Process(int(folder.name), int(parent), words)


def is_running(pid: int) -> bool:
    return any(one.pid == pid for one in processes())


def children_of(pid: int) -> list[int]:
    """The living processes that `pid` started itself."""
    return [one.pid for one in processes() if one.parent == pid]


def descendants_of(pid: int) -> set[int]:
    """The living processes that `pid` started, and those that they started."""
    there = list(processes())
    found: set[int] = set()
    layer = {pid}
    while layer := {one.pid for one in there if one.parent in layer} - found:
        found |= layer
    return found


def with_words(*words: str) -> list[int]:
    """The living processes whose command line holds all of `words`."""
    return [one.pid for one in processes() if all(word in one.words for word in words)]


def _by_ps() -> Iterator[Process]:
    told = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True)
    for row in told.stdout.splitlines():
        pid, parent, stat, words = [*row.split(None, 3), ""][:4]
        if not stat.startswith("Z"):
            yield Process(int(pid), int(parent), words)
