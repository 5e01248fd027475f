"""`reef steps`: what growing did."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, say
from reef_cli.render import steps as render
from reef_cli.session import command, pick_scenario

app = command()
SCREENFUL = 20
MOST = 10_000
"""How many the daemon hands out at once."""


@app.command()
def steps(
    scenario: Scenario = None,
    limit: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="How many at most.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """The steps of a scenario. --json prints those of all scenarios when none is named."""
    with Client() as client:
        name = scenario if as_json else pick_scenario(client, scenario)
        wanted = min(limit or (MOST if as_json else SCREENFUL), MOST)
        rows = client.steps(name, limit=min(wanted + 1, MOST))["steps"]
    if limit is None and len(rows) >= min(wanted + 1, MOST):
        say(
            f"only the latest {wanted} steps; more with -n"
            if wanted < MOST
            else f"only the latest {MOST} steps"
        )
    rows = rows[:wanted]
    emit(rows, render.steps, as_json=as_json)
