"""`reef serve`: the daemon in the foreground, in this very process."""

import os
import sys

import typer

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
from reef_cli.lifecycle import SERVE
from reef_cli.session import command

app = command()


@app.command(context_settings=CONTEXT)
def serve(
    context: typer.Context,
    config: Config = None,
    port: Port = None,
    upstream: Upstream = None,
    api: Api = None,
    model: Model = None,
    key_env: KeyEnv = None,
    no_auth: NoAuth = False,
    engine: Engine = None,
) -> None:
    """Run the daemon in the foreground until Ctrl-C. Any setting can be given as --section.key VALUE."""
    words = daemon_words(config, port, upstream, api, model, key_env, no_auth, engine, context.args)
    sys.stdout.flush()
    os.execv(SERVE[0], [*SERVE, *words])  # noqa: S606 - becoming the daemon is the point
