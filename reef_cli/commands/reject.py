"""`reef reject`: close a candidate that waits for review."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render.text import short
from reef_cli.session import command, only_waiting, pick_scenario, waiting_candidates

app = command()


@app.command()
def reject(
    rev: Annotated[
        str | None, typer.Argument(metavar="[REV]", help="Default: the only one that waits.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Close a candidate that waits for review; it is never served."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        candidate = rev or only_waiting(waiting_candidates(client, name), "reject")
        data = client.reject(name, candidate, reason=reason)
    emit(data, lambda _: f"{name}: {short(candidate)} is rejected; what was served stays", as_json=as_json)
