"""`reef up`: start the daemon in the background."""

import re
import shlex
import time
from typing import Any

import typer

from reef import home as homes
from reef.client import Client
from reef.errors import Conflict, UpstreamFailed
from reef_cli import lifecycle
from reef_cli.daemon_words import (
    CONTEXT,
    Api,
    Config,
    Engine,
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
_VERDICT_S, _LOOK_S = 5.0, 0.1
"""How long a local model has to say that it cannot be loaded; one that takes longer loads on."""
_ANOTHER_MODEL = (
    "see `reef logs`; it is loaded again and again until it can be, another one takes `reef down` and "
    "`reef up --reef.model_path FILE` (or --model NAME)"
)
_VARIABLE = re.compile(r"\(from (\w+)\)")


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
    engine: Engine = None,
    as_json: JsonFlag = False,
) -> None:
    """Start the daemon in the background and return when it serves.

    Any setting can be given as --section.key VALUE. With a daemon already running it only says so. It fails,
    with the daemon up, when the upstream does not answer or refuses its key, or a local model cannot be
    loaded.
    """
    home = homes.find_home()
    words = daemon_words(config, port, upstream, api, model, key_env, no_auth, engine, context.args)
    running = homes.read_daemon(home)
    if running is None:
        try:
            started = lifecycle.start(home, words, on_wait=lambda: say("starting ..."))
            url, pid = started.url, started.pid
        except Conflict:
            running = lifecycle.await_other(home)
            if running is None:
                raise
    if running is not None:
        url, pid = running.url, running.pid
    with Client(url, home=home) as client:
        client.models()  # which asks the upstreams
        state = _settled(client)
    if running is not None:
        _already_up(words, changed=bool(state.get("config_changed")))
    data: dict[str, Any] = {"url": url, "pid": pid, "home": str(home), "runtime": state.get("serving")}
    emit(data, render.up, as_json=as_json)
    for line in state.get("warnings") or []:
        say(f"warning: {line}")
    if error := state.get("error"):
        say(f"warning: {error['message']}\nhint: {error['hint']}")
    hint(state)
    _complain(data["runtime"])


def _settled(client: Client) -> dict[str, Any]:
    """The daemon's status, once no upstream is loading; after a while as it is then."""
    deadline = time.monotonic() + _VERDICT_S
    while True:
        state = client.status()
        upstreams = (state.get("serving") or {}).get("upstreams") or []
        loading = any(upstream["state"] == "loading" for upstream in upstreams)
        if not loading or time.monotonic() > deadline:
            return state
        time.sleep(_LOOK_S)


def _already_up(words: list[str], *, changed: bool) -> None:
    """Say so, and when what is asked for takes effect. Ends the command where that is wrong."""
    if not words and not changed:
        say("reef is already up")
        return
    code, wrong = lifecycle.check_config(words)
    if code:
        say(wrong)
        raise typer.Exit(code)
    what = "what you asked for" if words else "the changed configuration"
    again = shlex.join(["reef", "up", *words])
    say(f"reef is already up; {what} takes effect after `reef down`, then `{again}`")
    say("flags are not kept: give those it was started with again")


def _complain(serving: dict[str, Any]) -> None:
    """Raise `UpstreamFailed` when no upstream can be used; say it when one of several cannot."""
    upstreams = serving.get("upstreams") or []
    down = [upstream for upstream in upstreams if upstream["state"] == "down"]
    if down and len(down) == len(upstreams):
        detail = "\n".join(upstream["detail"] for upstream in down)
        hints = "; ".join(dict.fromkeys(each["hint"] for each in down if each.get("hint")))
        remote = any("://" in each["url"] for each in down)  # an engine that is down has a path there
        remedy = _remedy(detail, hints) if remote else _ANOTHER_MODEL
        raise UpstreamFailed(detail, hint=remedy)
    for upstream in down:
        remedy = f"\nhint: {upstream['hint']}" if upstream.get("hint") else ""
        say(f"warning: {upstream['detail']}{remedy}")


def _remedy(detail: str, hints: str) -> str:
    if hints or " key" not in detail:
        return (
            f"{hints or 'look at its own log'}; the daemon tries again with each request, "
            "another address takes `reef down` and `reef up --upstream URL`"
        )
    named = _VARIABLE.search(detail)
    what = f"set {named[1]} to the right key" if named else "name the variable that holds its key"
    return f"`reef down`, {what}, `reef up{'' if named else ' --upstream-key-env NAME'}`"
