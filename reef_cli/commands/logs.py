"""`reef logs`: the daemon's log."""

import time
from pathlib import Path
from typing import Annotated

import typer

from reef.home import find_home
from reef_cli.lifecycle import tail
from reef_cli.options import JsonFlag, Limit
from reef_cli.output import emit, out
from reef_cli.session import command

app = command()
POLL_S = 0.2


@app.command()
def logs(
    lines: Limit = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as it grows.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """The last lines of the daemon's log."""
    file = find_home() / "logs" / "daemon.log"
    start = file.stat().st_size if file.exists() else 0
    emit(tail(file, lines).splitlines(), "\n".join, as_json=as_json)
    if follow:
        _follow(file, start)


def _follow(file: Path, at: int) -> None:
    """Print what is added to `file` after byte `at` until Ctrl-C; a new file is read from its start."""
    while True:
        if file.exists():
            if file.stat().st_size < at:
                at = 0
            with file.open("rb") as log:
                log.seek(at)
                added = log.read()
            at += len(added)
            out(added.decode("utf-8", "replace"))
        time.sleep(POLL_S)
