"""What the kernel says of running processes: CPU seconds, memory, a disk's pace."""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from family(int(child))


def cpu_s(pid: int) -> float:
    """User and system seconds of a process and all below it, so far."""
    total = 0
    for member in family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def rss_mb(pid: int) -> float:
    """Resident memory of a process and all below it, in megabytes."""
    pages = sum(int(Path(f"/proc/{member}/statm").read_text().split()[1]) for member in family(pid))
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def sync_ms(folder: Path, count: int = 100) -> float:
    """S: the median of appending 4 KB to a file there and making it durable, in milliseconds."""
    block = os.urandom(4096)
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            began = time.perf_counter()
            os.write(file.fileno(), block)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000
