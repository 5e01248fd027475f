"""Models that another server on this machine has: Ollama's, LM Studio's."""

import httpx

from daemon.runtimes.http.route import LOOPBACK
from daemon.runtimes.models import ServerModel
from daemon.runtimes.upstream import full_base, model_ids
from reef._url import http_address
from reef.errors import Invalid, NotFound, Unavailable

SERVERS = {"ollama": "http://127.0.0.1:11434", "lm-studio": "http://127.0.0.1:1234"}
_START = {"ollama": "ollama serve", "lm-studio": "lms server start"}
_GET = {"ollama": "ollama pull", "lm-studio": "lms get"}
_TIMEOUT_S = 5.0


def find_on_server(server: str, model: str | None, url: str | None) -> ServerModel:
    """The model on a server that runs now; `url` where that is, if not where it usually is. Without a `model`
    the only one that it has.

    Raises:
        Invalid: the address is none, another machine's or a Reef's; or there are several models.
        NotFound: it has no such model.
        Unavailable: no such server answers.
    """
    base = (url or SERVERS[server]).rstrip("/")
    if http_address(base).hostname not in LOOPBACK:
        raise Invalid(
            f"{base} is not on this machine",
            hint="name it as an upstream: reef up --upstream URL --model NAME",
        )
    there = _models(server, base)
    if model is None:
        if len(there) != 1:
            raise Invalid(f"{server} has {len(there)} models", hint=_choice(server, there))
        return ServerModel(server, base, there[0])
    for name in (model, f"{model}:latest"):
        if name in there:
            return ServerModel(server, base, name)
    raise NotFound(f"{server} has no model `{model}`", hint=_choice(server, there))


def _choice(server: str, there: list[str]) -> str:
    if not there:
        return f"get one: {_GET[server]} MODEL"
    return f"name one: {', '.join(f'{server}:{name}' for name in there[:10])}"


def _models(server: str, base: str) -> list[str]:
    try:
        answer = httpx.get(f"{full_base(base)}/models", timeout=_TIMEOUT_S, trust_env=False)
        answer.raise_for_status()
        payload = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise Unavailable(
            f"no {server} server answers at {base}: {why.splitlines()[0]}",
            hint=f"start it ({_START[server]}), or say where it is: --url URL",
        ) from error
    if answer.headers.get("server", "").lower().startswith("reef/"):
        raise Invalid(f"{base} is a Reef itself", hint="give the address of the model server")
    return model_ids(payload)
