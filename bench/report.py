"""What a benchmark is asked for, and what it hands back."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Options:
    """`guard`: the small proxy run for CI. `records`, `requests`: how many the store and the soak take."""

    guard: bool = False
    records: int = 100_000
    requests: int = 20_000
    rounds: int = 3


@dataclass(frozen=True)
class Check:
    """A target and whether it is met. `number` is its row in the list (docs/reference/benchmarks.md)."""

    number: int
    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        """For a person: the target, what was measured, what is asked for."""
        sign = ">=" if self.at_least else "<="
        told = f"{_short(self.value)} {sign} {_short(self.limit)} {self.unit}".rstrip()
        return f"{self.number:>2}  {'met   ' if self.met else 'MISSED'}  {self.what}: {told}"


@dataclass(frozen=True)
class Report:
    """`text` for a person, `data` for the JSON file, `missed` a line for each target that was not met."""

    text: str
    data: Any
    missed: list[str] = field(default_factory=list)


def judged(text: str, data: dict[str, Any], checks: list[Check]) -> Report:
    """A report that ends with its targets."""
    lines = "\n".join(check.line() for check in checks)
    kept = data | {"targets": [vars(check) | {"met": check.met} for check in checks]}
    missed = [f"target {check.line().strip()}" for check in checks if not check.met]
    return Report(f"{text}\n\n{lines}", kept, missed)


def keep(name: str, data: Any, folder: Path = RESULTS) -> Path:
    """Write a report's data to `NAME.json` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
    return file


def columns(head: list[str], rows: list[list[object]]) -> str:
    """A table: the first column to the left, numbers to the right."""
    cells = [
        head,
        *[[_short(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in rows],
    ]
    wide = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in cells
    )


def _short(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
