"""`reef watch`: the daemon's life as plain lines, for pipes and CI."""

import json
from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import out, say
from reef_cli.render.events import event as line
from reef_cli.session import command

app = command()


@app.command()
def watch(
    scenario: Scenario = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="EVENT", help="End at the first such event: release, step, ..."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print what happens, as it happens: one line (or with --json one object) an event."""
    with Client() as client:
        for event in client.events(scenario):
            if event.name == "hello":
                say(f"watching {client.url}; ctrl+c ends")
                continue
            if as_json:
                out(json.dumps({"event": event.name, "id": event.id} | event.data))
            elif told := line(event.name, event.data):
                out(told)
            if event.name == until:
                return
