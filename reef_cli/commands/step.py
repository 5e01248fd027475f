"""`reef step N`: one step in full."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, say
from reef_cli.render import steps as render
from reef_cli.session import command, pick_scenario

app = command()


@app.command()
def step(
    number: Annotated[int, typer.Argument(metavar="N", min=0)],
    scenario: Scenario = None,
    run: Annotated[bool, typer.Option("--run", help="Let it run: it waits for money, or failed.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End it; nothing is published.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """One step: its batch, what was proposed, how it did, what was decided, what it cost."""
    if run and cancel:
        raise UsageError("--run and --cancel exclude each other", hint="choose one")
    with Client() as client:
        name = pick_scenario(client, scenario)
        if run:
            client.run_step(name, number)
            say(f"step {number} of {name} runs")
        if cancel:
            client.cancel_step(name, number)
            say(f"step {number} of {name} ends")
        data = client.step(name, number)
    emit(data, render.step, as_json=as_json)
