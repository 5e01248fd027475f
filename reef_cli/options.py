"""Options that several commands share."""

from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Scenario = Annotated[
    str | None,
    typer.Option("-s", "--scenario", metavar="SCENARIO", help="Which scenario, where there are several."),
]
Limit = Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many at most.")]
