"""The daemon a command talks to, and the scenario it means."""

from typing import Any

import typer

from reef.client import Client
from reef.errors import Conflict, NotFound
from reef_cli.exits import UsageError

FEW = 5
"""How many of a long list of waiting candidates are shown unasked."""


def command(help_text: str = "") -> typer.Typer:
    """A Typer app for one command or family, set up as all of ours are."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=help_text or None
    )


def pick_scenario(client: Client, given: str | None) -> str:
    """`given`, else the only scenario there is.

    Raises:
        NotFound: there is none yet.
        UsageError: there are several.
    """
    if given is not None:
        return given
    names = [row["scenario"] for row in client.scenarios()["scenarios"]]
    if not names:
        raise NotFound("there is no scenario yet", hint="send a request through the daemon: see `reef env`")
    if len(names) > 1:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise UsageError(f"there are several scenarios: {shown}", hint=f"name one: -s {names[0]}")
    return str(names[0])


def waiting_candidates(client: Client, scenario: str) -> list[dict[str, Any]]:
    """The release rows whose candidate waits for a review, newest first."""
    rows = client.releases(scenario)["releases"]
    return [row for row in rows if row.get("pending") and row.get("candidate_id")]


def patch_of(client: Client, scenario: str, row: dict[str, Any]) -> str:
    """What a release changed, or what promoting a waiting candidate would change now."""
    unserved = not (row.get("metrics") or {}).get("published", True)
    end = str((row.get("candidate_id") if unserved else None) or row["release_id"])
    parent = row.get("parent_release_id")
    if not row.get("pending"):
        return client.diff(scenario, parent, end) if parent != end else ""
    try:
        return client.diff(scenario, "HEAD", end)
    except Conflict as error:
        return f"{error.message}\n\n{client.diff(scenario, parent, end)}"


def only_waiting(rows: list[dict[str, Any]], verb: str) -> str:
    """The id of the one candidate that waits.

    Raises:
        NotFound: none waits.
        UsageError: several wait.
    """
    if not rows:
        raise NotFound("no candidate waits for a review", hint="`reef pending` shows what waits")
    if len(rows) > 1:
        steps = ", ".join(f"step:{row['step']}" for row in rows[:FEW]) + (", ..." if len(rows) > FEW else "")
        raise UsageError(
            f"{len(rows)} candidates wait: {steps}",
            hint=f"name one: reef {verb} step:{rows[0]['step']}; `reef pending --all` shows all",
        )
    return str(rows[0]["candidate_id"])
