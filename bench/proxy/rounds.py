"""Interleaved rounds over those who take part, and the medians of what they took."""

import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import cpu_s, sync_ms
from bench.proxy.contenders import Contender
from bench.proxy.load import SIZES, body, post, starting_number
from bench.proxy.streams import stream

Key = tuple[str, str, int, str]
"""(kind, size, connections, who): `buffered` by wrk, `latency` and `streamed` by the client in Python."""


@dataclass
class Taken:
    """What each round took. Milliseconds, requests a second, CPU seconds per 1,000 requests; `added_*` is
    beside a direct call in the same round."""

    rounds: dict[Key, list[dict[str, float]]] = field(default_factory=dict)
    sync_ms: dict[str, list[float]] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)

    def add(self, key: Key, values: dict[str, float]) -> None:
        direct = self.rounds.get((*key[:3], "direct"))
        if direct and key[3] != "direct":
            for name in [name for name in values if name.endswith("_ms")]:
                values[f"added_{name}"] = values[name] - direct[-1][name]
        self.rounds.setdefault(key, []).append(values)

    def median(self, kind: str, size: str, connections: int, who: str, what: str) -> float:
        return statistics.median(each[what] for each in self.rounds[(kind, size, connections, who)])

    def best(
        self, kind: str, size: str, connections: int, ratio: Callable[[Callable[[str, str], float]], float]
    ) -> float:
        """The smallest of a ratio that is taken in each round; it is given `(who, what) -> value`."""
        count = len(self.rounds[(kind, size, connections, "direct")])
        return min(
            ratio(lambda who, what, at=at: self.rounds[(kind, size, connections, who)][at][what])
            for at in range(count)
        )


def run_rounds(
    who: Sequence[Contender],
    folder: Path,
    *,
    count: int,
    sizes: Iterable[str] = tuple(SIZES),
    connections: Sequence[int] = (1, 16, 64),
    seconds: float = 1.0,
    streamed: bool = True,
    disks: dict[str, Path] | None = None,
) -> Taken:
    """`disks` names the folders whose pace is measured in each round."""
    taken = Taken()
    for each in who:  # what is only done once is done now
        post(each.buffered, each.headers, body(1024, "b", stream=False), folder, connections=4, seconds=1)
    for number in range(count):
        for name, place in (disks or {}).items():
            taken.sync_ms.setdefault(name, []).append(sync_ms(place))
        for size in sizes:
            for many in connections:
                _progress(f"round {number + 1} of {count}: {size}, {many} at once")
                for each in who:
                    _buffered(taken, each, folder, size, many, seconds)
                for each in who if many == 1 else ():
                    _one_by_one(taken, each, size)
                for each in who if streamed else ():
                    if each.streamed:
                        _streamed(taken, each, each.streamed, size, many)
    _progress("")
    return taken


def _progress(words: str) -> None:
    """Where a person looks on."""
    if sys.stdout.isatty():
        print(f"\r{words:50}\r", end="", flush=True)


def _buffered(
    taken: Taken, who: Contender, folder: Path, size: str, connections: int, seconds: float
) -> None:
    parts = body(SIZES[size], "b", stream=False)
    before = cpu_s(who.pid) if who.pid else 0.0
    got = post(who.buffered, who.headers, parts, folder, connections=connections, seconds=seconds)
    spent = cpu_s(who.pid) - before if who.pid else 0.0
    taken.requests[who.name] = taken.requests.get(who.name, 0) + got.requests
    values = {
        "rps": got.requests / got.seconds,
        "p50_ms": got.p50_ms,
        "p99_ms": got.p99_ms,
        "cpu_s": spent / got.requests * 1000,
    }
    taken.add(("buffered", size, connections, who.name), values)


def _one_by_one(taken: Taken, who: Contender, size: str) -> None:
    """One request after another from a client that takes its time as clients do: what one of them waits."""
    parts = body(SIZES[size], "b", stream=False)
    got = stream(who.buffered, who.headers, parts, streams=1, each=100, start=starting_number(), marked=False)
    taken.add(("latency", size, 1, who.name), {"p50_ms": got.ttft_p50, "p99_ms": got.ttft_p99})


def _streamed(taken: Taken, who: Contender, url: str, size: str, connections: int) -> None:
    parts = body(SIZES[size], "s", stream=True)
    each = {1: 4, 16: 8}.get(connections, 2)  # what recording adds to 16 is told in tenths of a millisecond
    before = cpu_s(who.pid) if who.pid else 0.0
    got = stream(url, who.headers, parts, streams=connections, each=each, start=starting_number())
    spent = cpu_s(who.pid) - before if who.pid else 0.0
    taken.requests[who.name] = taken.requests.get(who.name, 0) + got.requests
    values = {
        "rps": got.requests / got.seconds,
        "p50_ms": got.ttft_p50,
        "p99_ms": got.ttft_p99,
        "late_p50_ms": got.late_p50,
        "late_p99_ms": got.late_p99,
        "cpu_s": spent / got.requests * 1000,
    }
    taken.add(("streamed", size, connections, who.name), values)
