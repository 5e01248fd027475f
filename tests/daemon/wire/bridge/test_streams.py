"""Streams over a bridge: they say what the buffered answer says, however the bytes are cut."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.wire.bridge.crossing import Crossing
from daemon.wire.bridge.translator import Translator
from daemon.wire.codec import codec_for
from daemon.wire.sse import data, split
from reef.errors import UpstreamFailed
from reef.ids import new_receipt
from reef.runtime import DIALECTS, Dialect
from tests import stub_dialects
from tests.daemon.wire.cutting import chunked
from tests.daemon.wire.test_answers import VALUES
from tests.stub_dialects import Reply, ToolCall, sse

RECEIPT = "0199a7c2-5b1e-7c3f-8a4d-1c2b3a495867"
PAIRS = list(permutations(DIALECTS, 2))
REPLIES = [
    Reply("Paris is é city."),
    Reply("", (ToolCall("look", {"at": "é"}, "call_a"), ToolCall("go", {}, "call_b"))),
    Reply("I look.", (ToolCall("look", {"at": [1, {"b": None}]}),), thinking="hm well"),
]


FINISHED: dict[Dialect, str] = {"chat": "stop", "messages": "end_turn", "responses": "completed"}


def crossing(upstream: Dialect, client: Dialect, **payload: Any) -> Crossing:
    return Crossing(client, upstream, {"stream_options": {"include_usage": True}, **payload}, RECEIPT)


def said(client: Dialect, response: Any) -> tuple[str, list[tuple[str, str, Any]]]:
    """Text and calls of an answer as its client's turn has them."""
    turn = codec_for(client).turn(response) or {"content": ""}
    calls = turn.get("tool_calls", [])
    return turn["content"], [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
    ]


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("reply", REPLIES, ids=["text", "calls", "all"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_stream_says_what_the_buffered_answer_says(
    upstream: Dialect, client: Dialect, reply: Reply, data: st.DataObject
) -> None:
    over = crossing(upstream, client)
    codec = codec_for(client)
    raw = b"".join(stub_dialects.streamed(upstream, reply, "m", 1, "hi there"))
    whole = over.translator().feed(raw)
    cut = over.translator()
    chunks = data.draw(chunked(raw))
    assert b"".join(cut.feed(chunk) for chunk in chunks) + cut.end() == whole

    buffered = json.dumps(stub_dialects.buffered(upstream, reply, "m", 1, "hi there")).encode()
    answer = codec.parse(over.answer(buffered), stream=False)
    streamed = codec.parse(whole, stream=True)
    assert said(client, answer.response) == said(client, streamed.response)
    assert said(client, answer.response) == (reply.text, [(c.id, c.name, c.arguments) for c in reply.calls])
    for field in ("text", "model", "finish", "input_tokens", "output_tokens", "cached_tokens", "aliases"):
        assert getattr(answer, field) == getattr(streamed, field), field
    assert (answer.input_tokens, answer.cached_tokens) == (2, 0)
    assert over.parse(raw, stream=True).text == over.parse(buffered, stream=False).text == reply.text
    digits = RECEIPT.replace("-", "")
    assert answer.aliases[0].endswith(digits)
    if client != "chat":
        assert loaded(streamed.response) == loaded(answer.response)
    if reply.thinking and upstream != "responses":
        assert reply.thinking in json.dumps(answer.response)


def loaded(value: Any) -> Any:
    """With arguments read: the spaces in them are the upstream's own."""
    if isinstance(value, list):
        return [loaded(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: json.loads(v) if key == "arguments" else loaded(v) for key, v in value.items()}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return sse({"id": "c", "model": "m", "choices": [choice], **more})


def call(index: int | None, arguments: str, name: str = "", identity: str = "") -> bytes:
    part: dict[str, Any] = {"function": {"arguments": arguments} | ({"name": name} if name else {})}
    part |= {} if index is None else {"index": index}
    part |= {"id": identity} if identity else {}
    return chunk({"tool_calls": [part]})


ENDING = (
    chunk({}, "tool_calls"),
    sse({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}),
)


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize(
    "events",
    [
        (call(0, "", "f", "a"), call(1, "", "g", "b"), call(1, '{"y"'), call(0, '{"x":1}'), call(1, ":2}")),
        (call(0, '{"x":1}', "f", "a"), call(1, '{"y":2}', "g", "b")),
        (call(None, '{"x":1}', "f", "a"), call(None, '{"y":2}', "g", "b")),
        (call(0, '{"x":1}', "f", "a"), call(0, '{"y":2}', "g", "b")),
        (call(0, '{"x"', "", "a"), call(0, ":1}", "f"), call(1, "", "g", "b"), call(1, '{"y":2}')),
    ],
    ids=["interleaved", "in a row", "no index", "one index", "late name"],
)
def test_calls_come_one_after_another_however_the_upstream_mixes_them(
    client: Dialect, events: tuple[bytes, ...]
) -> None:
    translator = crossing("chat", client).translator()
    out = translator.feed(b"".join((*events, *ENDING, b"data: [DONE]\n\n")))
    parsed = codec_for(client).parse(out, stream=True)
    assert said(client, parsed.response)[1] == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]
    assert (parsed.input_tokens, parsed.output_tokens) == (9, 4)
    open_blocks = 0
    for event in split(out)[0]:
        if client == "messages":
            open_blocks += (b"content_block_start" in event[:30]) - (b"content_block_stop" in event[:30])
            assert open_blocks in (0, 1)


def test_ids_that_the_upstream_leaves_out_are_made_of_the_receipt() -> None:
    over = crossing("chat", "messages")
    out = over.translator().feed(b"".join((call(0, "{}", "f"), *ENDING, b"data: [DONE]\n\n")))
    assert f"call_{RECEIPT.replace('-', '')}_0".encode() in out
    assert over.translator().feed(b"".join((call(0, "{}", "f"), *ENDING, b"data: [DONE]\n\n"))) == out


@pytest.mark.parametrize("stream", [True, False])
def test_codexs_tools_come_back_as_it_knows_them(stream: bool) -> None:
    spaced = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "find"}]}
    over = crossing("chat", "responses", tools=[spaced, {"type": "custom", "name": "patch"}])
    reply = Reply("", (ToolCall("crm__find", {"x": 1}, "a"), ToolCall("patch", {"input": '*** "é"\n'}, "b")))
    if stream:
        raw = b"".join(stub_dialects.streamed("chat", reply, "m", 1, "hi"))
        out = over.translator().feed(raw)
        assert b"response.custom_tool_call_input.done" in out
    else:
        raw = json.dumps(stub_dialects.buffered("chat", reply, "m", 1, "hi")).encode()
        out = over.answer(raw)
    response = codec_for("responses").parse(out, stream=stream).response
    assert response is not None
    first, second = response["output"]
    assert (first["type"], first["name"], first["namespace"]) == ("function_call", "find", "crm")
    assert (second["type"], second["name"], second["input"]) == ("custom_tool_call", "patch", '*** "é"\n')


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_an_error_in_the_stream_is_the_clients_own_error_event(upstream: Dialect, client: Dialect) -> None:
    events = list(stub_dialects.streamed(upstream, Reply("a b c"), "m", 1, "hi"))[:3]
    translator = crossing(upstream, client).translator()
    out = translator.feed(b"".join((*events, codec_for(upstream).error_event("too hot"), *events)))
    last = split(out)[0][-1]
    assert codec_for(client).mark(last).name == "ERROR"
    assert b"502 upstream overloaded: too hot" in last
    assert translator.end() == b""


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "server_error", "message": "too hot"}},
        {"type": "error", "message": "too hot"},
        {"type": "response.failed", "response": {"status": "failed", "error": {"message": "too hot"}}},
        {"error": {"message": "too hot"}},
        {"error": "too hot"},
    ],
    ids=["nested", "flat", "failed", "bare", "text"],
)
def test_the_words_of_an_error_cross_however_it_is_put(
    upstream: Dialect, client: Dialect, event: dict[str, Any]
) -> None:
    if (upstream == "chat" and "error" not in event) or (upstream == "messages" and "response" in event):
        return
    out = crossing(upstream, client).translator().feed(sse(event))
    assert b"502 upstream overloaded: too hot" in split(out)[0][-1]


NO_ARGUMENTS: dict[Dialect, list[bytes]] = {
    "chat": [call(0, "", "now", "a"), chunk({}, "tool_calls"), b"data: [DONE]\n\n"],
    "messages": [
        sse({"type": "message_start", "message": {"id": "m", "model": "m"}}),
        sse(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "a", "name": "now", "input": {}},
            }
        ),
        sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": ""},
            }
        ),
        sse({"type": "content_block_stop", "index": 0}),
        sse({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        sse({"type": "message_stop"}),
    ],
    "responses": [
        sse({"type": "response.created", "response": {"id": "r", "model": "m"}}),
        sse(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "function_call", "call_id": "a", "name": "now", "arguments": ""},
            }
        ),
        sse(
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {"type": "function_call", "call_id": "a", "name": "now", "arguments": ""},
            }
        ),
        sse({"type": "response.completed", "response": {"status": "completed", "output": [{}]}}),
    ],
}


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_call_without_arguments_has_an_empty_object(upstream: Dialect, client: Dialect) -> None:
    """As the buffered answer has; clients parse what they get."""
    out = crossing(upstream, client).translator().feed(b"".join(NO_ARGUMENTS[upstream]))
    assert said(client, codec_for(client).parse(out, stream=True).response)[1] == [("a", "now", {})]
    events = [json.loads(data(event)) for event in split(out)[0] if data(event) != b"[DONE]"]
    if client == "responses":
        (whole,) = [event for event in events if event["type"] == "response.function_call_arguments.done"]
        assert whole["arguments"] == events[-1]["response"]["output"][0]["arguments"] == "{}"


IDLE = [
    b"data: null\n\n",
    b"event: ping\ndata: now\n\n",
    b"event: keepalive\ndata: keepalive\n\n",
    b": processing\n\n",
    b"event: ping\ndata: \n\n",
]
"""Events that keep a connection open."""
LATE = [b"data: closed\n\n", b'data: {"half\n\n', b"data: [DONE]\n\n", b'data: "[DONE]"\n\n']


@pytest.mark.parametrize(("upstream", "client"), [*PAIRS, *((each, each) for each in DIALECTS)])
def test_what_says_nothing_among_the_events_is_no_harm(upstream: Dialect, client: Dialect) -> None:
    """Neither does a mark of byte order before them, nor anything after the answer has its end."""
    events = list(stub_dialects.streamed(upstream, Reply("a b c"), "m", 1, "hi"))
    whole = next(at for at, event in enumerate(events) if b'_reason": "' in event or b".completed" in event)
    odd = b"\xef\xbb\xbf" + b"".join(
        (events[0], *IDLE, *events[1 : whole + 1], *LATE[:2], *events[whole + 1 :], *LATE)
    )
    if upstream == client:
        parsed = codec_for(client).parse(odd, stream=True)
        assert parsed.unread is None
    else:
        parsed = crossing(upstream, client).parse(odd, stream=True)
    assert (parsed.text, parsed.finish) == ("a b c", FINISHED[client])


def test_a_stream_of_any_dialect_may_end_as_one_of_chat_does() -> None:
    events = list(stub_dialects.streamed("messages", Reply("a b c"), "m", 1, "hi"))[:-1]
    out = crossing("messages", "chat").translator().feed(b"".join((*events, b"data: [DONE]\n\n")))
    assert codec_for("chat").parse(out, stream=True).finish == "stop"
    assert out.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_stream_that_is_cut_has_no_end(upstream: Dialect, client: Dialect) -> None:
    events = list(stub_dialects.streamed(upstream, Reply("a b c"), "m", 1, "hi"))[:4]
    translator = crossing(upstream, client).translator()
    out = translator.feed(b"".join(events)) + translator.end()
    assert all(codec_for(client).mark(event).name == "NONE" for event in split(out)[0])


@pytest.mark.parametrize(
    ("reason", "stop", "status"),
    [
        ("stop", "end_turn", "completed"),
        ("length", "max_tokens", "incomplete"),
        (None, "end_turn", "completed"),
    ],
)
def test_stop_reasons_have_their_counterparts(reason: str | None, stop: str, status: str) -> None:
    raw = chunk({"content": "x"}) + (chunk({}, reason) if reason else b"") + b"data: [DONE]\n\n"
    claude = codec_for("messages").parse(crossing("chat", "messages").translator().feed(raw), stream=True)
    codex = codec_for("responses").parse(crossing("chat", "responses").translator().feed(raw), stream=True)
    assert (claude.finish, codex.finish) == (stop, status)
    assert claude.response is not None
    assert crossing("chat", "messages").parse(raw, stream=True).input_tokens is None


def test_a_stream_without_its_last_words_ends_all_the_same() -> None:
    translator = crossing("chat", "messages").translator()
    out = translator.feed(b": wait\n\n" + chunk({"content": "x"}) + chunk({}, "stop").rstrip())
    assert out.startswith(b": keep-alive\n\n")
    assert b"message_stop" in translator.end()


def test_cached_tokens_are_counted_as_each_dialect_counts_them() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5}
    message = {"content": [], "stop_reason": "end_turn", "usage": usage | {"output_tokens": 3}}
    over = crossing("messages", "chat")
    told = json.loads(over.answer(json.dumps(message).encode()))["usage"]
    assert (told["prompt_tokens"], told["total_tokens"]) == (100, 103)
    assert told["prompt_tokens_details"] == {"cached_tokens": 90}
    spent = {"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 90}}
    back = crossing("chat", "messages").answer(
        json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": spent}).encode()
    )
    assert json.loads(back)["usage"]["input_tokens"] == 10


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@given(events=st.lists(VALUES, max_size=5), body=st.binary(max_size=40))
def test_garbage_crosses_without_complaint(
    upstream: Dialect, client: Dialect, events: list[Any], body: bytes
) -> None:
    over = Crossing(client, upstream, {}, new_receipt())
    translator = over.translator()
    assert isinstance(translator, Translator)
    translator.feed(b"".join(sse(event) for event in events) + body)
    translator.end()
    for event in events:
        over.parse(json.dumps(event).encode(), stream=False)
    over.parse(body, stream=False)
    with pytest.raises(UpstreamFailed, match=r"no answer of the dialect `.*`: <html>"):
        over.answer(b"<html>")
