"""Buffered requests, by wrk: how many a second, how long each took."""

import json
import random
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from bench.prose import prose
from reef.errors import ReefError

SIZES = {"1 KB": 2**10, "100 KB": 100 * 2**10, "1 MB": 2**20}
_MESSAGE_BYTES = 2000
_LONGEST_S = 30.0
_numbers = count(1, 10**6)


@dataclass(frozen=True)
class Answered:
    """Latencies in milliseconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float


@cache
def body(size: int, model: str, *, stream: bool) -> tuple[bytes, bytes]:
    """A chat request of `size` bytes as an agent sends it: a conversation of messages of 2 KB that are the
    same each time, and a last one that is not; in two parts, with twelve digits to go between them."""
    dice = random.Random(size)

    roles = ("user", "assistant")
    messages = [
        {"role": roles[at % 2], "content": prose(dice, _MESSAGE_BYTES)} for at in range(size // 2100 // 2 * 2)
    ]
    whole = {"model": model, "stream": stream, "messages": [*messages, {"role": "user", "content": "@"}]}
    bare = json.dumps(whole).encode()
    first, _, last = bare.rpartition(b"@")
    missing = size - len(first) - len(last) - 12
    return first + prose(dice, max(missing, 0)).encode(), last


def starting_number() -> int:
    """Where a run begins to count, so that no body is sent twice."""
    return next(_numbers)


def post(
    url: str,
    headers: dict[str, str],
    parts: tuple[bytes, bytes],
    folder: Path,
    *,
    connections: int,
    seconds: float,
) -> Answered:
    """Keep `connections` requests in flight for so long, or longer where none is answered in that time.

    Raises:
        ReefError: one was not answered well.
    """
    files = [folder / "first", folder / "last"]
    for file, part in zip(files, parts, strict=True):
        file.write_bytes(part)
    said = subprocess.run(
        [
            "wrk",
            *("-t", "1", "-c", str(connections), "-d", f"{max(round(seconds), 1)}s", "--timeout", "60s"),
            *("-s", str(Path(__file__).with_name("post.lua")), url, "--", *map(str, files)),
            str(starting_number()),
            *(f"{name}: {value}" for name, value in headers.items()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    line = next((line for line in said.stdout.splitlines() if line.startswith("JSON ")), None)
    if line is None:
        raise ReefError(f"wrk failed: {said.stdout}{said.stderr}", hint="sudo apt-get install wrk")
    told = json.loads(line[5:])
    if not told["requests"] and not told["refused"] and not told["broken"] and seconds < _LONGEST_S:
        return post(url, headers, parts, folder, connections=connections, seconds=seconds * 4)
    if told["refused"] or told["broken"] or not told["requests"]:
        raise ReefError(f"{url} did not answer well under wrk: {line[5:]}", hint="look at its log")
    return Answered(told["requests"], told["seconds"], told["p50_ms"], told["p99_ms"])
