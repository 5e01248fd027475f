"""The vendors' own SDKs over a bridge, and what is recorded of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anthropic
import httpx
import openai
import pytest

from daemon.settings.model import UpstreamSection
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from daemon.wire.prefix import Prefix
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.stub_provider import Fault, Raw, Reply, StubProvider, ToolCall

LOGIN = "Bearer sk-ant-oat01-x"
CALLS = (ToolCall("look", {"at": "sea"}, "call_9"), ToolCall("go", {}, "call_10"))
ASK = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"name": "look", "description": "d", "input_schema": {"type": "object"}}
PREFIX = Prefix("Use metric units.", (("2 feet?", "61 cm"),))


@dataclass
class Bridged:
    """A house in front of a stub that speaks one dialect."""

    home: House
    stub: StubProvider
    claude: anthropic.Anthropic
    gpt: openai.OpenAI


@contextmanager
def bridged(upstream: Dialect, prefix: Prefix | None = None) -> Iterator[Bridged]:
    with StubProvider() as stub:
        stub.api = (upstream,)
        section = UpstreamSection(name="only", base_url=stub.url, api=(upstream,))
        with (
            house([section], prefix=prefix) as home,
            anthropic.Anthropic(base_url=home.url, api_key="t", max_retries=0) as claude,
            openai.OpenAI(base_url=f"{home.url}/v1", api_key="t", max_retries=0) as gpt,
        ):
            yield Bridged(home, stub, claude, gpt)


@pytest.fixture(scope="module", params=["chat", "responses"])
def openais(request: pytest.FixtureRequest) -> Iterator[Bridged]:
    with bridged(request.param) as built:
        yield built


@pytest.fixture(scope="module", params=["chat", "messages"])
def others(request: pytest.FixtureRequest) -> Iterator[Bridged]:
    with bridged(request.param) as built:
        yield built


@pytest.fixture(scope="module")
def messages_only() -> Iterator[Bridged]:
    with bridged("messages") as built:
        yield built


@pytest.fixture(autouse=True)
def as_new(request: pytest.FixtureRequest) -> None:
    for name in {"openais", "others", "messages_only"} & set(request.fixturenames):
        built: Bridged = request.getfixturevalue(name)
        built.stub.asked.clear()
        built.stub.answer = lambda asked: f"echo: {asked.user}"
        built.home.records.drafts.clear()


def test_anthropics_sdk_over_openais_dialects(openais: Bridged) -> None:
    answer = openais.claude.messages.create(**ASK)
    (draft,) = openais.home.records.drafts
    assert (answer.content[0].text, answer.stop_reason) == ("echo: hi", "end_turn")
    assert answer.id == f"msg_{draft.id.replace('-', '')}"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1, 2)
    assert answer._request_id == draft.id

    openais.stub.answer = lambda asked: Reply("I look.", CALLS)
    with openais.claude.messages.stream(**ASK, tools=[TOOL]) as stream:
        types = [event.type for event in stream]
        message = stream.get_final_message()
    assert types[-1] == "message_stop"
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert [(b.id, b.name, b.input) for b in message.content[1:]] == [
        ("call_9", "look", {"at": "sea"}),
        ("call_10", "go", {}),
    ]
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 2)
    last = openais.home.records.drafts[-1]
    *_, end = openais.claude.messages.create(**ASK, stream=True)
    assert end.to_dict()["reef"] == {"agent_record_id": openais.home.records.drafts[-1].id}

    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "blue"} for call in CALLS]
    said = [block.to_dict() for block in message.content]
    turns = [*ASK["messages"], {"role": "assistant", "content": said}, {"role": "user", "content": results}]
    openais.claude.messages.create(**ASK | {"messages": turns}, tools=[TOOL])
    sent = openais.stub.asked[-1].payload
    assert "call_10" in json.dumps(sent)
    assert last.bridged == openais.stub.api[0]


def test_openais_responses_over_the_others(others: Bridged) -> None:
    assert others.gpt.responses.create(model="m", input="hi").output_text == "echo: hi"
    others.stub.answer = lambda asked: Reply("I look.", CALLS, thinking="hm")
    with others.gpt.responses.stream(model="m", input="hi") as stream:
        types = [event.type for event in stream]
        response = stream.get_final_response()
    assert types[0] == "response.created"
    assert types[-1] == "response.completed"
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response.output[2].arguments == '{"at": "sea"}'
    assert response.usage is not None
    assert response.usage.output_tokens == 2
    last = list(others.gpt.responses.create(model="m", input="hi", stream=True))[-1]
    assert last.model_extra == {"reef": {"agent_record_id": others.home.records.drafts[-1].id}}


def test_openais_chat_over_messages(messages_only: Bridged) -> None:
    gpt, stub = messages_only.gpt, messages_only.stub
    answer = gpt.chat.completions.create(model="m", messages=ASK["messages"])
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("echo: hi", "stop")
    assert stub.asked[-1].headers["anthropic-version"]
    stub.answer = lambda asked: Reply("I look.", CALLS, thinking="hm")
    options = {"stream_options": {"include_usage": True}}
    with gpt.chat.completions.stream(model="m", messages=ASK["messages"], **options) as stream:
        chunks = [event.chunk for event in stream if event.type == "chunk"]
        final = stream.get_final_completion()
    message = final.choices[0].message
    assert [(call.id, call.function.name) for call in message.tool_calls or []] == [
        ("call_9", "look"),
        ("call_10", "go"),
    ]
    assert (message.tool_calls or [])[0].function.arguments == '{"at": "sea"}'
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [2]
    chunks = list(gpt.chat.completions.create(model="m", messages=ASK["messages"], stream=True))
    assert chunks[-1].model_extra["reef"] == {"agent_record_id": messages_only.home.records.drafts[-1].id}
    assert all(chunk.usage is None for chunk in chunks)


def test_sdks_raise_their_usual_errors(openais: Bridged, messages_only: Bridged) -> None:
    for built in (openais, messages_only):
        built.stub.answer = lambda asked: Fault(429, "slow down", {"retry-after": "1"})
    with pytest.raises(anthropic.RateLimitError, match="slow down") as refused:
        openais.claude.messages.create(**ASK)
    assert refused.value.body["error"]["type"] == "rate_limit_error"
    assert refused.value.response.headers["retry-after"] == "1"
    with pytest.raises(openai.RateLimitError, match="slow down"):
        messages_only.gpt.chat.completions.create(model="m", messages=ASK["messages"])
    for built in (openais, messages_only):
        assert built.home.records.drafts[-1].status == "failed"
        built.stub.answer = lambda asked: Fault(after=4)
    with (
        pytest.raises(anthropic.APIStatusError, match="502 upstream overloaded"),
        openais.claude.messages.stream(**ASK) as stream,
    ):
        stream.until_done()
    with pytest.raises(openai.APIError, match="502 upstream overloaded"):
        list(messages_only.gpt.chat.completions.create(model="m", messages=ASK["messages"], stream=True))
    for built in (openais, messages_only):
        assert (built.home.records.drafts[-1].status, built.home.records.drafts[-1].error_type) == (
            "failed",
            "upstream",
        )
        built.stub.answer = lambda asked: "well again"
    assert openais.claude.messages.create(**ASK).content[0].text == "well again"


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_recorded(others: Bridged, stream: bool) -> None:
    body = body_of("responses", stream=stream, store=False)
    answer = httpx.post(others.home.url + PATHS["responses"], json=body)
    (draft,) = others.home.records.wait()
    (asked,) = others.stub.asked
    upstream = others.stub.api[0]
    assert (draft.dialect, draft.bridged, draft.stream) == ("responses", upstream, stream)
    assert (json.loads(draft.request), draft.forwarded) == (body, asked.body)
    assert set(draft.dropped) == {"max_tokens", "store"}
    raw = codec_for(upstream).parse(draft.response, stream=stream)
    assert raw.text == "echo: hi"
    read = read_answer(
        "responses", draft.response, stream=stream, bridged=upstream, request=draft.request, receipt=draft.id
    )
    assert read.text == "echo: hi"
    assert (read.input_tokens, read.output_tokens) == (raw.input_tokens, raw.output_tokens) == (1, 2)
    assert set(read.aliases) > set(raw.aliases)
    told = codec_for("responses").parse(answer.content, stream=stream).response
    assert told is not None
    assert told["id"] in read.aliases
    assert read.response == {key: value for key, value in told.items() if key != "reef"}


def test_a_release_is_put_in_front_before_the_bridge() -> None:
    with bridged("chat", PREFIX) as built:
        ask = ASK | {"system": "You help."}
        built.claude.messages.create(**ask)
        assert built.stub.asked[0].system.startswith("Use metric units.")
        assert built.stub.asked[0].turns[:2] == [("user", "2 feet?"), ("assistant", "61 cm")]
        (draft,) = built.home.records.drafts
        assert (json.loads(draft.request)["system"], draft.release_id) == ("You help.", "r1")
        # the next request of the conversation is filed with the first
        said = {"role": "assistant", "content": "echo: hi"}
        more = [*ASK["messages"], said, {"role": "user", "content": "and?"}]
        built.claude.messages.create(**ask | {"messages": more})
        first, second = built.home.records.drafts
        assert first.conversation == second.conversation is not None


@pytest.mark.parametrize("speaks", [True, False], ids=["in vain", "not at all"])
def test_tokens_are_estimated_where_nobody_counts_them(speaks: bool) -> None:
    with StubProvider() as stub:
        stub.api = ("chat",)
        api = ("chat", "messages") if speaks else ("chat",)
        with house([UpstreamSection(name="only", base_url=stub.url, api=api)]) as home:
            answer = httpx.post(f"{home.url}/v1/messages/count_tokens", json=ASK)
            assert answer.status_code == 200
            assert answer.headers["x-reef-estimate"] == "1"
            assert answer.json()["input_tokens"] > 4
            assert answer.json()["reef"] == {"estimate": True}
            (draft,) = home.records.drafts
            assert (draft.kind, draft.status, draft.http_status) == ("count_tokens", "complete", 200)
            assert draft.upstream_name == ("only" if speaks else None)
            assert answer.headers["x-reef-agent-record-id"] == draft.id


def test_what_is_no_answer_is_502(openais: Bridged) -> None:
    openais.stub.answer = lambda asked: Raw((b"<html>busy</html>",), "text/html")
    answer = httpx.post(f"{openais.home.url}/v1/messages", json=ASK)
    assert (answer.status_code, answer.json()["type"]) == (502, "error")
    openais.stub.answer = lambda asked: Raw((b"<html>no</html>",), "text/html", status=404)
    answer = httpx.post(f"{openais.home.url}/v1/messages", json=ASK)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert "<html>no</html>" in answer.json()["error"]["message"]
    assert [draft.status for draft in openais.home.records.drafts] == ["failed", "failed"]


def test_a_conversation_that_only_openai_keeps_is_refused() -> None:
    with bridged("chat") as built, pytest.raises(openai.BadRequestError, match="send the whole conversation"):
        built.gpt.responses.create(model="m", input="hi", previous_response_id="resp_1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_that_is_spoken_is_not_bridged(dialect: Dialect) -> None:
    with StubProvider() as stub, house(stub.url) as home:
        httpx.post(home.url + PATHS[dialect], json=body_of(dialect))
        assert (home.records.drafts[0].bridged, stub.asked[0].dialect) == (None, dialect)


@pytest.mark.parametrize(
    ("client", "sent", "upstream", "there"),
    [
        ("messages", {"x-api-key": "k"}, "chat", {"authorization": "Bearer k"}),
        ("messages", {"authorization": "Bearer k"}, "chat", {"authorization": "Bearer k"}),
        ("messages", {"x-api-key": "a", "authorization": "Bearer b"}, "chat", {"authorization": "Bearer b"}),
        ("responses", {"authorization": "Bearer k"}, "chat", {"authorization": "Bearer k"}),
        ("chat", {"authorization": "bearer k"}, "messages", {"x-api-key": "k"}),
        ("responses", {"authorization": "Bearer k"}, "messages", {"x-api-key": "k"}),
        (
            "chat",
            {"authorization": "Bearer sk-ant-oat01-x"},
            "messages",
            {"authorization": "Bearer sk-ant-oat01-x"},
        ),
        ("chat", {"x-api-key": "k"}, "messages", {"x-api-key": "k"}),
    ],
)
def test_a_clients_own_key_stands_where_the_other_provider_looks(
    client: Dialect, sent: dict[str, str], upstream: Dialect, there: dict[str, str]
) -> None:
    with StubProvider() as stub:
        stub.api = (upstream,)
        for auth, expected in (("passthrough", there), ("key", {})):
            section = UpstreamSection(name="only", base_url=stub.url, api=(upstream,), auth=auth)
            with house([section]) as home:
                answer = httpx.post(home.url + PATHS[client], json=body_of(client), headers=sent)
            assert answer.status_code == 200
            headers = stub.asked[-1].headers
            shown = {name: headers[name] for name in ("authorization", "x-api-key") if name in headers}
            assert shown == expected
