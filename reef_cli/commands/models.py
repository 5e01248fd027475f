"""`reef models [list|add]`: local models. They need no running daemon, so the daemon's own code is asked."""

import subprocess
from typing import Annotated

import typer

from reef_cli.lifecycle import DAEMON
from reef_cli.options import JsonFlag
from reef_cli.session import command

app = command("Local models: list them, add one.")


@app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the local models."""
    if context.invoked_subcommand is None:
        _ask("list", as_json)


@app.command("list")
def list_models(as_json: JsonFlag = False) -> None:
    """The models that Reef can fetch, and those that are here."""
    _ask("list", as_json)


@app.command()
def add(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: JsonFlag = False) -> None:
    """Fetch a model once and keep it, its checksum checked."""
    _ask("add", as_json, name)


def _ask(verb: str, as_json: bool, *names: str) -> None:
    words = ["models", verb, *names, *(["--json"] if as_json else [])]
    raise typer.Exit(subprocess.run([*DAEMON, *words], check=False).returncode)
