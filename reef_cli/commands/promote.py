"""`reef promote`: serve a candidate that waits for review."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render import releases as render
from reef_cli.session import command, only_waiting, pick_scenario, waiting_candidates

app = command()


@app.command()
def promote(
    rev: Annotated[
        str | None, typer.Argument(metavar="[REV]", help="Default: the only one that waits.")
    ] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Serve a candidate that waits for review."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        data = client.promote(name, rev or only_waiting(waiting_candidates(client, name), "promote"))
    emit(data, render.moved, as_json=as_json)
