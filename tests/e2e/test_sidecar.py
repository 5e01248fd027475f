"""The sidecar of the `reef-client` package (`python -m reef_client.serve`), unmodified, before a daemon.

Agents talk to it as their endpoint; it names the session of each call and keeps what went through.
"""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from reef_client import ReefClient

from tests.e2e.running import Daemon, running, wait_for
from tests.stub_provider import Fault, Reply, StubProvider, ToolCall

CHAT: list[Any] = [{"role": "user", "content": "hi"}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
LOOK = ToolCall("look", {"at": "sea"}, "call_9")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, provider: StubProvider) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("sidecar"), "--upstream", provider.url, "--model", "M") as found:
        yield found


@pytest.fixture(scope="module", params=["as-it-comes", "buffered"])
def sidecar(
    request: pytest.FixtureRequest, daemon: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Streams pass as they come, or it asks for whole answers and makes streams of them."""
    words = ["--upstream", daemon.url, "--session-header", "x-reef-tag-session"]
    words += ["--force-non-stream"] if request.param == "buffered" else []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "sidecar.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "reef_client.serve", "--listen", str(port), *words],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            wait_for(lambda: _listens(client, process, log), "the sidecar")
            yield client
    finally:
        process.kill()
        process.wait()


def _listens(client: httpx.Client, process: "subprocess.Popen[bytes]", log: Path) -> bool | None:
    assert process.poll() is None, log.read_text()
    try:
        return client.get("/_sessions").status_code == 200
    except httpx.ConnectError:
        return None


def asking(sidecar: httpx.Client, daemon: Daemon, session: str, scenario: str) -> openai.OpenAI:
    """An agent's client whose base URL is a session of the sidecar's."""
    made = sidecar.post("/_sessions", json={"id": session}).json()
    token = daemon.environ["REEF_TOKEN"]
    headers = {"x-reef-scenario": scenario}
    return openai.OpenAI(base_url=f"{made['url']}/v1", api_key=token, default_headers=headers, max_retries=0)


def test_each_call_is_kept_on_both_sides(
    sidecar: httpx.Client, daemon: Daemon, stub: StubProvider, request: pytest.FixtureRequest
) -> None:
    scenario = request.node.callspec.id
    with asking(sidecar, daemon, "s-1", scenario) as gpt:
        whole = gpt.chat.completions.create(model="M", messages=CHAT)
        assert whole.choices[0].message.content == "echo: hi"
        chunks = list(gpt.chat.completions.create(model="M", messages=CHAT, stream=True))
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "echo: hi"
        stub.answer = lambda asked: Reply("I look.", (LOOK,))
        with gpt.chat.completions.stream(model="M", messages=CHAT, tools=TOOLS) as stream:
            [call] = stream.get_final_completion().choices[0].message.tool_calls or []
        assert (call.function.name, call.function.arguments) == ("look", '{"at": "sea"}')

    turns = sidecar.get("/_sessions/s-1/captures").json()["turns"]
    assert [turn["status"] for turn in turns] == [200, 200, 200]
    assert [turn["response"]["choices"][0]["finish_reason"] for turn in turns] == [
        "stop", "stop", "tool_calls"
    ]  # fmt: skip
    for turn in turns:
        record = daemon.get(f"/reef/records/{turn['receipt']}")
        assert (record["scenario"], record["session"]) == (scenario, "s-1")
        assert (record["kind"], record["status"]) == ("turn", "complete")
        theirs = turn["response"]["choices"][0]["message"]
        ours = record["payload"]["response"]["choices"][0]["message"]
        assert theirs.get("content") == ours.get("content")
        assert [one["id"] for one in theirs.get("tool_calls") or []] == [
            one["id"] for one in ours.get("tool_calls") or []
        ]

    client = ReefClient(daemon.url, token=daemon.environ["REEF_TOKEN"])
    told = client.report(scenario, {"score": 1}, references=[turn["receipt"] for turn in turns])
    assert told["scenario"] == scenario


def test_what_fails_is_told_and_kept(
    sidecar: httpx.Client, daemon: Daemon, stub: StubProvider, request: pytest.FixtureRequest
) -> None:
    scenario = f"failing-{request.node.callspec.id}"
    with asking(sidecar, daemon, "s-2", scenario) as gpt:
        stub.answer = lambda asked: Fault(429, "slow down", {"retry-after": "3"})
        with pytest.raises(openai.RateLimitError) as caught:
            gpt.chat.completions.create(model="M", messages=CHAT)
        assert caught.value.response.headers["retry-after"] == "3"
        with pytest.raises(openai.APIError, match="slow down"):
            list(gpt.chat.completions.create(model="M", messages=CHAT, stream=True))
        with pytest.raises(openai.AuthenticationError):
            gpt.with_options(api_key="wrong").chat.completions.create(model="M", messages=CHAT)
    turns = sidecar.get("/_sessions/s-2/captures").json()["turns"]
    assert [turn["status"] for turn in turns] == [429, 429, 401]
    rows = daemon.get("/reef/records", limit=1000)["records"]
    kept = [row for row in rows if row["scenario"] == scenario]
    assert [(row["status"], row["http_status"], row["session"]) for row in kept] == [
        ("failed", 429, "s-2"), ("failed", 429, "s-2")
    ]  # fmt: skip


def test_a_scenario_and_the_release_it_serves(
    sidecar: httpx.Client, daemon: Daemon, stub: StubProvider
) -> None:
    """What is no completion is forwarded too: models, reports, the harness."""
    headers = {"authorization": f"Bearer {daemon.environ['REEF_TOKEN']}", "x-reef-scenario": "through"}
    assert "M" in [model["id"] for model in sidecar.get("/v1/models", headers=headers).json()["data"]]
    body = {"model": "M", "messages": CHAT}
    answer = sidecar.post("/v1/chat/completions", json=body, headers=headers)
    receipt = answer.headers["x-reef-agent-record-id"]
    report = {"score": 0, "references": [receipt]}
    assert sidecar.post("/reef/report", json=report, headers=headers).json()["scenario"] == "through"
    assert sidecar.get("/reef/harness", headers=headers).status_code == 200
