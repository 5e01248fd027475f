"""Small pieces of text: tables, short ids, times, amounts."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

SHORT = 10
UNBOUNDED = 1_000_000
"""Columns of what is no terminal: a pipe or a file loses nothing."""


def width() -> int:
    """Columns of the terminal, or of `COLUMNS`; `UNBOUNDED` where stdout is neither."""
    if not os.environ.get("COLUMNS") and not (sys.stdout is not None and sys.stdout.isatty()):
        return UNBOUNDED
    return shutil.get_terminal_size((80, 24)).columns


def short(identifier: str | None) -> str:
    """The first digits of a release or content id."""
    return identifier[:SHORT] if identifier else "-"


def when(moment: str | None) -> str:
    """`2026-01-31 12:00Z` of an RFC 3339 time."""
    return f"{moment[:10]} {moment[11:16]}Z" if moment else "-"


def count(number: int, thing: str) -> str:
    """`1 report`, `3 reports`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def number(value: float | None) -> str:
    """A score or an amount without trailing zeros; `-` for None."""
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def size(amount: int) -> str:
    """Bytes as people write them."""
    value = float(amount)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def clip(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` columns."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: max(limit - 3, 0)] + "..."


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]], *, columns: int | None = None) -> str:
    """Rows under headers, aligned; the last column gives way where the line would be too long."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = _widths(headers, cells)
    room = (columns or width()) - sum(widths[:-1]) - 2 * (len(headers) - 1)
    lines = []
    for row in [list(headers), *cells]:
        start = "".join(f"{cell:<{widths[i]}}  " for i, cell in enumerate(row[:-1]))
        lines.append((start + clip(row[-1], max(room, 12))).rstrip())
    return "\n".join(lines)


def table_width(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Columns that a table takes where nothing gives way."""
    return sum(_widths(headers, [[str(cell) for cell in row] for row in rows])) + 2 * (len(headers) - 1)


def _widths(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line[i]) for line in [headers, *cells]) for i in range(len(headers))]


def fields(pairs: Sequence[tuple[str, str]]) -> str:
    """`name   value` lines, aligned; pairs with an empty value are left out."""
    given = [(name, value) for name, value in pairs if value]
    longest = max((len(name) for name, _ in given), default=0)
    return "\n".join(f"{name:<{longest}}  {value}" for name, value in given)


def indent(text: str, by: str = "    ") -> str:
    """Every line of `text` moved right."""
    return "\n".join(f"{by}{line}".rstrip() for line in text.splitlines())
