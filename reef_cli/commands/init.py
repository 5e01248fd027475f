"""`reef init`: a reef.toml and a tasks.toml that run as they are."""

from pathlib import Path
from typing import Annotated

import typer

from reef.errors import ReefError
from reef.home import PROJECT_FILE, way_to_write
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag
from reef_cli.output import emit, say
from reef_cli.session import command
from reef_cli.templates import TASKS, config

app = command()


@app.command()
def init(
    recipe: Annotated[
        str, typer.Option("--recipe", metavar="R", help="How to learn: see `reef recipes`.")
    ] = ("harness_evolve"),
    agent: Annotated[
        str, typer.Option("--agent", metavar="A", help="Whose files the harness becomes.")
    ] = "chat",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a reef.toml and a tasks.toml into this folder. Nothing that is there is written over."""
    _check_recipe(recipe)
    files = {PROJECT_FILE: config(recipe, agent)} | ({"tasks.toml": TASKS} if recipe != "record" else {})
    there = [name for name in files if Path(name).exists()]
    if there and not force:
        raise UsageError(f"{there[0]} is already here", hint="--force writes over it")
    try:
        for name, text in files.items():
            Path(name).write_text(text, "utf-8")
    except OSError as error:
        raise ReefError(
            f"cannot write here\n{error.strerror}",
            hint=way_to_write(error, "go to a folder you may write in"),
        ) from error
    emit(sorted(files), lambda names: "\n".join(f"wrote {name}" for name in names), as_json=as_json)
    say("next: `reef up` (its home is .reef/ in this folder), then `reef env`")


def _check_recipe(name: str) -> None:
    from importlib.metadata import entry_points

    known = sorted(point.name for point in entry_points(group="reef.recipes"))
    if name not in known and ":" not in name:
        raise UsageError(f"there is no recipe `{name}`", hint=f"one of {', '.join(known)}, or module:Class")
