"""Who answers when the user has said much, little or nothing."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from daemon.runtimes.choose import Choice, choose
from daemon.runtimes.router import Router
from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import Settings, UpstreamSection
from reef.errors import ConfigError, Unsupported
from tests.daemon.serving.house import serving
from tests.stub_provider import StubProvider


def decide(
    settings: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    ports: tuple[tuple[int, str], ...] = (),
) -> Choice:
    return asyncio.run(choose(Settings.model_validate(settings or {}), environ or {}, known_ports=ports))


EVERYTHING = {
    "REEF_UPSTREAM_URL": "http://up.example:1",
    "REEF_UPSTREAM_MODEL": "m",
    "REEF_UPSTREAM_API_KEY": "k",
    "MODEL_PATH": "/m.gguf",
    "OPENAI_API_KEY": "o",
    "ANTHROPIC_API_KEY": "a",
}


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in EVERYTHING.items() if name not in names}


def test_the_configuration_comes_first() -> None:
    choice = decide({"upstream": [{"name": "x", "base_url": "http://x.example"}]}, EVERYTHING)
    assert [upstream.name for upstream in choice.upstreams] == ["x"]
    assert choice.why == "as configured: `x` (http://x.example)"
    local = decide({"reef": {"model_path": "/own.gguf"}}, EVERYTHING)
    assert (local.upstreams, local.model_path, local.embedded) == ((), Path("/own.gguf"), False)


def test_then_reefs_own_variables() -> None:
    (main,) = decide({}, EVERYTHING).upstreams
    assert (main.base_url, main.model, main.api_key_env) == (
        "http://up.example:1",
        "m",
        "REEF_UPSTREAM_API_KEY",
    )
    assert decide({}, without("REEF_UPSTREAM_URL")).model_path == Path("/m.gguf")


def test_then_provider_keys_each_dialect_to_its_own() -> None:
    environ = without("REEF_UPSTREAM_URL", "MODEL_PATH")
    choice = decide({}, environ)
    openai, anthropic = choice.upstreams
    assert (openai.base_url, openai.dialects()) == ("https://api.openai.com/v1", ("chat", "responses"))
    assert (anthropic.base_url, anthropic.dialects()) == ("https://api.anthropic.com/v1", ("messages",))
    assert "OPENAI_API_KEY (https://api.openai.com/v1) and ANTHROPIC_API_KEY" in choice.why
    router = Router([HttpUpstream(upstream, environ) for upstream in choice.upstreams])
    assert router.pick("messages", "x").name == "anthropic"
    assert router.pick("responses", None).name == "openai"
    assert router.own()[0].name == "openai"
    moved = environ | {"OPENAI_BASE_URL": "http://o.example/api", "ANTHROPIC_BASE_URL": "http://a.example/b/"}
    assert [upstream.base_url for upstream in decide({}, moved).upstreams] == [
        "http://o.example/api",
        "http://a.example/b/v1",
    ]


def test_then_a_local_server_else_the_embedded_model() -> None:
    with StubProvider() as stub:
        found = decide(ports=((1, "none"), (stub.port, "ollama")))
        assert found.why == f"ollama answers on port {stub.port}, with model stub-model"
        assert [(u.name, u.model) for u in found.upstreams] == [("ollama", "stub-model")]
    assert decide(ports=((1, "none"),)).embedded


async def reef_app(scope: object, receive: object, send: object) -> None:
    await JSONResponse({"data": [{"id": "m"}]})(scope, receive, send)


def test_an_upstream_that_is_a_reef_is_refused_by_name() -> None:
    with serving(reef_app, server_header="reef/0.1.0") as url:
        environ = {"OPENAI_API_KEY": "t", "OPENAI_BASE_URL": f"{url}/v1"}
        with pytest.raises(ConfigError, match=r"`openai` .* leads back to a Reef") as caught:
            decide({}, environ)
        assert caught.value.hint.startswith("unset OPENAI_BASE_URL")
        assert decide(ports=((int(url.rpartition(":")[2]), "vllm"),)).embedded


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        ({"reef": {"port": 8911}}, {}),
        ({"reef": {"port": 0}}, {"REEF_URL": "http://127.0.0.1:8911"}),
    ],
)
def test_our_own_address_is_refused_even_while_nothing_listens(
    settings: Mapping[str, object], environ: Mapping[str, str]
) -> None:
    upstream = [{"name": "me", "base_url": "http://localhost:8911"}]
    with pytest.raises(ConfigError, match=r"`me` .* leads back") as caught:
        decide({**settings, "upstream": upstream}, environ)
    assert "set base_url" in caught.value.hint


def test_the_router_names_what_there_is() -> None:
    chat = UpstreamSection(name="main", base_url="http://h.example", api=("chat",))
    mute = chat.model_copy(update={"name": "mute", "api": ()})
    with pytest.raises(Unsupported, match=r"`messages`; there is: `mute` \(http\)"):
        Router([HttpUpstream(mute, {})]).pick("messages")
    router = Router([HttpUpstream(section, {}) for section in (mute, chat)])
    assert router.pick("messages").name == "main"
    speaker = chat.model_copy(update={"name": "speaker", "api": ("messages",)})
    both = Router([HttpUpstream(section, {}) for section in (chat, speaker)])
    assert [both.pick(dialect).name for dialect in ("chat", "messages")] == ["main", "speaker"]
    with pytest.raises(Unsupported, match="names a model"):
        router.own()
    named = Router([HttpUpstream(chat.model_copy(update={"model": m, "name": m}), {}) for m in ("a", "b")])
    assert [named.pick("chat", m).name for m in ("b", "c", None)] == ["b", "a", "a"]
    assert [state.name for state in named.states()] == ["a", "b"]
