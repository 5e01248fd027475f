"""Options that several commands share."""

from typing import Annotated

import typer

from reef.errors import Invalid
from reef.ids import check_scenario
from reef_cli.exits import UsageError


def legal_scenario(name: str | None) -> str | None:
    """`name`, if it may name a scenario. Raises `UsageError`."""
    try:
        return None if name is None else check_scenario(name)
    except Invalid as error:
        raise UsageError(error.message, hint=error.hint) from error


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Scenario = Annotated[
    str | None,
    typer.Option(
        "-s",
        "--scenario",
        metavar="SCENARIO",
        callback=legal_scenario,
        help="Which scenario, where there are several.",
    ),
]
Limit = Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many at most.")]
