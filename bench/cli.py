"""How long a command takes from a cold start, beside an empty Typer app and a daemon that answers."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.measure import rounds, timings
from bench.report import Options, Report
from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import StubProvider

BASELINE = "empty typer app"
ROUNDS = 11
TARGET_S = 0.3
FLOOR_RATIO = 1.5
"""On a machine where this many empty apps take longer than the target, that is the target."""
EMPTY = """
import typer
app = typer.Typer(add_completion=False)
@app.command()
def main() -> None:
    pass
app()
"""


def run(_: Options) -> Report:
    """Time `python -c pass`, the empty app and the commands that people wait for."""
    with StubProvider() as stub, tempfile.TemporaryDirectory() as folder, terminal(Path(folder)) as here:
        (here.folder / "empty.py").write_text(EMPTY, "utf-8")
        here.up("--upstream", stub.url, "--model", "m")
        _, receipt = here.ask("hi")
        commands = {
            "reef --version": ["--version"],
            "reef --help": ["--help"],
            "reef status": ["status"],
            "reef log": ["log"],
            "reef report": ["report", "--score", "1", receipt],
        }
        work: dict[str, Callable[[], object]] = {
            "python -c pass": _quiet(here, sys.executable, "-c", "pass"),
            BASELINE: _quiet(here, sys.executable, "empty.py"),
        }
        work |= {name: _quiet(here, here.reef_path, *words) for name, words in commands.items()}
        rows = rounds(work, count=ROUNDS, baseline=BASELINE)
    floor_s = next(row.best_s for row in rows if row.name == BASELINE)
    target_s = max(TARGET_S, FLOOR_RATIO * floor_s)
    judged = [replace(row, target_s=target_s) if row.name in commands else row for row in rows]
    return timings(judged, BASELINE)


def _quiet(here: Terminal, *command: str) -> Callable[[], object]:
    return partial(
        subprocess.run, command, cwd=here.folder, env=here.environ, capture_output=True, check=True
    )
