"""Reading answers: a stream says what the buffered form says, and garbage says nothing."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for, dialect_of
from daemon.wire.parsing import forgiving
from reef.errors import Unavailable
from reef.ids import new_receipt
from reef.runtime import DIALECTS, Dialect, Parsed
from tests import stub_dialects
from tests.stub_dialects import Reply, ToolCall, sse

REPLIES = [
    Reply("Paris is a city."),
    Reply("", (ToolCall("look", {"at": "é"}, "call_a"), ToolCall("go", {}, "call_b"))),
    Reply("I look.", (ToolCall("look", {"at": [1, {"b": None}]}),), thinking="hm"),
]
KEYS = (
    "type index delta message content choices usage output response item id text tool_calls function role "
    "content_block stop_reason partial_json name logprobs arguments citations output_index"
)
WORDS = ["message_start", "content_block_start", "content_block_delta", "input_json_delta", "message"]
RECEIPT = new_receipt()
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=5)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reply", REPLIES, ids=["text", "calls", "both"])
def test_a_stream_says_what_the_buffered_answer_says(dialect: Dialect, reply: Reply) -> None:
    codec = codec_for(dialect)
    whole = stub_dialects.buffered(dialect, reply, "m", 1, "hi there")
    parsed = codec.parse(json.dumps(whole).encode(), stream=False)
    streamed = codec.parse(b"".join(stub_dialects.streamed(dialect, reply, "m", 1, "hi there")), stream=True)
    assert parsed.response == whole
    assert parsed.text == streamed.text == reply.text
    assert (parsed.model, parsed.input_tokens, parsed.cached_tokens) == ("m", 2, 0)
    for field in ("model", "finish", "input_tokens", "output_tokens", "cached_tokens", "aliases"):
        assert getattr(parsed, field) == getattr(streamed, field), field
    assert parsed.aliases[1:] == tuple(call.id for call in reply.calls)
    assert streamed.response is not None
    if dialect == "chat":
        message = streamed.response["choices"][0]["message"]
        calls = [
            {"index": i, **c} for i, c in enumerate(whole["choices"][0]["message"].get("tool_calls", []))
        ]
        assert message.get("tool_calls", []) == calls
    else:
        assert streamed.response == whole


@pytest.mark.parametrize("dialect", DIALECTS)
@given(
    body=st.binary(max_size=60) | VALUES.map(json.dumps).map(str.encode), events=st.lists(VALUES, max_size=5)
)
def test_garbage_is_read_without_complaint(dialect: Dialect, body: bytes, events: list[Any]) -> None:
    codec = codec_for(dialect)
    with no_complaint():
        for said, stream in ((body, False), (body, True), (b"".join(sse(event) for event in events), True)):
            for bridged in (None, *DIALECTS):
                over = None if bridged == dialect else bridged
                parsed = read_answer(
                    dialect, said, stream=stream, bridged=over, request=b"{}", receipt=RECEIPT
                )
                if parsed.response is not None:
                    codec.turn(parsed.response)
        for event in events:
            codec.mark(sse(event))
        assert codec.parse(b"<html>", stream=False).response is None


@contextmanager
def no_complaint() -> Iterator[None]:
    """Nothing is logged of an answer that made its reader stumble."""
    complaints: list[logging.LogRecord] = []
    handler, log = logging.Handler(), logging.getLogger("daemon.wire.parsing")
    handler.emit = complaints.append
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
    assert not [complaint.exc_info for complaint in complaints]


def test_a_reader_that_stumbles_says_nothing_and_tells_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Reader:
        @forgiving
        def parse(self, body: bytes, *, stream: bool) -> Parsed:
            raise RecursionError(f"{len(body)} {stream}")

    assert Reader().parse(b"abc", stream=True) == Parsed(None)
    assert "an answer of 3 bytes cannot be read" in caplog.text


@pytest.mark.parametrize("dialect", DIALECTS)
@given(payload=st.dictionaries(st.sampled_from(["messages", "input", "system", "instructions"]), VALUES))
def test_odd_requests_are_read_without_complaint(dialect: Dialect, payload: dict[str, Any]) -> None:
    for message in codec_for(dialect).facts(json.dumps(payload).encode()).messages:
        assert isinstance(message["content"], str)
        assert isinstance(message["role"], str)


def test_lone_surrogates_become_question_marks() -> None:
    for dialect in DIALECTS:
        facts = codec_for(dialect).facts(
            b'{"messages":[{"role":"user","content":"\\ud83d"}],"input":"\\ud83d"}'
        )
        assert facts.messages[0]["content"] == "?"


def test_requests_in_neutral_form() -> None:
    chat = codec_for("chat").facts(
        b'{"model":"m","stream":true,"max_tokens":5,"messages":[{"role":"developer","content":[{"type":"text",'
        b'"text":"sys"}]},{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":'
        b'"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1",'
        b'"content":"r"}]}'
    )
    messages = codec_for("messages").facts(
        b'{"model":"m","stream":true,"max_tokens":5,"system":[{"type":"text","text":"sys"}],"messages":[{"role":'
        b'"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"'
        b'},{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result"'
        b',"tool_use_id":"c1","content":[{"type":"text","text":"r"}]}]}]}'
    )
    responses = codec_for("responses").facts(
        b'{"model":"m","stream":true,"max_output_tokens":5,"instructions":"sys","input":[{"role":"user","content"'
        b':[{"type":"input_text","text":"q"}]},{"type":"reasoning","id":"r"},{"type":"function_call","call_id":'
        b'"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"r"}]}'
    )
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for facts in (chat, messages, responses):
        assert (facts.model, facts.stream, facts.max_tokens) == ("m", True, 5)
        assert [message["role"] for message in facts.messages] == ["system", "user", "assistant", "tool"]
        assert [message["content"] for message in facts.messages] == ["sys", "q", "", "r"]
        assert facts.messages[2]["tool_calls"] == [call]
        assert facts.messages[3]["tool_call_id"] == "c1"


def test_cut_streams_keep_what_had_arrived() -> None:
    for dialect in DIALECTS:
        events = list(stub_dialects.streamed(dialect, Reply("one two three four"), "m", 1, "hi"))
        cut = b"".join(events[: len(events) // 2]) + b'data: {"half'
        parsed = codec_for(dialect).parse(cut, stream=True)
        assert parsed.text.startswith("one two")
        assert parsed.model == "m"


def test_unknown_usage_is_none() -> None:
    for dialect in DIALECTS:
        parsed = codec_for(dialect).parse(b'{"id":"x"}', stream=False)
        assert (parsed.input_tokens, parsed.output_tokens, parsed.cached_tokens) == (None, None, None)
    assert codec_for("messages").parse(b'{"input_tokens":12}', stream=False).input_tokens == 12


def test_dialects_by_path() -> None:
    assert dialect_of("/chat/completions") == "chat"
    assert dialect_of("/messages?beta=true") == dialect_of("/messages/count_tokens") == "messages"
    assert dialect_of("/responses") == "responses"
    assert dialect_of("/responses/resp_1") is dialect_of("/models") is None


def test_errors_in_the_providers_own_shape() -> None:
    error = Unavailable("the model is loading", hint="wait a moment")
    openai = json.loads(codec_for("chat").error_body(error, 503))["error"]
    assert (openai["message"], openai["type"]) == (
        "the model is loading (hint: wait a moment)",
        "server_error",
    )
    anthropic = json.loads(codec_for("messages").error_body(error, 503))
    assert (anthropic["type"], anthropic["error"]["type"]) == ("error", "overloaded_error")
    assert json.loads(codec_for("responses").error_body(error, 503))["error"] == openai
    plain = Unavailable("not now")
    for dialect in DIALECTS:
        told = json.loads(codec_for(dialect).error_body(plain, 503))["error"]
        assert (told["message"], "hint" in told) == ("not now", False)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_own_requests_ask_in_the_dialect(dialect: Dialect) -> None:
    asked = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = codec_for(dialect).ask(asked, model="m", max_tokens=7, temperature=0.5, schema=schema)
    facts = codec_for(dialect).facts(body)
    assert (facts.model, facts.stream, facts.max_tokens) == ("m", False, 7)
    assert [message["role"] for message in facts.messages] == ["system", "user"]
    assert facts.messages[0]["content"].startswith("S")
    assert b'"properties"' in body.replace(b"\\", b"")
