"""What goes over no bridge is refused, or listed: no member of a request is left out without a word."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.bridge.crossing import Crossing, cross
from reef.errors import Invalid
from reef.ids import new_receipt
from reef.runtime import DIALECTS, Dialect
from tests.daemon.wire.test_answers import VALUES

PIXEL = "data:image/png;base64,iVBORw0KGgo="
HI: dict[Dialect, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "messages": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
}
"""A request of each dialect that crosses whole."""


def others(client: Dialect) -> list[Dialect]:
    return [dialect for dialect in DIALECTS if dialect != client]


def user(*content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, *content]}]}


def image(**source: Any) -> dict[str, Any]:
    return user({"type": "image", "source": source})


def item(*content: Any) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}, *content]}]}


REFUSED: list[tuple[Dialect, dict[str, Any], str]] = [
    ("messages", {"messages": "hello"}, "messages"),
    ("messages", {"messages": [None]}, "messages"),
    ("messages", {"max_tokens": "many"}, "max_tokens"),
    ("messages", {"tools": "x"}, "tools"),
    ("messages", {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
    ("messages", user("bare"), "messages[0].content[1]"),
    ("messages", user({"type": "text", "text": 5}), "messages[0].content[1].text"),
    ("messages", user({"type": "text"}), "messages[0].content[1].text"),
    ("messages", image(type="base64"), "messages[0].content[1].source"),
    ("messages", image(type="base64", media_type="image/png"), "messages[0].content[1].source"),
    ("messages", image(type="base64", media_type=7, data="x"), "messages[0].content[1].source"),
    ("messages", image(type="url", url=None), "messages[0].content[1].source"),
    ("messages", user({"type": "image"}), "messages[0].content[1].source"),
    ("messages", user({"type": "tool_use", "id": 5, "name": "f"}), "messages[0].content[1].id"),
    (
        "messages",
        user({"type": "tool_result", "tool_use_id": "a", "content": 5}),
        "messages[0].content[1].content",
    ),
    (
        "messages",
        user({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}),
        "messages[0].content[1].content[0].source",
    ),
    ("messages", user({"type": "tool_result", "is_error": "no"}), "messages[0].content[1].is_error"),
    ("messages", {"system": 5}, "system"),
    ("messages", {"system": [5]}, "system[0]"),
    ("messages", {"tool_choice": "auto"}, "tool_choice"),
    ("messages", {"tool_choice": {"type": "any", "disable_parallel_tool_use": 1}}, "tool_choice.disable"),
    ("messages", {"output_config": []}, "output_config"),
    ("messages", {"output_config": {"format": "bad"}}, "output_config.format"),
    ("messages", {"stop_sequences": 5}, "stop_sequences"),
    ("messages", {"stop_sequences": ["a", 5]}, "stop_sequences"),
    ("messages", {"temperature": "hot"}, "temperature"),
    ("messages", {"stream": "yes"}, "stream"),
    ("messages", {"model": 5}, "model"),
    ("chat", {"messages": {"role": "user"}}, "messages"),
    ("chat", {"functions": [{"name": "f"}]}, "functions"),
    (
        "chat",
        {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]},
        "function_call",
    ),
    ("chat", {"messages": [{"role": "function", "name": "f", "content": "done"}]}, "function_call"),
    ("chat", {"messages": [{"role": "user", "content": {"text": "hi"}}]}, "messages[0].content"),
    ("chat", user(5), "messages[0].content[1]"),
    ("chat", user({"type": "image_url", "image_url": {}}), "messages[0].content[1].image_url"),
    ("chat", user({"type": "text", "text": None}), "messages[0].content[1].text"),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": "x"}]}, "messages[0].tool_calls"),
    (
        "chat",
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": 5}}]}]},
        "messages[0].tool_calls[0].function.name",
    ),
    ("chat", {"messages": [{"role": "tool", "tool_call_id": 5}]}, "messages[0].tool_call_id"),
    ("chat", {"seed": "7"}, "seed"),
    ("chat", {"stream": 1}, "stream"),
    ("chat", {"stop": 5}, "stop"),
    ("chat", {"tool_choice": 5}, "tool_choice"),
    ("chat", {"response_format": "json"}, "response_format"),
    ("chat", {"reasoning_effort": 5}, "reasoning_effort"),
    ("chat", {"stream_options": True}, "stream_options"),
    ("chat", {"stream_options": {"include_usage": "yes"}}, "stream_options.include_usage"),
    ("responses", {"input": [1]}, "input"),
    ("responses", {"input": 7}, "input"),
    ("responses", {"input": [{"role": "user", "content": True}]}, "input[0].content"),
    ("responses", {"input": [{"type": 5}]}, "input[0].type"),
    ("responses", item({"type": "input_text"}), "input[0].content[1].text"),
    ("responses", item({"type": "input_image"}), "input[0].content[1].image_url"),
    ("responses", {"input": [{"type": "function_call_output", "output": 5}]}, "input[0].output"),
    ("responses", {"input": [{"type": "custom_tool_call", "input": 5}]}, "input[0].input"),
    ("responses", {"max_output_tokens": True}, "max_output_tokens"),
    ("responses", {"parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ("responses", {"instructions": 7}, "instructions"),
    ("responses", {"reasoning": "x"}, "reasoning"),
    ("responses", {"reasoning": {"effort": 5}}, "reasoning.effort"),
    ("responses", {"text": "bad"}, "text"),
    ("responses", {"text": {"format": "bad"}}, "text.format"),
    ("responses", {"tool_choice": []}, "tool_choice"),
    ("responses", {"tools": [{"type": "namespace", "name": "n", "tools": 5}]}, "tools[0].tools"),
]


@pytest.mark.parametrize(("client", "payload", "path"), REFUSED)
def test_what_no_provider_takes_is_refused_by_its_path(
    client: Dialect, payload: dict[str, Any], path: str
) -> None:
    for upstream in DIALECTS:
        with pytest.raises(Invalid) as refused:
            cross(client, upstream, HI[client] | payload, new_receipt())
        assert refused.value.message.startswith(f"`{path}")
        assert refused.value.hint
        assert Crossing(client, upstream, HI[client] | payload, new_receipt()).body, "what was stored is read"


DREW = {
    "role": "assistant",
    "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": PIXEL}],
}
LISTED: list[tuple[Dialect, dict[str, Any], str]] = [
    ("messages", {"tool_choice": {"type": "weird"}}, "tool_choice"),
    ("messages", {"tool_choice": {"type": "tool"}}, "tool_choice"),
    ("messages", {"tool_choice": {"type": "any"}}, "tool_choice"),  # there are no tools
    ("messages", {"output_config": {"format": {"type": "weird"}}}, "output_config.format"),
    ("messages", {"tools": [{"name": "f", "input_schema": "x"}]}, "tools[].input_schema"),
    ("messages", {"tools": [{"name": "f", "description": 5}]}, "tools[].description"),
    ("messages", image(type="file", file_id="f"), "messages[].content[image]"),
    ("messages", user({"type": "document"}), "messages[].content[document]"),
    ("messages", user({"type": "tool_use", "id": "a", "name": "f"}), "messages[].content[toolcall]"),
    ("messages", user({"type": "thinking", "signature": "s"}), "messages[].content[thinking]"),
    (
        "messages",
        {"system": [{"type": "image", "source": {"type": "url", "url": "https://h.example/a.png"}}]},
        "system[image]",
    ),
    (
        "messages",
        user({"type": "tool_result", "content": [{"type": "tool_use", "id": "a"}]}),
        "messages[].content[].content[toolcall]",
    ),
    ("chat", {"tool_choice": "sometimes"}, "tool_choice"),
    ("chat", {"tool_choice": {"type": "weird", "name": "f"}}, "tool_choice"),
    ("chat", {"tool_choice": {"type": "allowed_tools", "mode": "weird"}}, "tool_choice.mode"),
    ("chat", {"tool_choice": "required"}, "tool_choice"),
    ("chat", {"response_format": {"type": "weird"}}, "response_format"),
    ("chat", {"response_format": {"type": "json_schema"}}, "response_format"),
    (
        "chat",
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "description": "d"}}},
        "response_format.json_schema.description",
    ),
    ("chat", {"seed": 0.5}, "seed"),
    ("chat", {"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
    ("chat", {"tools": [{"function": {"name": "f", "strict": "x"}}]}, "tools[].function.strict"),
    ("chat", {"tools": [{"function": {"name": "f"}, "cache_control": {"a": 1}}]}, "tools[].cache_control"),
    (
        "chat",
        user({"type": "image_url", "image_url": {"url": PIXEL, "format": "png"}}),
        "messages[].content[].image_url.format",
    ),
    ("chat", {"messages": [DREW, *HI["chat"]["messages"]]}, "messages[].content[image]"),
    (
        "chat",
        {"messages": [{"role": "assistant", "content": "a", "reasoning": {"a": 1}}, *HI["chat"]["messages"]]},
        "messages[].reasoning",
    ),
    ("responses", {"tool_choice": {"type": "mcp", "name": "f"}}, "tool_choice"),
    ("responses", {"text": {"format": {"type": "weird"}}}, "text.format"),
    ("responses", {"tools": [{"type": "custom", "name": "f", "format": 5}]}, "tools[].format"),
    ("responses", {"tools": [{"type": "custom", "name": "f", "format": {"type": "x"}}]}, "tools[].format"),
    ("responses", item({"type": "input_image", "file_id": "f"}), "input[].content[input_image]"),
    ("responses", item({"type": "input_image", "image_url": PIXEL, "detail": 5}), "input[].content[].detail"),
    ("responses", {"input": [{"type": "function_call", "caller": "x"}, *item()["input"]]}, "input[].caller"),
]


@pytest.mark.parametrize(("client", "payload", "path"), LISTED)
def test_what_has_no_counterpart_is_listed(client: Dialect, payload: dict[str, Any], path: str) -> None:
    for upstream in others(client):
        crossing = cross(client, upstream, HI[client] | payload, new_receipt())
        assert path in crossing.dropped
        assert json.loads(crossing.body)


KEYS: dict[Dialect, tuple[str, ...]] = {
    "chat": (
        *("model", "tools", "tool_choice", "max_completion_tokens", "top_p", "top_k", "seed"),
        *("presence_penalty", "frequency_penalty", "stop"),
        *("reasoning_effort", "response_format", "other"),
    ),
    "messages": (
        *("model", "system", "tools", "tool_choice", "top_p", "top_k"),
        *("stop_sequences", "output_config", "thinking", "other"),
    ),
    "responses": (
        *("model", "instructions", "tools", "tool_choice", "max_output_tokens"),
        *("top_p", "reasoning", "text", "other"),
    ),
}
"""Members that never say what is so without them."""


def says_something(value: Any) -> bool:
    """Whether there is anything in a value that could vanish."""
    if isinstance(value, dict | list):
        return any(
            says_something(member) for member in (value.values() if isinstance(value, dict) else value)
        )
    return value not in (None, "")


@pytest.mark.parametrize("client", DIALECTS)
@given(data=st.data(), value=VALUES.filter(says_something))
def test_nothing_vanishes_without_a_word(client: Dialect, data: st.DataObject, value: Any) -> None:
    """Whatever a member holds, the request is refused, the member is listed, or what goes on differs."""
    key = data.draw(st.sampled_from(KEYS[client]))
    for upstream in others(client):
        plain = cross(client, upstream, HI[client], new_receipt())
        try:
            crossing = cross(client, upstream, HI[client] | {key: value}, new_receipt())
        except Invalid:
            continue
        listed = any(path.startswith(key) for path in crossing.dropped)
        assert listed or crossing.body != plain.body or value in ("auto", "none")


DOCUMENT = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}
FILE = {"type": "input_file", "file_id": "file-1"}
SYSTEM = "<system>\nYou help.\n</system>"
BEFORE = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
NOTHING: list[tuple[Dialect, dict[str, Any]]] = [
    ("messages", {}),
    ("messages", {"messages": []}),
    ("messages", {"messages": None}),
    ("messages", {"messages": [{"role": "user", "content": []}]}),
    ("messages", {"messages": [{"role": "user", "content": [DOCUMENT]}]}),
    ("messages", {"system": "You help.", "messages": [{"role": "user", "content": [DOCUMENT]}]}),
    ("messages", {"messages": [*BEFORE, {"role": "user", "content": [DOCUMENT]}]}),
    ("chat", {}),
    ("chat", {"messages": []}),
    ("chat", {"messages": [{"role": "user", "content": [AUDIO]}]}),
    ("chat", {"messages": [*BEFORE, {"role": "user", "content": [AUDIO]}]}),
    ("responses", {}),
    ("responses", {"input": None}),
    ("responses", {"input": []}),
    ("responses", {"input": ""}),
    ("responses", {"input": [{"role": "user", "content": [FILE]}]}),
    ("responses", {"instructions": "You help.", "input": [{"role": "user", "content": [FILE]}]}),
    ("responses", {"input": [{"type": "web_search_call", "id": "w"}]}),
]


@pytest.mark.parametrize(("client", "payload"), NOTHING)
def test_a_request_of_which_nothing_is_left_is_refused(client: Dialect, payload: dict[str, Any]) -> None:
    key = "input" if client == "responses" else "messages"
    for upstream in others(client):
        with pytest.raises(Invalid, match=f"`{key}`") as refused:
            cross(client, upstream, payload, new_receipt())
        assert refused.value.hint
        assert Crossing(client, upstream, payload, new_receipt()).body


@pytest.mark.parametrize(
    ("client", "payload"),
    [
        ("messages", {"system": "You help.", "messages": []}),
        ("responses", {"instructions": "You help."}),
        ("responses", {"input": [{"role": "developer", "content": "You help."}]}),
        ("chat", {"messages": [{"role": "system", "content": "You help."}]}),
        ("chat", {"messages": [{"role": "developer", "content": "You help."}]}),
    ],
)
def test_a_system_text_alone_is_what_is_asked(client: Dialect, payload: dict[str, Any]) -> None:
    """Providers that keep it apart want a conversation beside it."""
    asked: dict[Dialect, Any] = {
        "chat": [{"role": "system", "content": "You help."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": SYSTEM}]}],
        "responses": [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "You help."}]}
        ],
    }
    for upstream in others(client):
        body = json.loads(cross(client, upstream, payload, new_receipt()).body)
        assert body["input" if upstream == "responses" else "messages"] == asked[upstream]
        assert not {"system", "instructions"} & body.keys()


@pytest.mark.parametrize("client", ["chat", "messages"])
@pytest.mark.parametrize("content", ["", [], [{"type": "text", "text": ""}]])
def test_a_blank_turn_is_called_that(client: Dialect, content: Any) -> None:
    """And no document is made responsible for it."""
    payload = {"messages": [*BEFORE, {"role": "user", "content": content}]}
    for upstream in others(client):
        if content:
            with pytest.raises(Invalid, match="the last turn of `messages` says nothing"):
                cross(client, upstream, payload, new_receipt())


def test_a_document_beside_a_text_is_listed() -> None:
    """Also in a message of its own: the two are one turn."""
    for said in ([DOCUMENT, {"type": "text", "text": "and?"}], "and?"):
        messages = [{"role": "user", "content": [DOCUMENT]}, {"role": "user", "content": said}]
        for turn in (messages, messages[::-1]):
            crossing = cross("messages", "chat", {"messages": turn}, new_receipt())
            assert json.loads(crossing.body)["messages"] == [{"role": "user", "content": "and?"}]
            assert crossing.dropped == ("messages[].content[document]",)
