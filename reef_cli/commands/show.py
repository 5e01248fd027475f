"""`reef show`: one release with its changes."""

from typing import Annotated

import typer

from reef.client import Client
from reef.errors import NotFound
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render import releases as render
from reef_cli.session import command, patch_of, pick_scenario

app = command()


@app.command()
def show(
    rev: Annotated[str, typer.Argument(metavar="[REV]")] = "HEAD",
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """One release, or a candidate that waits or lost: what it is, and what it changed."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        identifier = client.harness(name, release_id=rev)["release_id"]
        row = _row(client.releases(name)["releases"], identifier)
        row["patch"] = patch_of(client, name, row)
    emit(row, lambda data: f"{render.entry(data)}\n\n{data['patch']}".rstrip(), as_json=as_json)


def _row(rows: list[render.Row], identifier: str) -> render.Row:
    """The row that brought `identifier`: of a candidate its own step, not the one that promoted it."""
    for names in (render.shown_id, _candidate):
        for row in rows:
            if names(row) == identifier:
                return row
    raise NotFound(f"no step brought {identifier}", hint="`reef log --all` lists every step")


def _candidate(row: render.Row) -> str:
    return str(row.get("candidate_id") or "")
