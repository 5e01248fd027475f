"""A daemon between an agent and its provider: whose key goes where, who stands in, what is stored."""

from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import pytest

from reef_cli.render.reports import explain
from tests.e2e.running import TOKEN, Daemon, running
from tests.stub_provider import Asked, Fault, Reply, StubProvider

CONFIG = """
[[upstream]]
name = "provider"
base_url = "{provider}"
api = ["anthropic"]
auth = "passthrough"
models = ["claude-*"]
fallback = ["local"]

[[upstream]]
name = "local"
base_url = "{local}"
api = ["chat"]
model = "qwen"
api_key_file = "key"

[upstream.alias]
"claude-*" = "qwen"

[[scenario]]
match = "local-*"
recipe = "record"
upstream = "local"
"""
PRICES = """
[[price]]
model = "claude-*"
input = 3
output = 15

[[price]]
model = "*"
upstream = "local"
input = 0
output = 0
"""
CHAT = [{"role": "user", "content": "hi"}]


def own_key(asked: Asked) -> Fault | Reply:
    shown = [asked.headers.get(name, "") for name in ("authorization", "x-api-key")]
    return Reply("from the provider") if "sk-own" in str(shown) else Fault(401, "wrong key")


@pytest.fixture
def provider() -> Iterator[StubProvider]:
    with StubProvider(own_key) as started:
        yield started


@pytest.fixture
def local() -> Iterator[StubProvider]:
    with StubProvider(lambda asked: "from here") as started:
        yield started


@pytest.fixture
def daemon(tmp_path: Path, provider: StubProvider, local: StubProvider) -> Iterator[Daemon]:
    (tmp_path / "key").write_text("sk-local\n")
    (tmp_path / "reef.toml").write_text(CONFIG.format(provider=provider.url, local=local.url))
    with running(tmp_path) as started:
        yield started


def ask(daemon: Daemon, path: str = "", key: str = "sk-own") -> tuple[str, dict[str, object]]:
    """The answer that an SDK gets with its own key, and the record of it."""
    headers = {"x-reef-token": TOKEN}
    with anthropic.Anthropic(
        base_url=daemon.url + path, api_key=key, default_headers=headers, max_retries=0
    ) as claude:
        answer = claude.messages.with_raw_response.create(model="claude-x", max_tokens=9, messages=CHAT)
    text = answer.parse().content[0].text
    return text, daemon.get(f"/reef/records/{answer.headers['x-reef-agent-record-id']}")


def test_the_clients_key_goes_to_the_provider_and_reefs_token_nowhere(
    daemon: Daemon, provider: StubProvider
) -> None:
    text, record = ask(daemon)
    assert (text, record["upstream"]["name"]) == ("from the provider", "provider")
    assert TOKEN not in str(provider.asked[-1].headers)
    with pytest.raises(anthropic.AuthenticationError, match="wrong key"):
        ask(daemon, key="sk-other")
    with pytest.raises(anthropic.AuthenticationError, match="x-reef-token"):
        ask(daemon, key=TOKEN)


def test_another_stands_in_over_a_bridge_with_its_own_key(
    daemon: Daemon, provider: StubProvider, local: StubProvider
) -> None:
    provider.answer = lambda asked: Fault(529, "overloaded")
    text, record = ask(daemon)
    assert text == "from here"
    assert (record["model"], record["status"]) == ("claude-x", "complete")
    assert record["metadata"]["attempts"] == ["upstream `provider` answered 529: overloaded: overloaded"]
    asked = local.asked[-1]
    assert (asked.payload["model"], asked.headers["authorization"]) == ("qwen", "Bearer sk-local")
    assert "sk-own" not in str(asked.headers)


def test_words_that_no_record_has_are_refused(daemon: Daemon) -> None:
    """An empty list would say that there is none."""
    ask(daemon)
    with daemon.client() as client:
        for scope in ("/reef/records", "/reef/scenarios/default/records"):
            for query, known in (
                ({"kind": "bogus"}, "turn, title, compaction, count_tokens, episode"),
                ({"status": "bogus"}, "complete, aborted, failed"),
                ({"request_type": "bogus"}, "inference, report, train"),
                ({"limit": "-1"}, "1 to 1000"),
                ({"limit": "100000"}, "1 to 1000"),
                ({"limit": "0"}, "1 to 1000"),
            ):
                answer = client.get(scope, params=query)
                assert (answer.status_code, known in answer.json()["error"]["hint"]) == (400, True)
            for kind in ("turn", "title", "compaction", "count_tokens", "episode"):
                assert client.get(scope, params={"kind": kind, "status": "failed"}).status_code == 200


def test_a_scenario_with_an_upstream_of_its_own(daemon: Daemon, provider: StubProvider) -> None:
    text, record = ask(daemon, "/s/local-shop")
    assert (text, record["upstream"]["name"]) == ("from here", "local")
    assert not provider.asked


def test_titles_and_repeats_are_told_apart(daemon: Daemon) -> None:
    base = f"{daemon.url}/s/local-x/r/run-1/v1/chat/completions"
    title = {"role": "system", "content": "You are a title generator for chat threads. One line, brief."}
    for messages in (CHAT, CHAT, [title, *CHAT]):
        body = {"model": "qwen", "messages": messages}
        assert httpx.post(base, json=body, headers={"x-reef-token": TOKEN}).status_code == 200
    first, second, third = daemon.get("/reef/scenarios/local-x/records", payload=0)["records"]
    assert [record["kind"] for record in (first, second, third)] == ["turn", "turn", "title"]
    assert (first["superseded_by"], second["superseded_by"]) == (second["agent_record_id"], None)


def test_the_docs_example_costs_and_shows_what_it_did(
    tmp_path: Path, provider: StubProvider, local: StubProvider
) -> None:
    """A stand-in is asked by its alias, at the price of what that names."""
    config = CONFIG + PRICES
    (tmp_path / "key").write_text("sk-local\n")
    (tmp_path / "reef.toml").write_text(config.format(provider=provider.url, local=local.url))
    provider.answer = lambda asked: Fault(529, "overloaded")
    with running(tmp_path) as daemon:
        text, record = ask(daemon)
    assert (text, local.asked[-1].payload["model"]) == ("from here", "qwen")
    assert (record["model"], record["usage"]["cost"]) == ("claude-x", 0.0)
    for line in (
        "upstream   local (model qwen)",
        "bridge     messages to chat",
        "other try  upstream `provider` answered 529: overloaded: overloaded",
    ):
        assert line in explain(record).splitlines()
