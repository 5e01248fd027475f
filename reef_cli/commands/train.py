"""`reef train`: ask for a change in plain words."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, hint
from reef_cli.session import command, pick_scenario

app = command()


@app.command()
def train(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to change, as you would say it.")],
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask for a change in plain words: it becomes the next step, and passes the gate like any other."""
    if not text.strip():
        raise UsageError("the instruction is empty", hint='for example: reef train "Use metric units."')
    with Client() as client:
        name = pick_scenario(client, scenario)
        answer = client.train(text, scenario=name)
    emit(
        answer,
        lambda data: f"{name}: instruction {data['agent_record_id']} is the next step; see `reef steps`",
        as_json=as_json,
    )
    hint(answer)
