"""The daemon's memory: what the collector need not look at, and what goes back to the system.

A daemon lives for weeks beside an agent. What a burst of large requests took is free afterwards, but the C
library keeps it for itself until it is told not to.
"""

import asyncio
import ctypes
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

EVERY_S = 10.0
_SMALL = 16 * 2**20
"""Bytes: less than this is not worth a call."""
_TIMES = 2
"""Some is still in use the first time."""


def collect_less() -> None:
    """What is there now stays, so collections need not look at it; requests leave few cycles behind."""
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


async def give_back() -> None:
    """Return free memory to the system, again and again, where the C library can do that (glibc's can)."""
    if (trim := _trim()) is None:
        return
    least, due = resident(), 0
    while True:
        await asyncio.sleep(EVERY_S)
        if resident() > least + _SMALL:
            due = _TIMES
        if due:
            due -= 1
            gc.collect()  # what failed may stand in a circle, and with it all that had arrived
            await asyncio.to_thread(trim, 0)
            least = resident()


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim
