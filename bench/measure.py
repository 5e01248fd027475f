"""Interleaved rounds of things that take seconds, and what becomes of them: medians, a table, targets."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.report import Report


@dataclass(frozen=True)
class Row:
    """One thing that was timed: `seconds` is the median, `best_s` the quickest round, `ratio` the median by
    that of the baseline. The target holds for the quickest round: other work on the machine only slows."""

    name: str
    seconds: float
    best_s: float
    ratio: float
    target_s: float | None = None

    @property
    def missed(self) -> bool:
        return self.target_s is not None and self.best_s > self.target_s


def rounds(
    work: Mapping[str, Callable[[], object]],
    *,
    count: int,
    baseline: str,
    targets: Mapping[str, float] | None = None,
) -> list[Row]:
    """Time each in turn, `count` times over after one round that warms up."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(count + 1):
        for name, run in work.items():
            started = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return [
        Row(name, seconds, min(times[name]), seconds / medians[baseline], (targets or {}).get(name))
        for name, seconds in medians.items()
    ]


def table(rows: Sequence[Row], baseline: str) -> str:
    """The rows for a person."""
    wide = max(len(row.name) for row in rows)
    lines = [f"{'':{wide}}  median    best   ratio  target (ratio: to {baseline})"]
    for row in rows:
        target = f"{row.target_s * 1000:.0f} ms" if row.target_s is not None else ""
        lines.append(
            f"{row.name:{wide}}  {row.seconds * 1000:6.0f}  {row.best_s * 1000:6.0f}  {row.ratio:6.2f}"
            f"  {target}{'  MISSED' if row.missed else ''}".rstrip()
        )
    return "\n".join(lines)


def timings(rows: Sequence[Row], baseline: str) -> Report:
    """A report on rows."""
    missed = [f"{row.name}: {row.best_s:.2f} s, at most {row.target_s} s" for row in rows if row.missed]
    return Report(table(rows, baseline), [asdict(row) for row in rows], missed)
