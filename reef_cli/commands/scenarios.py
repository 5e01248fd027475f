"""`reef scenarios [show|create|archive]`."""

from typing import Annotated, Any

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render.text import fields, short, table
from reef_cli.session import command, pick_scenario

app = command("List, show, create and archive scenarios.")

Name = Annotated[str, typer.Argument(metavar="SCENARIO")]


def render_list(rows: list[dict[str, Any]]) -> str:
    """Scenarios as a table."""
    if not rows:
        return "no scenario yet: the first request makes one"
    cells = [
        (
            row["scenario"],
            row.get("recipe") or "-",
            row.get("surface") or "-",
            "archived" if row.get("archived") else short(row.get("release_id")),
        )
        for row in rows
    ]
    return table(("SCENARIO", "RECIPE", "SURFACE", "RELEASE"), cells)


def render_one(data: dict[str, Any]) -> str:
    """The contract of one scenario."""
    wanted = ", ".join(data.get("required_request_types") or [])
    return fields(
        [
            ("scenario", data["scenario"]),
            ("recipe", f"{data.get('recipe')} (uses {data.get('processor')})"),
            ("changes", str(data.get("surface") or "none")),
            ("steps", str(data.get("training_mode") or "-")),
            ("needs", wanted),
        ]
    )


@app.callback(invoke_without_command=True)
def scenarios(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="With those that are archived.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the scenarios."""
    if context.invoked_subcommand is None:
        with Client() as client:
            rows = client.scenarios(archived=everything)["scenarios"]
        emit(rows, render_list, as_json=as_json)


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(metavar="[SCENARIO]")] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """How a scenario learns."""
    with Client() as client:
        data = client.contract(pick_scenario(client, name or scenario))
    emit(data, render_one, as_json=as_json)


@app.command()
def create(
    name: Name,
    release: Annotated[
        str | None, typer.Option("--from", metavar="REV", help="The release to start from.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a scenario before its first request."""
    with Client() as client:
        data = client.create_scenario(name, release_id=release)
    emit(data, lambda row: f"{row['scenario']} is at {short(row['release_id'])}", as_json=as_json)


@app.command()
def archive(name: Name, as_json: JsonFlag = False) -> None:
    """Put a scenario away. Its history stays in the repository."""
    with Client() as client:
        data = client.archive(name)
    emit(data, lambda row: f"{row['scenario']} is archived", as_json=as_json)
