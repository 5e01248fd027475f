"""Requests over a bridge: what has a counterpart arrives, the rest is named."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.bridge import chat, messages, responses
from daemon.wire.bridge.crossing import Crossing, cross
from daemon.wire.bridge.estimate import estimate
from daemon.wire.bridge.names import flat_name
from daemon.wire.bridge.neutral import (
    FREE_FORM,
    Format,
    Image,
    Message,
    Request,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from reef.errors import Invalid
from reef.ids import new_receipt
from reef.runtime import DIALECTS, Dialect
from tests.daemon.wire.test_answers import VALUES

MODULES = {"chat": chat, "messages": messages, "responses": responses}
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="

words = st.text("abc é\n", min_size=1, max_size=12).filter(str.strip)
names = st.text("abcdef_", min_size=1, max_size=12)
texts = st.builds(Text, words)
images = st.builds(Image, st.sampled_from([PIXEL, "https://h.example/a.png"]))
calls = st.builds(ToolCall, st.from_regex(r"\Acall_[a-z0-9]{1,8}\Z"), names, st.just('{"at":"sea"}'))
users = texts.map(lambda part: Message("user", (part,))) | st.tuples(texts, images).map(
    lambda parts: Message("user", parts)
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Message, ...]:
    """User, assistant, user, ...: calls are answered in the message after."""
    said: list[Message] = [draw(users)]
    for _ in range(draw(st.integers(0, 2))):
        made = draw(st.lists(calls, max_size=3, unique_by=lambda call: call.id))
        text = draw(texts) if not made or draw(st.booleans()) else None
        said.append(Message("assistant", (*([text] if text else []), *made)))
        results = tuple(ToolResult(call.id, (draw(texts),)) for call in made)
        said.append(Message("user", results or (draw(texts),)))
    return tuple(said)


tools = st.builds(Tool, names, words, st.just(SCHEMA))
requests = st.builds(
    Request,
    st.just("m"),
    turns(),
    words,
    st.lists(tools, min_size=1, max_size=3, unique_by=lambda tool: tool.name).map(tuple),
    st.none() | st.sampled_from([ToolChoice("auto"), ToolChoice("required"), ToolChoice("tool", "a")]),
    st.sampled_from([None, False]),
    st.builds(
        Sampling,
        max_tokens=st.integers(1, 9000),
        temperature=st.none() | st.floats(0, 0.9),
    ),
    st.none() | st.just(Format(SCHEMA | {"additionalProperties": False})),
    st.booleans(),
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(request=requests)
def test_what_has_a_counterpart_comes_back_as_it_was(dialect: Dialect, request: Request) -> None:
    module = MODULES[dialect]
    body, dropped = module.from_neutral_request(request)
    again = module.to_neutral_request(json.loads(json.dumps(body)))
    assert not dropped.paths()
    fields = ("model", "messages", "system", "choice", "parallel", "sampling", "stream")
    if request.parallel is False and request.choice is None and dialect == "messages":
        fields = tuple(name for name in fields if name != "choice")  # the two stand in one object there
    strip = lambda value: str(value).replace("detail='auto'", "detail=None")  # noqa: E731
    for name in fields:
        assert strip(getattr(again, name)) == strip(getattr(request, name)), name
    assert [(t.name, t.description, t.schema) for t in again.tools] == [
        (t.name, t.description, t.schema) for t in request.tools
    ]
    assert (again.format and again.format.schema) == (request.format and request.format.schema)


@pytest.mark.parametrize("client", DIALECTS)
@given(
    payload=st.dictionaries(
        st.sampled_from(["messages", "input", "system", "tools", "tool_choice", "stop", "text", "reasoning"]),
        VALUES,
    )
)
def test_odd_requests_cross_without_complaint(client: Dialect, payload: dict[str, Any]) -> None:
    for upstream in DIALECTS:
        with suppress(Invalid):
            json.loads(Crossing(client, upstream, payload, new_receipt()).body)
    with suppress(Invalid):
        assert estimate(payload) > 0


@pytest.mark.parametrize("most", [-1, 0])
@pytest.mark.parametrize("client", DIALECTS)
def test_what_is_unknown_is_left_out_and_never_refused(client: Dialect, most: int) -> None:
    list_key = "input" if client == "responses" else "messages"
    bound_key = "max_output_tokens" if client == "responses" else "max_tokens"
    payload = {list_key: [{"role": "critic", "content": "hi"}], bound_key: most}
    for upstream in DIALECTS:
        crossing = cross(client, upstream, payload, new_receipt())
        assert {f"{list_key}[].role", bound_key} <= set(crossing.dropped)
        assert '"hi"' in crossing.body.decode()
        assert "critic" not in crossing.body.decode()
    if client != "chat":
        said = {list_key: [{"role": "user", "content": "hi"}], bound_key: 1024.0}
        assert json.loads(cross(client, "chat", said, new_receipt()).body)["max_tokens"] == 1024


def crossed(client: Dialect, upstream: Dialect, payload: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    crossing = cross(client, upstream, payload, new_receipt())
    return json.loads(crossing.body), crossing.dropped


def test_claude_code_over_chat() -> None:
    """Billing block, reminders, a system message in the middle, an image in a result, a server's tool."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    cache = {"cache_control": {"type": "ephemeral"}}
    body, dropped = crossed(
        "messages",
        "chat",
        {
            "model": "m",
            "max_tokens": 32000,
            "system": [{"type": "text", "text": "billing"}, {"type": "text", "text": "You help.", **cache}],
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "look"}, {"type": "text", "text": "!"}],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"at": "é"}},
                        {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]},
                        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
                        {"type": "text", "text": "and now?"},
                    ],
                },
                {"role": "system", "content": "be brief"},
            ],
            "tools": [
                {"name": "Read", "description": "d", "input_schema": SCHEMA, "defer_loading": True},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "thinking": {"type": "adaptive"},
            "context_management": {"edits": [1]},
            "metadata": {"user_id": "{}"},
            "stop_sequences": ["END"],
            "top_k": 5,
            "stream": True,
        },
    )
    assert body["messages"] == [
        {"role": "system", "content": "billing\n\nYou help."},
        {"role": "user", "content": "look\n\n!"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": '{"at":"é"}'},
                },
                {"id": "toolu_2", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": ""},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "no"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The images of the tool's result toolu_1:"},
                {"type": "image_url", "image_url": {"url": PIXEL}},
                {"type": "text", "text": "and now?"},
            ],
        },
        {"role": "system", "content": "be brief"},
    ]
    assert body["tools"] == [
        {"type": "function", "function": {"name": "Read", "description": "d", "parameters": SCHEMA}}
    ]
    assert (body["tool_choice"], body["parallel_tool_calls"], body["stop"]) == ("required", False, ["END"])
    assert (body["max_tokens"], body["stream_options"]) == (32000, {"include_usage": True})
    assert set(dropped) == {
        "thinking",
        "context_management",
        "metadata",
        "system[].cache_control",
        "tools[].defer_loading",
        "tools[web_search_20250305]",
        "top_k",
        "messages[].content[].is_error",
        "messages[].content[].signature",
    }


def test_codex_over_chat() -> None:
    """Developer items, tools in a namespace, a free-form tool, reasoning that nobody can read."""
    body, dropped = crossed(
        "responses",
        "chat",
        {
            "model": "m",
            "instructions": "You code.",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "dev"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {
                    "type": "function_call",
                    "name": "find",
                    "namespace": "crm",
                    "arguments": "",
                    "call_id": "a",
                },
                {"type": "custom_tool_call", "name": "patch", "input": "*** x", "call_id": "b"},
                {"type": "function_call_output", "call_id": "a", "output": "one"},
                {
                    "type": "custom_tool_call_output",
                    "call_id": "b",
                    "output": [{"type": "input_text", "text": "two"}],
                },
            ],
            "tools": [
                {"type": "function", "name": "sh", "parameters": SCHEMA, "strict": False},
                {
                    "type": "namespace",
                    "name": "crm",
                    "description": "d",
                    "tools": [{"type": "function", "name": "find", "parameters": SCHEMA}],
                },
                {
                    "type": "custom",
                    "name": "patch",
                    "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
                },
                {"type": "web_search"},
            ],
            "reasoning": {"effort": "high", "summary": "auto"},
            "include": ["reasoning.encrypted_content"],
            "store": False,
            "parallel_tool_calls": True,
            "stream": True,
        },
    )
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert body["messages"][0]["content"] == "You code.\n\ndev"
    made = body["messages"][2]["tool_calls"]
    assert [call["function"] for call in made] == [
        {"name": "crm__find", "arguments": "{}"},
        {"name": "patch", "arguments": '{"input":"*** x"}'},
    ]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["sh", "crm__find", "patch"]
    assert body["tools"][2]["function"]["parameters"] == FREE_FORM
    assert "start: X" in body["tools"][2]["function"]["description"]
    assert body["reasoning_effort"] == "high"
    assert set(dropped) == {
        "include",
        "store",
        "reasoning.summary",
        "tools[web_search]",
        "tools[namespace].description",
        "input[reasoning]",
    }


def test_chat_over_messages() -> None:
    body, dropped = crossed(
        "chat",
        "messages",
        {
            "model": "m",
            "messages": [
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "f:0", "type": "function", "function": {"name": "f", "arguments": "not json"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "f:0", "content": "done"},
                {"role": "system", "content": "Hurry."},
                {"role": "user", "content": "next"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "strict": True}}],
            "temperature": 1.5,
            "top_p": 0.5,
            "seed": 3,
            "n": 2,
            "reasoning_effort": "low",
            "stop": "END",
        },
    )
    assert body["system"] == "Be kind."
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert body["messages"][0]["content"] == [{"type": "image", "source": source}]
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "f_0_9bcce76c", "name": "f", "input": {"input": "not json"}}
    ]
    result, reminder, text = body["messages"][2]["content"]
    assert (result["tool_use_id"], result["content"]) == ("f_0_9bcce76c", [{"type": "text", "text": "done"}])
    assert (reminder["text"], text["text"]) == ("<system>\nHurry.\n</system>", "next")
    assert body["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert (body["max_tokens"], body["temperature"], body["stop_sequences"]) == (8192, 1.0, ["END"])
    assert set(dropped) == {
        "n",
        "seed",
        "temperature",
        "top_p",
        "reasoning_effort",
        "messages[].reasoning_content",
        "tools[].function.strict",
    }


@pytest.mark.parametrize(
    "body", [{"previous_response_id": "r"}, {"prompt": {"id": "p"}}, {"input": [{"type": "item_reference"}]}]
)
def test_what_only_the_provider_remembers_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="does not keep") as caught:
        crossed("responses", "chat", body)
    assert caught.value.hint


@given(namespace=st.text(max_size=80), name=st.text(max_size=80))
def test_a_flat_name_is_one_that_every_provider_takes(namespace: str, name: str) -> None:
    flat = flat_name(namespace, name)
    assert len(flat) <= 64
    assert all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in flat)


def test_an_estimate_grows_with_what_is_said() -> None:
    ask = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
    tools = {"tools": [{"name": "f", "input_schema": SCHEMA}], "system": "Be kind."}
    assert 4 < estimate(ask) < 15
    assert estimate(ask | tools) > estimate(ask) + 20
