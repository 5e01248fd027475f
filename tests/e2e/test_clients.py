"""Clients as they are, unmodified, against a daemon that `reef up` started."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import openai
import pytest
from reef_client import ReefClient, ReefClientError

from tests.e2e.running import wait_for
from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import Asked, Reply, StubProvider, ToolCall

CHAT = [{"role": "user", "content": "hi"}]
LOOK = ToolCall("look", {"at": "sea"}, "call_9")
TOOL = {"type": "object", "properties": {"at": {"type": "string"}}}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, provider: StubProvider) -> Iterator[Terminal]:
    with terminal(tmp_path_factory.mktemp("clients")) as found:
        yield found.up("--upstream", provider.url, "--model", "M")


@pytest.fixture
def gpt(here: Terminal) -> Iterator[openai.OpenAI]:
    env = here.reef("env", "--json").json
    with openai.OpenAI(
        base_url=env["OPENAI_BASE_URL"], api_key=env["OPENAI_API_KEY"], max_retries=0
    ) as client:
        yield client


@pytest.fixture
def claude(here: Terminal) -> Iterator[anthropic.Anthropic]:
    env = here.reef("env", "--json").json
    with anthropic.Anthropic(
        base_url=env["ANTHROPIC_BASE_URL"], api_key=env["ANTHROPIC_API_KEY"], max_retries=0
    ) as client:
        yield client


def record(here: Terminal, receipt: str) -> dict[str, object]:
    with here.http() as client:
        answer = client.get(f"/reef/records/{receipt}")
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def test_openai_chat(gpt: openai.OpenAI, stub: StubProvider, here: Terminal) -> None:
    whole = gpt.chat.completions.with_raw_response.create(model="m", messages=CHAT)
    assert whole.parse().choices[0].message.content == "echo: hi"
    assert record(here, whole.headers["x-reef-agent-record-id"])["status"] == "complete"

    chunks = list(gpt.chat.completions.create(model="m", messages=CHAT, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "echo: hi"
    receipt = chunks[-1].model_extra["reef"]["agent_record_id"]
    assert record(here, receipt)["stream"] is True

    stub.answer = lambda asked: Reply("I look.", (LOOK,))
    tools = [{"type": "function", "function": {"name": "look", "parameters": TOOL}}]
    called = gpt.chat.completions.create(model="m", messages=CHAT, tools=tools).choices[0].message
    with gpt.chat.completions.stream(model="m", messages=CHAT, tools=tools) as stream:
        streamed = stream.get_final_completion().choices[0].message
    for message in (called, streamed):
        assert message.tool_calls is not None
        assert message.tool_calls[0].function.arguments == '{"at": "sea"}'
    assert stub.asked[-1].payload["tools"] == tools


def test_openai_responses(gpt: openai.OpenAI, stub: StubProvider, here: Terminal) -> None:
    assert gpt.responses.create(model="m", input="hi").output_text == "echo: hi"
    last = list(gpt.responses.create(model="m", input="hi", stream=True))[-1]
    assert last.type == "response.completed"
    assert record(here, last.model_extra["reef"]["agent_record_id"])["dialect"] == "responses"

    stub.answer = lambda asked: Reply("I look.", (LOOK,))
    tools = [{"type": "function", "name": "look", "parameters": TOOL, "strict": False}]
    called = gpt.responses.create(model="m", input="hi", tools=tools)
    with gpt.responses.stream(model="m", input="hi", tools=tools) as stream:
        streamed = stream.get_final_response()
    for answer in (called, streamed):
        assert [item.name for item in answer.output if item.type == "function_call"] == ["look"]


def test_anthropic_messages(claude: anthropic.Anthropic, stub: StubProvider, here: Terminal) -> None:
    ask = {"model": "m", "max_tokens": 9, "messages": CHAT}
    whole = claude.messages.create(**ask)
    assert whole.content[0].text == "echo: hi"
    assert record(here, whole._request_id)["dialect"] == "messages"
    with claude.messages.stream(**ask) as stream:
        assert "".join(stream.text_stream) == "echo: hi"

    stub.answer = lambda asked: Reply("I look.", (LOOK,), thinking="hm")
    tools = [{"name": "look", "input_schema": TOOL}]
    called = claude.messages.create(**ask, tools=tools)
    with claude.messages.stream(**ask, tools=tools) as stream:
        streamed = stream.get_final_message()
    for message in (called, streamed):
        assert message.stop_reason == "tool_use"
        assert [block.input for block in message.content if block.type == "tool_use"] == [{"at": "sea"}]
    assert claude.messages.count_tokens(model="m", messages=CHAT).input_tokens == 1


def test_models(gpt: openai.OpenAI, claude: anthropic.Anthropic, stub: StubProvider) -> None:
    assert "M" in [model.id for model in gpt.models.list()]
    assert "M" in [model.id for model in claude.models.list()]
    assert gpt.models.retrieve("M").id == "M"


def test_no_key_of_reef_reaches_the_provider(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, stub: StubProvider, here: Terminal
) -> None:
    gpt.chat.completions.create(model="m", messages=CHAT)
    claude.messages.create(model="m", max_tokens=9, messages=CHAT)
    assert len(stub.asked) == 2
    assert not any(here.token in value for asked in stub.asked for value in asked.headers.values())


def test_reef_client(here: Terminal, stub: StubProvider, tmp_path: Path) -> None:
    """The package of other clients: inference, report, versions, harness."""
    sentence = "Answer in metric units, please."
    stub.answer = lambda asked: "21 C" if sentence in asked.system else "70 F"
    client = ReefClient(here.url, token=here.token)
    body = {"model": "M", "messages": CHAT}
    assert (
        client.inference("trip", "/v1/chat/completions", body)["choices"][0]["message"]["content"] == "70 F"
    )
    _, receipt = client.inference_with_record(
        "trip", "/v1/chat/completions", body, extra_headers={"x-reef-tag-session": "s-1"}
    )
    assert record(here, receipt)["session"] == "s-1"
    told = client.report("trip", {"score": 0, "feedback": sentence}, references=[receipt])
    assert (told["scenario"], told["request_type"]) == ("trip", "report")

    first = client.harness_pull("trip", tmp_path / "tree")
    wait_for(lambda: here.reef("pending", "-s", "trip", "--json").json["trip"]["reviews"] or None, "a review")
    here.reef("promote", "-s", "trip")
    versions = client.harness_versions("trip")
    assert [row["operation"] for row in versions] == ["creation", "training", "promote"]
    second = client.harness_pull("trip", tmp_path / "tree")
    assert second == versions[-1]["release_id"] != first == versions[0]["release_id"]
    assert sentence in "".join(path.read_text() for path in (tmp_path / "tree").rglob("*.md"))
    answer = client.inference("trip", "/v1/chat/completions", body)
    assert answer["choices"][0]["message"]["content"] == "21 C"

    client.harness_pull("trip", tmp_path / "tree", version=first)
    assert list((tmp_path / "tree").rglob("*.md")) == []
    by_path = client.get("/reef/scenarios/trip/versions")["versions"]
    assert [row["step"] for row in by_path] == [row["step"] for row in versions][::-1]
    with pytest.raises(ReefClientError) as caught:
        client.get("/reef/scenarios/nowhere/versions")
    assert (caught.value.status, caught.value.content_type) == (404, "application/json")
    old = client.inference("elder", "/v1/chat/completions", body, recipe="anything")
    assert old["object"] == "chat.completion"


def test_the_seed_client(here: Terminal, stub: StubProvider) -> None:
    """Nothing but urllib: ask, read the header, report."""

    def post(path: str, body: object) -> tuple[dict[str, object], dict[str, str]]:
        request = urllib.request.Request(
            here.url + path,
            data=json.dumps(body).encode(),
            headers={
                "content-type": "application/json",
                "authorization": f"Bearer {here.token}",
                "x-reef-scenario": "seed",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
            return json.load(answer), {name.lower(): value for name, value in answer.headers.items()}

    answer, headers = post("/v1/chat/completions", {"model": "M", "messages": CHAT})
    assert answer["choices"][0]["message"]["content"] == "echo: hi"
    receipt = headers["x-reef-agent-record-id"]
    told, _ = post("/reef/report", {"score": 1.0, "feedback": "good", "references": [receipt]})
    assert told["scenario"] == "seed"
    [cited] = record(here, receipt)["reports"]
    assert (cited["score"], cited["feedback"]) == (1.0, "good")


def test_a_base_url_names_scenario_and_run(here: Terminal, stub: StubProvider) -> None:
    env = here.reef("env", "-s", "shop", "--json").json
    with openai.OpenAI(base_url=env["OPENAI_BASE_URL"], api_key=here.token) as gpt:
        whole = gpt.chat.completions.with_raw_response.create(model="m", messages=CHAT)
    assert record(here, whole.headers["x-reef-agent-record-id"])["scenario"] == "shop"

    with openai.OpenAI(base_url=f"{here.url}/s/shop/r/run-7/v1", api_key=here.token) as gpt:
        for text in ("one", "two"):
            gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    with anthropic.Anthropic(base_url=f"{here.url}/s/shop/r/run-7", api_key=here.token) as claude:
        claude.messages.create(model="m", max_tokens=9, messages=CHAT)
    told = here.reef("report", "run:run-7", "--score", "1", "-s", "shop", "--json").json
    assert (told["scenario"], len(told["pairs"])) == ("shop", 3)
    assert {record(here, pair["receipt"])["run"] for pair in told["pairs"]} == {"run-7"}
    unnamed = here.reef("report", "run:run-7", "--score", "1", "--json").json
    assert unnamed["scenario"] == "shop", "a report without a scenario belongs to what it cites"


def test_sdks_raise_their_usual_exceptions(
    here: Terminal, gpt: openai.OpenAI, claude: anthropic.Anthropic, stub: StubProvider
) -> None:
    with pytest.raises(openai.AuthenticationError, match="token"):
        gpt.with_options(api_key="wrong").models.list()
    with pytest.raises(anthropic.AuthenticationError, match="token"):
        claude.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.BadRequestError):
        gpt.chat.completions.create(model="m", messages=CHAT, extra_headers={"x-reef-scenario": "../x"})


def test_a_stream_that_the_client_leaves_is_aborted(here: Terminal, stub: StubProvider) -> None:
    def slow(asked: Asked) -> str:
        stub.event_delay_s = 0.2
        return "a b c d e f g h"

    stub.answer = slow
    try:
        body = {"model": "m", "messages": CHAT, "stream": True}
        with (
            here.http(x_reef_scenario="left") as client,
            client.stream("POST", "/v1/chat/completions", json=body) as answer,
        ):
            receipt = answer.headers["x-reef-agent-record-id"]
            next(answer.iter_bytes())
    finally:
        stub.event_delay_s = 0.0

    def stored() -> dict[str, object] | None:
        with here.http() as client:
            answer: httpx.Response = client.get(f"/reef/records/{receipt}")
        return answer.json() if answer.status_code == 200 else None

    assert wait_for(stored, "the record")["status"] == "aborted"
