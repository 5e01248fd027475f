"""`reef tui`: the terminal interface."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reef.errors import DaemonUnreachable, ReefError
from reef_cli.render.text import count
from reef_cli.session import command

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

app = command()


@app.command()
def tui(
    url: Annotated[
        str | None, typer.Option("--url", help="The daemon's address; else the one of this home.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Replay a recording of `reef demo`; needs no daemon.")
    ] = False,
) -> None:
    """See the loop turn, and steer it."""
    if not sys.stdin.isatty() or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        raise ReefError(
            "reef tui needs a terminal that can move its cursor",
            hint="use `reef watch` in pipes and on dumb terminals",
        )
    from reef_cli.tui.app import ReefApp

    if demo:
        from reef_cli.tui.recording import Recording
        from reef_cli.tui.replay import replaying

        connect, now = replaying(Recording.shipped(), 1.0)
        ReefApp(connect, now=now).run()
        return
    running = ReefApp(lambda: _connect(url))
    running.run()
    if running.unsent:
        lines = "\n".join(f"  {held.as_command()}" for held in running.unsent)
        raise DaemonUnreachable(
            f"{count(len(running.unsent), 'report')} may not have arrived:\n{lines}",
            hint="run these once the daemon is up: what did arrive is not counted twice",
        )


def _connect(url: str | None) -> "AsyncClient":
    """Imported when it is first needed, which is after the first paint."""
    from reef.async_client import AsyncClient

    return AsyncClient(url)
