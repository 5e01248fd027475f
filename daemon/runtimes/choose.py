"""Decides who answers when the user has said much, little or nothing, and says why."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from daemon.runtimes.http.client import Client
from daemon.runtimes.http.errors import HttpError
from daemon.runtimes.http.response import Response
from daemon.runtimes.http.route import LOOPBACK
from daemon.runtimes.models import KNOWN, file_of, find_server
from daemon.runtimes.upstream import full_base, model_ids
from daemon.settings.model import Settings, UpstreamSection
from reef._url import http_address
from reef.errors import ConfigError, Invalid, NotFound

_PROBE_S, _PROBE_CONNECT_S = 0.5, 0.25
_KNOWN_PORTS = ((11434, "ollama"), (1234, "lm-studio"), (8080, "llama-server"), (8000, "vllm"))
_OPENAI = "https://api.openai.com/v1"
_ANTHROPIC = "https://api.anthropic.com/v1"


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers. `embedded`: nobody was named or found, so the model that comes with Reef does."""

    upstreams: tuple[UpstreamSection, ...]
    model_path: Path | None
    embedded: bool
    why: str


async def choose(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    known_ports: tuple[tuple[int, str], ...] = _KNOWN_PORTS,
) -> Choice:
    """Decide by precedence: flags and file, a kept model that they name, Reef's own variables, provider keys,
    a local server, the embedded model. `why` is one line for people.

    Raises:
        ConfigError: an upstream leads back to a Reef, or its address is none.
        NotFound: nobody is found who could be asked for the model that the settings name.
    """
    model = settings.reef.model
    choice = _configured(settings) or _kept(settings) or _named(environ) or _keys(environ)
    if choice is None:
        found = await _local(known_ports, environ.get("REEF_UPSTREAM_MODEL"))
        if found is None and model is not None:
            raise NotFound(
                f"there is no model `{model}`, and no upstream is configured or found",
                hint="`reef models` lists what is here, `reef models add` adds one; or: --upstream URL",
            )
        choice = found or Choice((), None, True, "the embedded model: no upstream is configured or found")
    for upstream in choice.upstreams:
        await _refuse_reef(upstream, settings, environ)
    return choice


def _configured(settings: Settings) -> Choice | None:
    path = settings.reef.model_path
    if not settings.upstream and path is None:
        return None
    names = [f"`{upstream.name}` ({upstream.base_url})" for upstream in settings.upstream]
    names += [f"the model {path}"] if path else []
    return Choice(settings.upstream, path, False, f"as configured: {', '.join(names)}")


def _kept(settings: Settings) -> Choice | None:
    """The model that `reef models` has under the name that the settings give; where they name an engine, what
    that is to serve."""
    name, engine = settings.reef.model, settings.engine
    if name is None:
        asked = "kind" in engine.model_fields_set
        return Choice((), None, True, f"the embedded model: {engine.kind} is asked for") if asked else None
    if engine.kind == "vllm":
        return Choice((), Path(name), False, f"the model {name}, which vllm knows")
    if (server := find_server(name)) is not None:
        upstream = UpstreamSection(name=server.server, base_url=server.base_url, model=server.model)
        why = f"the model {name}: {server.model} of {server.server} at {server.base_url}"
        return Choice((upstream,), None, False, why)
    if file_of(name) is None and name not in KNOWN:
        return None
    return Choice((), Path(name), False, f"the model {name}, of those that are here")


def _named(environ: Mapping[str, str]) -> Choice | None:
    if url := environ.get("REEF_UPSTREAM_URL"):
        upstream = UpstreamSection(
            name="main",
            base_url=url,
            model=environ.get("REEF_UPSTREAM_MODEL") or None,
            api_key_env="REEF_UPSTREAM_API_KEY" if environ.get("REEF_UPSTREAM_API_KEY") else None,
        )
        return Choice((upstream,), None, False, f"REEF_UPSTREAM_URL is set: {url}")
    if path := environ.get("MODEL_PATH"):
        return Choice((), Path(path), False, f"MODEL_PATH is set: {path}")
    return None


def _keys(environ: Mapping[str, str]) -> Choice | None:
    model = environ.get("REEF_UPSTREAM_MODEL") or None
    upstreams: list[UpstreamSection] = []
    if environ.get("OPENAI_API_KEY"):
        base = environ.get("OPENAI_BASE_URL") or _OPENAI
        upstreams.append(
            UpstreamSection(
                name="openai", base_url=base, model=model, api_key_env="OPENAI_API_KEY", api=("openai",)
            )
        )
    if environ.get("ANTHROPIC_API_KEY"):
        # Anthropic's clients append /v1 themselves.
        base = environ.get("ANTHROPIC_BASE_URL", "").rstrip("/")
        base = _ANTHROPIC if not base else base if base.endswith("/v1") else f"{base}/v1"
        upstreams.append(
            UpstreamSection(
                name="anthropic",
                base_url=base,
                model=model if not upstreams else None,
                api_key_env="ANTHROPIC_API_KEY",
                api=("anthropic",),
            )
        )
    if not upstreams:
        return None
    named = " and ".join(f"{upstream.api_key_env} ({upstream.base_url})" for upstream in upstreams)
    return Choice(tuple(upstreams), None, False, f"provider keys in the environment: {named}")


async def _local(known_ports: tuple[tuple[int, str], ...], model: str | None) -> Choice | None:
    answers = await asyncio.gather(*(_models_at(port) for port, _ in known_ports))
    for (port, name), models in zip(known_ports, answers, strict=True):
        if models:
            upstream = UpstreamSection(
                name=name, base_url=f"http://127.0.0.1:{port}", model=model or models[0]
            )
            return Choice(
                (upstream,), None, False, f"{name} answers on port {port}, with model {upstream.model}"
            )
    return None


async def _models_at(port: int) -> list[str]:
    """The models of a server on this machine; none where no model server answers, or a Reef does."""
    found = await _probe(f"http://127.0.0.1:{port}", "/v1/models")
    if found is None or found[0].status != 200 or _is_reef(found[0]):
        return []
    try:
        return model_ids(orjson.loads(found[1]))
    except ValueError:
        return []


async def _probe(base_url: str, path: str) -> tuple[Response, bytes] | None:
    """What an impatient GET is answered, and the body; None without an answer."""
    client = Client(base_url, connect_timeout_s=_PROBE_CONNECT_S, read_timeout_s=_PROBE_S, reuse=False)
    try:
        async with asyncio.timeout(_PROBE_S):
            answer = await client.ask("GET", path)
            return answer, await answer.whole()
    except (HttpError, TimeoutError):
        return None
    finally:
        await client.close()


async def _refuse_reef(upstream: UpstreamSection, settings: Settings, environ: Mapping[str, str]) -> None:
    host, port = _place(full_base(upstream.base_url))
    if host not in LOOPBACK and host != settings.reef.host:
        if environ.get("REEF_URL") and _place(environ["REEF_URL"]) == (host, port):
            raise _loop(upstream, environ)
        return
    ours = settings.reef.port != 0 and port == settings.reef.port
    clients = environ.get("REEF_URL") and _place(environ["REEF_URL"])[1] == port
    if ours or clients or await _reef_answers(host, port):
        raise _loop(upstream, environ)


async def _reef_answers(host: str, port: int) -> bool:
    shown = f"[{host}]" if ":" in host else host
    found = await _probe(f"http://{shown}:{port}", "/healthz")
    return found is not None and _is_reef(found[0])


def _is_reef(answer: Response) -> bool:
    return any(name == "server" and value.lower().startswith("reef/") for name, value in answer.headers)


def _place(url: str) -> tuple[str, int]:
    """Host and port; of what is no address, a place where nothing is."""
    try:
        parts = http_address(url)
    except Invalid:
        return "", 0
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _loop(upstream: UpstreamSection, environ: Mapping[str, str]) -> ConfigError:
    """Names the upstream and, where the environment brought it, the variable to unset."""
    variables = {
        "OPENAI_BASE_URL": "OPENAI_API_KEY",
        "ANTHROPIC_BASE_URL": "ANTHROPIC_API_KEY",
        "REEF_UPSTREAM_URL": "REEF_UPSTREAM_API_KEY",
    }
    place = _place(full_base(upstream.base_url))
    guilty = [
        name
        for pair in variables.items()
        if environ.get(pair[0]) and _place(environ[pair[0]]) == place
        for name in pair
        if environ.get(name)
    ]
    hint = (
        f"unset {' '.join(guilty)} (`reef env` sets them for clients), or name the provider: --upstream URL"
        if guilty
        else "set base_url to the provider itself"
    )
    return ConfigError(f"upstream `{upstream.name}` ({upstream.base_url}) leads back to a Reef", hint=hint)
