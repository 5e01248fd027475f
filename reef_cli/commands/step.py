"""`reef step N`: one step in full."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render import steps as render
from reef_cli.session import command, pick_scenario

app = command()


@app.command()
def step(
    number: Annotated[int, typer.Argument(metavar="N", min=0)],
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """One step: its batch, what was proposed, how it did, what was decided, what it cost."""
    with Client() as client:
        data = client.step(pick_scenario(client, scenario), number)
    emit(data, render.step, as_json=as_json)
