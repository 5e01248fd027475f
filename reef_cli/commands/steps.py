"""`reef steps`: what growing did."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render import steps as render
from reef_cli.session import command, pick_scenario

app = command()
SCREENFUL = 20


@app.command()
def steps(
    scenario: Scenario = None,
    limit: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="How many at most.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """The steps of a scenario. --json prints those of all scenarios when none is named."""
    with Client() as client:
        if as_json:
            rows = client.steps(scenario)["steps"][:limit]
        else:
            rows = client.steps(pick_scenario(client, scenario))["steps"][: limit or SCREENFUL]
    emit(rows, render.steps, as_json=as_json)
