"""What providers are known to refuse, and what some of them say in words of their own."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.bridge.crossing import Crossing, cross
from daemon.wire.codec import codec_for
from daemon.wire.sse import data, split
from reef.ids import new_receipt
from reef.runtime import Dialect
from tests.stub_dialects import sse

HI = [{"role": "user", "content": "hi"}]
CLIENTS: list[Dialect] = ["messages", "responses"]
CLOSED = {
    "type": "object",
    "properties": {
        "properties": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        },
        "any": {"type": "object"},
        "both": {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "one": {"enum": [{"type": "object"}]},
    },
    "additionalProperties": False,
}
OPEN = {
    "type": "object",
    "properties": {
        "properties": {"type": "object", "properties": {"a": {}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        "any": {"type": "object"},
        "both": {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "one": {"enum": [{"type": "object"}]},
    },
}


def crossing(client: Dialect, upstream: Dialect, **payload: Any) -> Crossing:
    key = "input" if client == "responses" else "messages"
    return cross(client, upstream, {"model": "m", key: HI, **payload}, new_receipt())


def body_of(client: Dialect, upstream: Dialect, **payload: Any) -> Any:
    return json.loads(crossing(client, upstream, **payload).body)


def test_objects_of_a_schema_are_closed_for_messages() -> None:
    named = {"name": "n", "schema": OPEN}
    wanted = {"type": "json_schema", "json_schema": named}
    said = body_of("chat", "messages", response_format=wanted)
    assert said["output_config"]["format"]["schema"] == CLOSED
    said = body_of("responses", "messages", text={"format": {"type": "json_schema", **named}})
    assert said["output_config"]["format"]["schema"] == CLOSED


def test_an_object_without_a_schema_is_listed() -> None:
    shape = {"type": "json_object"}
    over = crossing("chat", "messages", response_format=shape)
    assert over.dropped == ("response_format",)
    assert b"output_config" not in over.body
    assert crossing("responses", "messages", text={"format": shape}).dropped == ("text.format",)
    assert body_of("responses", "chat", text={"format": shape})["response_format"] == shape
    named = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    assert crossing("chat", "messages", response_format=named).dropped == ("response_format",)


def test_stop_sequences_that_say_nothing_are_listed() -> None:
    over = crossing("chat", "messages", stop=["a", "", " ", "\n"])
    assert (json.loads(over.body)["stop_sequences"], over.dropped) == (["a"], ("stop",))
    over = crossing("messages", "chat", stop_sequences=["", "\n"])
    assert (json.loads(over.body)["stop"], over.dropped) == (["\n"], ("stop_sequences",))


HUGE = 2**64


def test_numbers_keep_all_their_digits() -> None:
    for number in (HUGE, -HUGE, 2**64 - 1, 10**40):
        use = {"type": "tool_use", "id": "a", "name": "f", "input": {"id": number}}
        result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
        turns = [*HI, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        said = body_of("messages", "chat", messages=turns)
        (call,) = said["messages"][1]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"id": number}
        turns = [*HI, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a"}]
        assert body_of("chat", "messages", messages=turns)["messages"][1]["content"][0]["input"] == {
            "id": number
        }


def answered(over: Crossing, name: str) -> list[str]:
    """What the client's calls are named, buffered and streamed, where the upstream calls `name`."""
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": "{}"}}
    whole = {"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    delta = {"tool_calls": [{"index": 0, **call}]}
    events = sse({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})
    told = [over.parse(json.dumps(whole).encode(), stream=False), over.parse(events, stream=True)]
    found = []
    for parsed in told:
        assert parsed.response is not None
        for item in parsed.response.get("content") or parsed.response["output"]:
            found.append(item["name"])
    return found


@pytest.mark.parametrize("client", CLIENTS)
@given(name=st.from_regex(r"\A[a-zA-Z0-9_.-]{1,128}\Z"), like=st.sampled_from(["", "x", "."]))
def test_names_of_tools_fit_and_come_back(client: Dialect, name: str, like: str) -> None:
    names = [name, (name + like)[-128:]]
    names = names[: len(set(names))]
    schema = {"type": "object"}
    if client == "messages":
        tools = [{"name": each, "input_schema": schema} for each in names]
        use = {"type": "tool_use", "id": "a", "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
        said: dict[str, Any] = {
            "messages": [*HI, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}],
            "tool_choice": {"type": "tool", "name": name},
        }
    else:
        tools = [{"type": "function", "name": each, "parameters": schema} for each in names]
        use = {"type": "function_call", "call_id": "a", "name": name, "arguments": "{}"}
        said = {
            "input": [*HI, use, {"type": "function_call_output", "call_id": "a", "output": "1"}],
            "tool_choice": {"type": "function", "name": name},
        }
    over = crossing(client, "chat", tools=tools, **said)
    body = json.loads(over.body)
    offered = [tool["function"]["name"] for tool in body["tools"]]
    assert len(set(offered)) == len(names)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in offered)
    (call,) = next(turn["tool_calls"] for turn in body["messages"] if turn.get("tool_calls"))
    assert call["function"]["name"] == body["tool_choice"]["function"]["name"] == offered[0]
    for its, fits in zip(names, offered, strict=True):
        assert answered(over, fits) == [its] * 2
    gone = json.loads(crossing(client, "chat", **said | {"tool_choice": None}).body)
    (call,) = next(turn["tool_calls"] for turn in gone["messages"] if turn.get("tool_calls"))
    assert call["function"]["name"] == offered[0], "also where the tool is not offered any more"


def test_an_answers_numbers_keep_their_digits() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 10**24 + 1}}
    whole = {"type": "message", "content": [use], "stop_reason": "tool_use"}
    for client in ("chat", "responses"):
        assert str(10**24 + 1) in crossing(client, "messages").answer(json.dumps(whole).encode()).decode()


def test_a_tool_that_is_gone_is_not_demanded() -> None:
    tools = [
        {"name": "a", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web"},
    ]
    over = crossing("messages", "chat", tools=tools, tool_choice={"type": "tool", "name": "web"})
    assert "tool_choice" not in json.loads(over.body)
    assert over.dropped == ("tools[web_search_20250305]", "tool_choice")


def test_ids_of_calls_stay_apart() -> None:
    calls = [{"id": each, "type": "function", "function": {"name": "f"}} for each in ("a.b", "a/b", "a_b")]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "1"} for each in calls]
    said = body_of("chat", "messages", messages=[*HI, {"role": "assistant", "tool_calls": calls}, *results])
    ids = [block["id"] for block in said["messages"][1]["content"]]
    assert len(set(ids)) == 3
    assert ids == [block["tool_use_id"] for block in said["messages"][2]["content"]]
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", each) for each in ids)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_without_a_reason_for_its_end_has_ended(client: Dialect) -> None:
    whole = {"choices": [{"message": {"content": "hi"}, "finish_reason": None}]}
    told = json.loads(crossing(client, "chat").answer(json.dumps(whole).encode()))
    assert told["stop_reason" if client == "messages" else "status"] in ("end_turn", "completed")


@pytest.mark.parametrize("client", CLIENTS)
def test_null_for_arguments_is_none(client: Dialect) -> None:
    over = crossing(client, "chat")
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "null"}}
    whole = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "nu"}},
        {"index": 0, "function": {"arguments": "ll"}},
    ]
    events = b"".join(sse({"choices": [{"delta": {"tool_calls": [each]}}]}) for each in pieces)
    events += sse({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    for body, stream in ((json.dumps(whole).encode(), False), (events, True)):
        response = over.parse(body, stream=stream).response
        assert response is not None
        (item,) = response["content" if client == "messages" else "output"]
        assert (item["input"] if client == "messages" else json.loads(item["arguments"])) == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_event_in_a_shape_of_its_own_keeps_its_words(client: Dialect) -> None:
    event = sse({"message": "x broke", "code": 500}, "error")
    assert b"x broke" in crossing(client, "chat").translator().feed(event)
    assert codec_for("chat").mark(event).name == "ERROR"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call_as_older_servers_put_it_is_one(client: Dialect) -> None:
    over = crossing(client, "chat")
    call = {"name": "f", "arguments": '{"a": 1}'}
    whole = {
        "choices": [{"message": {"content": None, "function_call": call}, "finish_reason": "function_call"}]
    }
    pieces = [{"name": "f", "arguments": '{"a"'}, {"arguments": ": 1}"}]
    events = b"".join(sse({"choices": [{"delta": {"function_call": each}}]}) for each in pieces)
    events += sse({"choices": [{"delta": {}, "finish_reason": "function_call"}]}) + b"data: [DONE]\n\n"
    for body, stream in ((json.dumps(whole).encode(), False), (events, True)):
        response = over.parse(body, stream=stream).response
        assert response is not None
        (item,) = response["content" if client == "messages" else "output"]
        told = item["input"] if client == "messages" else json.loads(item["arguments"])
        assert (item["name"], told) == ("f", {"a": 1})


def test_thoughts_among_the_parts_of_a_content_are_thoughts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]
    whole = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    events = sse({"choices": [{"delta": {"content": parts[:1]}}]})
    events += sse({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]})
    over = crossing("messages", "chat")
    for body, stream in ((json.dumps(whole).encode(), False), (events + b"data: [DONE]\n\n", True)):
        response = over.parse(body, stream=stream).response
        assert response is not None
        thought, said = response["content"]
        assert (thought["thinking"], said["text"]) == ("hm", "yes")


@pytest.mark.parametrize("upstream", ["chat", "messages"])
def test_the_error_that_ends_a_responses_stream_counts_on(upstream: Dialect) -> None:
    """And tells what there is of the answer."""
    codec = codec_for(upstream)
    translator = crossing("responses", upstream).translator()
    first = {"choices": [{"delta": {"content": "hi"}}]}
    if upstream == "messages":
        first = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
    out = translator.feed(sse(first) + codec.error_event("too hot"))
    events = [json.loads(data(event)) for event in split(out)[0]]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["id"] == events[0]["response"]["id"]
