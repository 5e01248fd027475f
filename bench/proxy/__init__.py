"""What the daemon costs a request: beside direct calls, nginx in between, and LiteLLM's proxy.

Ratios of one run: rounds are interleaved, and what is told are medians. Recording is on. `--guard` is the
small run that continuous integration can afford.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.processes import rss_mb
from bench.proxy.contenders import Contender, direct, floor, litellm, nginx, reef, require_tools, upstreams
from bench.proxy.rounds import Taken, run_rounds
from bench.proxy.targets import DISK, FORGETFUL, ONE, RAM, checks, guard_checks
from bench.report import Options, Report, columns, judged
from reef.errors import ReefError

_RAM = Path("/dev/shm")


def run(options: Options) -> Report:
    """Raises ReefError when nginx or wrk is missing."""
    require_tools()
    with ExitStack() as stack:
        disk = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path(__file__).parents[1])))
        ram = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_RAM if _RAM.is_dir() else None)))
        ports = stack.enter_context(upstreams(ram / "upstreams"))
        who = [direct(ports), stack.enter_context(nginx(ram / "nginx", ports))]
        who.append(stack.enter_context(floor(ram / "floor", ports)))
        who.append(stack.enter_context(reef(ram / "reef", ports, RAM)))
        if options.guard:
            taken = run_rounds(who, ram, count=2, sizes=("1 KB",), seconds=2.0, streamed=False)
            return judged(_table(taken, who), _data(taken, who, {}), guard_checks(taken))
        who.append(stack.enter_context(reef(disk / "reef", ports, DISK)))
        who.append(stack.enter_context(reef(disk / "one", ports, ONE, "one-by-one")))
        who.append(stack.enter_context(reef(ram / "forgetful", ports, FORGETFUL, "forgetful")))
        skipped = ""
        try:
            who.append(stack.enter_context(litellm(ram / "litellm", ports)))
        except ReefError as error:
            skipped = f"\nskipped: LiteLLM ({error.message})"
        taken = run_rounds(who, ram, count=options.rounds, disks={"disk": disk, "ram": ram})
        rss = {each.name: rss_mb(each.pid) for each in who if each.pid}
        found = checks(taken, {each.name: each for each in who}, rss)
        text = f"{_table(taken, who)}\n\n{_memory(taken, rss)}{skipped}"
        return judged(text, _data(taken, who, rss), found)


def _table(taken: Taken, who: list[Contender]) -> str:
    """Medians: latency added to a direct call's, requests a second, CPU seconds per 1,000 requests."""
    head = ["", "p50", "p99", "added p50", "added p99", "chunk p50", "added", "req/s", "CPU s/1,000"]
    rows: list[list[object]] = []
    for kind, size, many, _ in dict.fromkeys((*key[:3], "") for key in taken.rounds):
        rows.append([f"{kind}, {size}, {many} at once (ms)", *[""] * 8])
        for each in who:
            if (kind, size, many, each.name) not in taken.rounds:
                continue
            have = taken.rounds[(kind, size, many, each.name)][0]
            names = ("p50_ms", "p99_ms", "added_p50_ms", "added_p99_ms", "late_p50_ms", "added_late_p50_ms")
            cells = [
                taken.median(kind, size, many, each.name, name) if name in have else ""
                for name in (*names, "rps", "cpu_s")
            ]
            rows.append([f"  {each.name}", *cells])
    return columns(head, rows)


def _memory(taken: Taken, rss: dict[str, float]) -> str:
    rows: list[list[object]] = [[name, value, taken.requests[name]] for name, value in rss.items()]
    pace = ", ".join(
        f"{name} {sorted(times)[len(times) // 2]:.3f} ms" for name, times in taken.sync_ms.items()
    )
    return f"{columns(['', 'MB', 'after requests'], rows)}\n\nS (append and fdatasync of 4 KB): {pace}"


def _data(taken: Taken, who: list[Contender], rss: dict[str, float]) -> dict[str, Any]:
    return {
        "rounds": [
            {"kind": kind, "size": size, "at_once": many, "who": name, "rounds": values}
            for (kind, size, many, name), values in taken.rounds.items()
        ],
        "sync_ms": taken.sync_ms,
        "rss_mb": rss,
        "requests": taken.requests,
        "start_s": {each.name: each.start_s for each in who if each.start_s is not None},
    }
