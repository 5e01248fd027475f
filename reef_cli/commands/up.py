"""`reef up`: start the daemon in the background."""

from typing import Any

import typer

from reef import home as homes
from reef.client import Client
from reef.errors import UpstreamFailed
from reef_cli import lifecycle
from reef_cli.daemon_words import (
    CONTEXT,
    Api,
    Config,
    KeyEnv,
    Model,
    NoAuth,
    Port,
    Upstream,
    daemon_words,
)
from reef_cli.options import JsonFlag
from reef_cli.output import emit, hint, say
from reef_cli.render import status as render
from reef_cli.session import command

app = command()


@app.command(context_settings=CONTEXT)
def up(
    context: typer.Context,
    config: Config = None,
    port: Port = None,
    upstream: Upstream = None,
    api: Api = None,
    model: Model = None,
    key_env: KeyEnv = None,
    no_auth: NoAuth = False,
    as_json: JsonFlag = False,
) -> None:
    """Start the daemon in the background and return when it serves.

    Any setting can be given as --section.key VALUE. With a daemon already running it only says so. It fails,
    with the daemon up, when the upstream does not answer or refuses its key.
    """
    home = homes.find_home()
    words = daemon_words(config, port, upstream, api, model, key_env, no_auth, context.args)
    running = homes.read_daemon(home)
    if running is not None:
        url, pid = running.url, running.pid
        ignored = "; what you asked for takes effect after `reef down`" if words else ""
        say(f"reef is already up{ignored}")
    else:
        started = lifecycle.start(home, words, on_wait=lambda: say("starting ..."))
        url, pid = started.url, started.pid
    with Client(url, home=home) as client:
        client.models()  # which asks the upstreams
        state = client.status()
    data: dict[str, Any] = {"url": url, "pid": pid, "home": str(home), "runtime": state.get("serving")}
    emit(data, render.up, as_json=as_json)
    hint(state)
    _complain(data["runtime"])


def _complain(serving: dict[str, Any]) -> None:
    """Raise `UpstreamFailed` when no upstream can be used; say it when one of several cannot."""
    upstreams = serving.get("upstreams") or []
    down = [upstream for upstream in upstreams if upstream["state"] == "down"]
    if down and len(down) == len(upstreams):
        raise UpstreamFailed(
            "\n".join(upstream["detail"] for upstream in down),
            hint="mend that: the daemon runs and tries again with each request (`reef down` stops it)",
        )
    for upstream in down:
        say(f"warning: {upstream['detail']}")
