"""`reef checkout`: serve an earlier release, or write its files out."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer

from reef.client import Client
from reef.errors import ReefError, Refused
from reef.home import way_to_write
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit
from reef_cli.render import releases as render
from reef_cli.render.text import count, short
from reef_cli.session import command, pick_scenario

app = command()


@app.command()
def checkout(
    rev: Annotated[str, typer.Argument(metavar="REV")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Write its files there instead.")
    ] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Serve REV from now on: its content becomes a new release, so that history only grows."""
    with Client() as client:
        name = pick_scenario(client, scenario)
        if to is None:
            emit(client.rollback(name, rev), render.moved, as_json=as_json)
            return
        release = client.harness(name, release_id=rev)
    paths = write_files(release["files"], to)
    data: dict[str, Any] = {"release_id": release["release_id"], "folder": str(to), "files": paths}
    told = f"{count(len(paths), 'file')} of {short(release['release_id'])} in {to}"
    emit(data, lambda _: told, as_json=as_json)


def write_files(files: dict[str, str], folder: Path) -> list[str]:
    """Write `files` (path: text) below an empty or new `folder`. Returns the paths, sorted.

    Raises:
        UsageError: the folder holds something.
        Refused: a path that leaves the folder.
        ReefError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", hint="name a new folder")
        for name, text in files.items():
            pure = PurePosixPath(name)
            if pure.is_absolute() or ".." in pure.parts or not pure.parts:
                raise Refused("path", f"`{name}` leaves the folder", hint="this daemon is not to be trusted")
            place = folder.joinpath(*pure.parts)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise ReefError(
            f"cannot write to {folder}\n{error.strerror}",
            hint=way_to_write(error, "name a folder you may write"),
        ) from error
    return sorted(files)
