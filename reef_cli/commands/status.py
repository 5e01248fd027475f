"""`reef status`: what the daemon does, and whether it runs."""

from typing import Any

import typer

from reef.client import Client
from reef.errors import DaemonUnreachable
from reef.home import find_home
from reef_cli.exits import Exit
from reef_cli.options import JsonFlag
from reef_cli.output import emit, out
from reef_cli.render import status as render
from reef_cli.session import command

app = command()
_PATIENCE_S = 10.0
"""One that takes longer to say how it is, is not well."""


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """What the daemon does: runtime, storage, scenarios. Exit code 3 when none answers."""
    home = find_home()
    try:
        with Client(timeout_s=_PATIENCE_S) as client:
            data = client.status()
            url = client.url
        if not {"version", "scenarios", "serving"} <= data.keys():
            raise DaemonUnreachable(f"what answers at {url} is not Reef", hint="check REEF_URL")
    except DaemonUnreachable:
        if not as_json:
            raise
        emit({"running": False, "home": str(home)}, str, as_json=True)
        raise typer.Exit(Exit.NO_DAEMON) from None
    if as_json:
        emit(_brief(data, url), str, as_json=True)
        return
    out(render.status({**data, "url": url}))


def _brief(data: dict[str, Any], url: str) -> dict[str, Any]:
    return {
        "running": True,
        "version": data["version"],
        "started_at": data.get("started_at"),
        "config_changed": bool(data.get("config_changed")),
        "warnings": data.get("warnings") or [],
        "error": data.get("error"),
        "url": url,
        "pid": data["pid"],
        "home": data["home"],
        "token_file": f"{data['home']}/token",
        "runtime": data.get("serving"),
        "budget": data.get("budget"),
        "storage": data.get("storage"),
        "scenarios": data.get("scenarios"),
    }
