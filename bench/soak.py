"""Whether a daemon's memory stays where it is while 20,000 mixed requests go through it.

Dialects, streams, sizes, refusals, streams that break, clients that leave; recorded, all of them.
"""

import asyncio
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.processes import rss_mb
from bench.report import Check, Options, Report, columns, judged
from reef.errors import ReefError
from tests.e2e.running import TOKEN, Daemon
from tests.stub_provider import Asked, Fault, Reply, StubProvider

_AT_ONCE = 24
_WARM = 0.3
"""Until this share of the requests, caches fill."""
_SAMPLES = 100
_GROWTH = 1.05
_STORED_S = 10.0
_PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
_CUT = Fault(after=2)


@dataclass
class _Seen:
    """(requests so far, MB) as they come, and how requests ended."""

    memory: list[tuple[int, float]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)


def run(options: Options) -> Report:
    """Raises ReefError when an answer is not what it has to be."""
    count = options.requests
    with StubProvider(_answer) as stub, tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), "--upstream", stub.url, "--model", "m").start()
        try:
            began = time.perf_counter()
            seen = asyncio.run(_soak(daemon, stub, count))
            seconds = time.perf_counter() - began
            stored = _stored(daemon, count)
        finally:
            daemon.kill()
    warm = [mb for at, mb in seen.memory if at >= count * _WARM]
    fifth = max(len(warm) // 5, 1)
    first, last = statistics.median(warm[:fifth]), statistics.median(warm[-fifth:])
    rows: list[list[object]] = [[what, number] for what, number in sorted(seen.ends.items())]
    rows += [["recorded", stored], ["seconds", seconds]]
    rows += [["MB after the warm-up", first], ["MB at the end", last]]
    data: dict[str, Any] = {
        "ends": seen.ends,
        "recorded": stored,
        "seconds": seconds,
        "memory_mb": seen.memory,
    }
    checks = [
        Check(7, f"memory after {count:,} mixed requests", last / first, _GROWTH, "x that after the warm-up"),
        Check(7, "records lost or twice there", float(abs(count - stored)), 0),
    ]
    return judged(columns(["", ""], rows), data, checks)


def _stored(daemon: Daemon, count: int) -> int:
    """How many records there are, once the last of those whose client left is stored."""
    deadline = time.monotonic() + _STORED_S
    while True:
        scenarios = daemon.get("/reef/status")["scenarios"].values()
        stored = sum(int(row["counts"]["records"]) for row in scenarios)
        if stored >= count or time.monotonic() > deadline:
            return stored
        time.sleep(0.1)


def _answer(asked: Asked) -> str | Reply | Fault:
    """What was asked for in the last message's first word."""
    word = asked.user.partition(" ")[0]
    if word == "refuse":
        return Fault(400, "it is told to")
    if word == "fail":
        return Fault(500, "it is told to")
    if word == "break" and asked.stream:
        return _CUT
    return f"a fine answer to {len(asked.body)} bytes " * 8


async def _soak(daemon: Daemon, stub: StubProvider, count: int) -> _Seen:
    seen = _Seen()
    numbers = iter(range(count))
    assert daemon.process is not None
    pid, step = daemon.process.pid, max(count // _SAMPLES, 1)

    async def work(session: aiohttp.ClientSession, dice: random.Random) -> None:
        for number in numbers:
            if number % step == 0:
                seen.memory.append((number, rss_mb(pid)))
                stub.asked.clear()
            seen.ends[await _one(session, dice, number)] += 1

    headers = {"authorization": f"Bearer {TOKEN}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(daemon.url, headers=headers, connector=connector) as session:
        await asyncio.gather(*(work(session, random.Random(seed)) for seed in range(_AT_ONCE)))
    seen.memory.append((count, rss_mb(pid)))
    return seen


async def _one(session: aiohttp.ClientSession, dice: random.Random, number: int) -> str:
    """One request; returns how it ended."""
    dialect = dice.choice(tuple(_PATHS))
    stream = dice.random() < 0.5
    word = dice.choices(("say", "refuse", "fail", "break", "leave"), (80, 5, 5, 5, 5))[0]
    size = dice.choices((200, 5_000, 50_000, 300_000), (60, 25, 12, 3))[0]
    body = json.dumps(_body(dialect, f"{word} {number} {'abc ' * (size // 4)}", stream, dice.randrange(40)))
    named = {"content-type": "application/json", "x-reef-scenario": f"soak-{dice.randrange(5)}"}
    async with session.post(_PATHS[dialect], data=body.encode(), headers=named) as answer:
        if word == "leave":
            if stream:
                await answer.content.readany()
            answer.close()
            return "left"
        try:
            said = await answer.read()
        except aiohttp.ClientError as error:
            raise ReefError(f"request {number} ({word}) broke: {error}") from error
        expected = {"refuse": 400, "fail": 502}.get(word, 200)
        if answer.status != expected:
            raise ReefError(f"request {number} ({word}) was answered {answer.status}: {said[:300]!r}")
        if word == "say" and b"a fine answer" not in said and not stream:
            raise ReefError(f"request {number} was answered {said[:300]!r}")
    return {"say": "streamed" if stream else "buffered", "break": "broken" if stream else "buffered"}.get(
        word, "refused"
    )


def _body(dialect: str, text: str, stream: bool, turns: int) -> dict[str, Any]:
    said = [
        {"role": ("user", "assistant")[at % 2], "content": f"turn {at} of a conversation. " * 10}
        for at in range(turns // 2 * 2)
    ]
    messages = [*said, {"role": "user", "content": text}]
    key = "input" if dialect == "responses" else "messages"
    return {"model": "m", "stream": stream, key: messages} | (
        {"max_tokens": 100} if dialect == "messages" else {}
    )
