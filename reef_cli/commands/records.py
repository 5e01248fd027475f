"""`reef records`: the traffic."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, say
from reef_cli.render import reports as render
from reef_cli.session import command

app = command()
SCREENFUL = 20
MOST = 1000
"""How many the daemon hands out at once."""


@app.command()
def records(
    scenario: Scenario = None,
    limit: Annotated[
        int | None,
        typer.Option("-n", min=1, metavar="N", help="How many at most."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only turn, title, compaction, count_tokens or episode."),
    ] = None,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only complete, aborted or failed.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only those of this run.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="SESSION", help="Only those of this session of a client.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """The latest exchanges, newest first, over all scenarios unless one is named."""
    wanted = limit or SCREENFUL
    with Client() as client:
        ask = partial(client.records, scenario, kind=kind, status=status, run=run, session=session)
        data = _latest(ask, wanted + 1)
    if limit is None and len(data["records"]) > wanted:
        say(f"only the latest {wanted} records; more with -n")
    emit(_first(data, wanted), render.records, as_json=as_json)


def _latest(ask: Callable[..., dict[str, Any]], wanted: int) -> dict[str, Any]:
    """So many of the latest exchanges, as one answer of the daemon would hold them."""
    rows: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        data = ask(
            limit=min(wanted - len(rows), MOST),
            request_type="inference",
            order="desc",
            payload=False,
            **cursor,
        )
        rows += data["records"]
        if len(rows) >= wanted or len(data["records"]) < MOST:
            return {**data, "records": rows}
        by_number = data.get("next_after_sequence") is not None
        cursor = (
            {"after_sequence": data["next_after_sequence"]} if by_number else {"after": data["next_after"]}
        )


def _first(data: dict[str, Any], wanted: int) -> dict[str, Any]:
    """The first `wanted` records of an answer, whose cursors lead on from the last of them."""
    rows = data["records"]
    if len(rows) <= wanted:
        return data
    last = rows[wanted - 1]
    numbered = data.get("next_after_sequence") is not None
    return {
        **data,
        "records": rows[:wanted],
        "next_after_sequence": last["sequence"] if numbered else None,
        "next_after": last["agent_record_id"],
    }
