"""The vendors' own SDKs, unmodified, through the app."""

from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.daemon.serving.house import House
from tests.stub_provider import Fault, Reply, StubProvider, ToolCall

CALL = ToolCall("look", {"at": "sea"}, "call_9")
CHAT = [{"role": "user", "content": "hi"}]


@pytest.fixture
def gpt(home: House) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{home.url}/s/city/v1", api_key="t", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(home: House) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=f"{home.url}/s/city", api_key="t", max_retries=0) as client:
        yield client


def test_openai_chat(gpt: openai.OpenAI, home: House) -> None:
    answer = gpt.chat.completions.create(model="m", messages=CHAT)
    assert answer.choices[0].message.content == "echo: hi"
    with gpt.chat.completions.stream(model="m", messages=CHAT) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
        assert final.choices[0].message.content == "echo: hi"
        assert final.usage is not None
        assert final.usage.total_tokens == 3
    chunks = list(gpt.chat.completions.create(model="m", messages=CHAT, stream=True))
    assert chunks[-2].model_extra["reef"] == {"agent_record_id": home.records.drafts[-1].id}
    assert [bool(chunk.usage) for chunk in chunks[-3:]] == [False, False, True]
    assert [draft.scenario for draft in home.records.drafts] == ["city"] * 3


def test_openai_tool_calls(gpt: openai.OpenAI, stub: StubProvider) -> None:
    stub.answer = lambda asked: Reply("I look.", (CALL,))
    with gpt.chat.completions.stream(model="m", messages=CHAT) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == '{"at": "sea"}'


def test_openai_responses(gpt: openai.OpenAI, home: House) -> None:
    assert gpt.responses.create(model="m", input="hi").output_text == "echo: hi"
    with gpt.responses.stream(model="m", input="hi") as stream:
        assert stream.get_final_response().output_text == "echo: hi"
    last = list(gpt.responses.create(model="m", input="hi", stream=True))[-1]
    assert last.type == "response.completed"
    assert last.model_extra == {"reef": {"agent_record_id": home.records.drafts[-1].id}}


def test_anthropic_messages(claude: anthropic.Anthropic, home: House, stub: StubProvider) -> None:
    ask = {"model": "m", "max_tokens": 9, "messages": CHAT}
    answer = claude.messages.create(**ask)
    assert answer.content[0].text == "echo: hi"
    assert answer._request_id == home.records.drafts[-1].id
    stub.answer = lambda asked: Reply("I look.", (CALL,), thinking="hm")
    with claude.messages.stream(**ask) as stream:
        types = [event.type for event in stream]
        message = stream.get_final_message()
    assert types[-1] == "message_stop"
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[0].signature == "sig=="
    assert claude.messages.count_tokens(model="m", messages=CHAT).input_tokens == 1
    assert [model.id for model in claude.models.list()] == ["stub-model"]


def test_sdks_raise_their_usual_errors(
    gpt: openai.OpenAI, claude: anthropic.Anthropic, stub: StubProvider
) -> None:
    stub.answer = lambda asked: Fault(429, "slow down", {"retry-after": "1"})
    with pytest.raises(openai.RateLimitError, match="slow down"):
        gpt.responses.create(model="m", input="hi")
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        claude.messages.create(model="m", max_tokens=9, messages=CHAT)
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        gpt.files.list()
    stub.answer = lambda asked: Fault(after=3)
    with pytest.raises(openai.APIError, match="502 upstream overloaded"):
        list(gpt.chat.completions.create(model="m", messages=CHAT, stream=True))
    with (
        pytest.raises(anthropic.APIStatusError, match="502 upstream overloaded"),
        claude.messages.stream(model="m", max_tokens=9, messages=CHAT) as stream,
    ):
        stream.until_done()
