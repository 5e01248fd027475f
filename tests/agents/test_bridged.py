"""Agents do a small task on an upstream that has chat completions only: they write a file with a tool.

Claude Code and Codex also under the name of a model that they know, for which they send other requests: Codex
then writes with a free-form tool.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.agents.coding import AGENTS, RUN_S, Agent
from tests.agents.install import INSTALL_S
from tests.agents.play import DONE, FILES, TASK, Scenario
from tests.agents.sdks import JavaScript
from tests.agents.table import cells, word
from tests.agents.trial import Client, Trial, fetched, tried
from tests.e2e.running import Daemon
from tests.stub_provider import StubProvider, ToolCall

pytestmark = [pytest.mark.agents, pytest.mark.timeout(2 * INSTALL_S + RUN_S + 30)]
CALLS = {"messages": "tool_use", "responses": "function_call"}
"""What a call is, in the dialect's own answers."""


def named(name: str) -> Agent:
    return next(agent for agent in AGENTS if agent.name == name)


@pytest.fixture
def chat_only(stub: StubProvider) -> StubProvider:
    stub.api = ("chat",)
    return stub


def kinds(record: dict[str, Any]) -> list[str]:
    """The kinds of the parts of a recorded answer."""
    response = record["payload"]["response"]
    return [part["type"] for part in response.get("content") or response.get("output")]


def check(trial: Trial, agent: Client, stub: StubProvider) -> None:
    """The work is done, over the bridge, and the records tell it in the client's dialect."""
    assert trial.said.ok, trial.said.text
    assert DONE in trial.said.text, trial.said.text
    assert trial.files == FILES["tool"], trial.said.text
    assert {asked.path for asked in stub.asked} == {"/v1/chat/completions"}
    assert TASK in stub.asked[0].user
    assert stub.asked[-1].results
    for record in trial.records:
        assert (record["dialect"], record["metadata"]["bridged"]) == (agent.dialect, "chat")
        assert record["status"] == "failed" or record["usage"]["input_tokens"] > 0
        assert (record["session"] is not None) is agent.session


@pytest.mark.parametrize("scenario", ["tool", "cut"])
@pytest.mark.parametrize(
    "agent", [agent for agent in AGENTS if agent.dialect in CALLS], ids=lambda agent: agent.name
)
def test_a_task(
    agent: Agent, scenario: Scenario, bridging: Daemon, chat_only: StubProvider, tmp_path: Path
) -> None:
    fetched(agent)
    trial = tried(agent, scenario, bridging, chat_only, tmp_path)
    check(trial, agent, chat_only)
    assert [word(record) for record in trial.records] == cells()[agent.name, scenario].words
    assert CALLS[agent.dialect] in kinds(trial.records[-2])


def test_claude_code_with_a_model_that_it_knows(
    bridging: Daemon, chat_only: StubProvider, tmp_path: Path
) -> None:
    agent = named("claude-code")
    fetched(agent)
    trial = tried(agent, "tool", bridging, chat_only, tmp_path, model="claude-sonnet-4-5")
    check(trial, agent, chat_only)
    assert kinds(trial.records[0]) == ["text", "tool_use"]


def test_codex_writes_with_its_free_form_tool(
    bridging: Daemon, chat_only: StubProvider, tmp_path: Path
) -> None:
    def patch(path: str, text: str, call: str) -> ToolCall:
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        patched = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
        return ToolCall("apply_patch", {"input": patched}, call)

    agent = named("codex")
    fetched(agent)
    trial = tried(agent, "tool", bridging, chat_only, tmp_path, model="gpt-5.5", write=patch)
    check(trial, agent, chat_only)
    assert kinds(trial.records[0]) == ["message", "custom_tool_call"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "buffered"])
def test_the_ai_sdk_when_nothing_is_to_be_stored(
    stream: bool, bridging: Daemon, chat_only: StubProvider, tmp_path: Path
) -> None:
    """By default it refers to items of earlier answers, which only OpenAI's own server keeps."""
    storing = JavaScript("ai-sdk storing", "ai-sdk", "responses", stream)
    fetched(storing)
    refused = tried(storing, "tool", bridging, chat_only, tmp_path / "storing")
    assert not refused.said.ok
    assert "item_reference" in refused.said.text
    sdk = JavaScript("ai-sdk responses", "ai-sdk", "responses", stream, store=False)
    check(tried(sdk, "tool", bridging, chat_only, tmp_path / "work"), sdk, chat_only)
