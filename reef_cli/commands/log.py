"""`reef log`: the release history."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, out
from reef_cli.render import releases as render
from reef_cli.render.text import width
from reef_cli.session import command, pick_scenario

app = command()


@app.command()
def log(
    scenario: Scenario = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line a release.")] = False,
    limit: Annotated[int | None, typer.Option("-n", min=1, metavar="N", help="How many at most.")] = None,
    patch: Annotated[bool, typer.Option("-p", help="With the changes of each.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With the steps that published nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """The releases of a scenario, newest first."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        rows = [
            row for row in client.releases(name)["releases"] if render.is_shown(row, everything=everything)
        ][:limit]
        if patch:
            for row in rows:
                row["patch"] = _patch(client, name, row)
    if as_json or not patch:
        emit(rows, lambda found: render.log(found, short_form=oneline, columns=width()), as_json=as_json)
        return
    heads = (render.oneline(row, width()) if oneline else render.entry(row) for row in rows)
    out("\n\n".join(f"{head}\n\n{row['patch']}".rstrip() for head, row in zip(heads, rows, strict=True)))


def _patch(client: Client, scenario: str, row: render.Row) -> str:
    parent, end = row.get("parent_release_id"), render.shown_id(row)
    return client.diff(scenario, parent, end) if parent != end else ""
