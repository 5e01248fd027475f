"""`reef log`: the release history."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, out, say
from reef_cli.render import releases as render
from reef_cli.render.text import width
from reef_cli.session import FEW, command, patch_of, pick_scenario

app = command()


@app.command()
def log(
    scenario: Scenario = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line a release.")] = False,
    limit: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="How many releases at most.")
    ] = None,
    patch: Annotated[bool, typer.Option("-p", help="With the changes of each.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="With the steps that published nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """The releases of a scenario, newest first."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        every = client.releases(name)["releases"]
        rows = _first([row for row in every if render.is_shown(row, everything=everything)], limit)
        waiting = [row for row in rows if row.get("pending")]
        if len(waiting) > FEW and not as_json and not everything:
            say(f"{len(waiting) - FEW} more candidates wait: `reef pending --all` or `reef log --all`")
            rows = [row for row in rows if row not in waiting[FEW:]]
        if patch:
            for row in rows:
                row["patch"] = patch_of(client, name, row)
    if as_json or not patch:
        emit(rows, lambda found: render.log(found, short_form=oneline, columns=width()), as_json=as_json)
        return
    heads = (render.oneline(row, width()) if oneline else render.entry(row) for row in rows)
    out("\n\n".join(f"{head}\n\n{row['patch']}".rstrip() for head, row in zip(heads, rows, strict=True)))


def _first(rows: list[render.Row], limit: int | None) -> list[render.Row]:
    """The first `limit` of them; candidates that wait come on top and do not count."""
    found: list[render.Row] = []
    counted = 0
    for row in rows:
        if counted == limit:
            break
        found.append(row)
        counted += not row.get("pending")
    return found
