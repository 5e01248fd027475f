"""What the store takes and how fast it answers: many records, a long session, a long history of releases."""

import tempfile
from pathlib import Path
from typing import Any

from bench.processes import sync_ms
from bench.report import Check, Options, Report, columns, judged
from bench.store import records, releases, session


def run(options: Options) -> Report:
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[1]) as name:
        folder = Path(name)
        pace = sync_ms(folder)
        told: dict[str, dict[str, float]] = {}
        found: list[Check] = []
        for part in (
            lambda: records.measure(folder, options.records),
            lambda: session.measure(folder),
            lambda: releases.measure(folder, pace),
        ):
            what, values, checks = part()
            told[what] = values
            found += checks
    rows: list[list[object]] = []
    for what, values in told.items():
        rows.append([what, ""])
        rows += [[f"  {name}", value] for name, value in values.items()]
    data: dict[str, Any] = {"sync_ms": pace, **told}
    return judged(
        f"{columns(['', ''], rows)}\n\nS (append and fdatasync of 4 KB): {pace:.3f} ms", data, found
    )
