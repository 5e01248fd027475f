"""A long history of releases: publishing one more, listing, comparing."""

import asyncio
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import insert, update

from bench.report import Check
from bench.store.records import open_book
from daemon.releases import catalog
from daemon.releases.git import GitReleases
from daemon.releases.history import History, Publication
from daemon.store.schema import releases, scenarios
from daemon.store.store import Store
from reef.ids import now, rfc3339

_RELEASES, _LISTED, _FILES = 10_000, 1000, 50
_TIMES = 9


def measure(folder: Path, pace: float) -> tuple[str, dict[str, float], list[Check]]:
    """`pace`: S of the disk, in milliseconds."""
    place = folder / "releases"
    place.mkdir()
    store, _ = open_book(place, ["s", "thousand"])
    history = History(store, GitReleases(place / "releases.git"))
    commits = _long_history(place / "releases.git")
    _rows(store, "s", commits)
    _rows(store, "thousand", commits[:_LISTED])
    published = statistics.median(asyncio.run(_publish(history, commits[-1][0])))
    listed = _median_ms(lambda: store.read_now(lambda c: catalog.listing(c, "thousand")))
    compared = _median_ms(lambda: history.git.diff(commits[-2][0], commits[-1][0]))
    store.close()
    values = {
        "releases": float(_RELEASES),
        "publish ms": published,
        "list 1,000 ms": listed,
        "diff ms": compared,
    }
    return (
        "a history of releases",
        values,
        [
            Check(
                12, "publish a release of 50 files into 10,000", published, 25 * pace + 10, "ms (25 S + 10)"
            ),
            Check(12, "list 1,000 releases", listed, 15, "ms"),
            Check(12, "compare two releases", compared, 15, "ms"),
        ],
    )


def _tree(changed: int, text: str) -> dict[str, bytes]:
    files = {f"rules/file-{number:02}.md": f"Rule {number}.\n".encode() * 10 for number in range(_FILES)}
    return files | {f"rules/file-{changed % _FILES:02}.md": text.encode()}


def _long_history(path: Path) -> list[tuple[str, str]]:
    """(commit, tree) of each release of the scenario `s`, oldest first; each changes one file."""
    lines: list[bytes] = []
    for number in range(_RELEASES):
        lines.append(
            b"commit refs/heads/s\ncommitter Reef <reef@localhost> %d +0000\ndata 2\n%02d\n"
            % (1_700_000_000 + number, number % 100)
        )
        for name, data in _tree(number, f"Release {number}.\n").items() if number == 0 else ():
            lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
        text = b"Release %d.\n" % number
        lines.append(
            b"M 100644 inline rules/file-%02d.md\ndata %d\n%s\n" % (number % _FILES, len(text), text)
        )
    git = ["git", f"--git-dir={path}"]
    subprocess.run([*git, "fast-import", "--quiet"], input=b"".join(lines), check=True)
    told = subprocess.run(
        [*git, "log", "--reverse", "--format=%H %T", "refs/heads/s"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    pairs = (line.split() for line in told.splitlines())
    return [(commit, tree) for commit, tree in pairs]


def _rows(store: Store, scenario: str, commits: list[tuple[str, str]]) -> None:
    rows = [
        {
            "scenario": scenario,
            "step": step,
            "operation": "training" if step else "creation",
            "release_id": commit,
            "parent_release_id": commits[step - 1][0] if step else None,
            "content_id": tree,
            "recorded_at": f"2026-01-01T{step // 3600 % 24:02}:{step // 60 % 60:02}:{step % 60:02}.000Z",
            "recipe": "record",
            "published": True,
            "message": f"release {step}",
        }
        for step, (commit, tree) in enumerate(commits)
    ]
    store.writer.submit(lambda connection: connection.execute(insert(releases), rows)).result()
    moved = {"head_release_id": commits[-1][0], "head_content_id": commits[-1][1], "next_step": len(commits)}
    change = update(scenarios).where(scenarios.c.scenario == scenario).values(**moved)
    store.writer.submit(lambda connection: connection.execute(change)).result()


async def _publish(history: History, head: str) -> list[float]:
    """Milliseconds that each of some releases took, its files included."""
    times = []
    for number in range(_TIMES):
        began = time.perf_counter()
        content = await asyncio.to_thread(
            history.git.write_tree, _tree(number, f"New {rfc3339(now())} {number}\n")
        )
        made = await history.publish(Publication("s", "training", content, head, "Better", "record"))
        times.append((time.perf_counter() - began) * 1000)
        head = made.release_id
    return times


def _median_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000
