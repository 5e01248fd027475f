"""`reef diff`: the changes between two releases."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, say
from reef_cli.session import command, only_waiting, pick_scenario, waiting_candidates

app = command()


@app.command()
def diff(
    start: Annotated[str | None, typer.Argument(metavar="[FROM]")] = None,
    end: Annotated[str | None, typer.Argument(metavar="[TO]")] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """The changes from FROM to TO as a unified diff.

    As in git, one argument means "from there to what is served now", and A..B is A to B. No argument: the
    candidate that waits for review against what is served, else what the last release changed.
    """
    with Client() as client:
        name = pick_scenario(client, scenario)
        first, second = _ends(client, name, start, end)
        text = client.diff(name, first, second)
    if not text and not as_json:
        say(f"{first} and {second} are equal")
    data = {"scenario": name, "from": first, "to": second, "diff": text}
    emit(data, lambda found: found["diff"], as_json=as_json)


def _ends(client: Client, scenario: str, start: str | None, end: str | None) -> tuple[str, str]:
    if start is not None and end is not None:
        return start, end
    if start is not None:
        first, dots, second = start.partition("..")
        return first or "HEAD", (second if dots else "") or "HEAD"
    waiting = waiting_candidates(client, scenario)
    return ("HEAD", only_waiting(waiting, "diff HEAD")) if waiting else ("HEAD~1", "HEAD")
