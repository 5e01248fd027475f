"""Whether the daemon of this home serves a kept model at the moment."""

from contextlib import suppress

from daemon.runtimes.models import file_of, find_server
from daemon.runtimes.upstream import full_base
from reef.client import Client
from reef.errors import ConfigError, Conflict, ReefError
from reef.home import find_home

_ASK_S = 5.0


def check_unused(name: str) -> None:
    """Raises:
    Conflict: the running daemon serves the kept model `name`. One that does not answer serves nothing.
    """
    try:
        with Client(home=find_home(), timeout_s=_ASK_S) as client:
            served = client.status()["serving"]["upstreams"]
    except ReefError:
        return
    server = find_server(name)
    for upstream in served:
        if server is None:
            used = upstream["kind"] == "engine" and upstream["model"] == name and file_of(name) is not None
        else:
            used = (upstream["url"], upstream["model"]) == (_base(server.base_url), server.model)
        if used:
            raise Conflict(
                f"the running daemon serves the model `{name}`",
                hint=f"first `reef down`, or serve another one; then: reef models remove {name}",
            )


def _base(base_url: str) -> str:
    """A server's address as the status shows it; nothing where it is none, so that it can be removed."""
    with suppress(ConfigError):
        return full_base(base_url)
    return ""
