"""The receipt in a stream: where clients look for it; without it the bytes are the upstream's."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire import sse
from daemon.wire.codec import codec_for
from daemon.wire.tail import StreamTail
from reef.runtime import DIALECTS, Dialect
from tests import stub_dialects
from tests.daemon.wire.cutting import chunked
from tests.stub_dialects import Reply, ToolCall

RECEIPT = "0193-receipt"
MEMBER = b',"reef":{"agent_record_id":"' + RECEIPT.encode() + b'"}'
STREAMS = {
    dialect: b"".join(
        stub_dialects.streamed(dialect, Reply("Hi you", (ToolCall("f", {"a": "}\n"}),)), "m", 1, "hi")
    )
    for dialect in DIALECTS
}


def through(dialect: Dialect, chunks: list[bytes]) -> tuple[StreamTail, bytes]:
    tail = StreamTail(codec_for(dialect))
    sent = b"".join([tail.feed(chunk) for chunk in chunks])
    return tail, sent + tail.end()


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data(), crlf=st.booleans(), trailing=st.sampled_from([b"", b": bye\n\n"]))
def test_without_the_receipt_the_bytes_are_the_upstreams(
    dialect: Dialect, data: st.DataObject, crlf: bool, trailing: bytes
) -> None:
    body = STREAMS[dialect] + trailing
    body = body.replace(b"\n", b"\r\n") if crlf else body
    chunks = data.draw(chunked(body))
    tail = StreamTail(codec_for(dialect))
    before = after = b""
    for chunk in chunks:
        if tail.finished:
            after += tail.feed(chunk)
        else:
            before += tail.feed(chunk)
    assert tail.finished
    assert before + tail.plain() + after == body
    signed = tail.signed(RECEIPT)
    if dialect == "chat":
        extra = sse.split(signed)[0][0]
        assert signed.removeprefix(extra) == tail.plain()
        assert json.loads(sse.data(extra)) == {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "m",
            "choices": [],
            "reef": {"agent_record_id": RECEIPT},
        }
    else:
        assert signed.replace(MEMBER, b"", 1) == tail.plain() != signed
        event = json.loads(sse.data(sse.split(signed)[0][0]))
        assert event["reef"] == {"agent_record_id": RECEIPT}


def test_extra_chunk_repeats_what_the_first_one_says() -> None:
    first = sse.encode(b'{"id":"a","created":5,"model":"m","service_tier":"x","system_fingerprint":"f"}')
    tail, _ = through("chat", [b": comment\n\n", first, b"data: [DONE]\n\n"])
    extra = json.loads(sse.data(sse.split(tail.signed(RECEIPT))[0][0]))
    assert (extra["id"], extra["service_tier"], extra["system_fingerprint"]) == ("a", "x", "f")


def test_incomplete_responses_are_signed_too() -> None:
    event = b'event: response.incomplete\ndata: {"type":"response.incomplete","response":{}}\n\n'
    tail, sent = through("responses", [event])
    assert sent == b""
    assert tail.signed(RECEIPT) == event[:-3] + MEMBER + b"}\n\n"


@pytest.mark.parametrize(
    ("dialect", "last"),
    [
        ("chat", b"data: [DONE]"),
        ("chat", b"data:[DONE]\n"),
        ("messages", b'data: {"type": "message_stop"}'),
        ("responses", b'data: {"type": "response.completed", "response": {}}\n'),
    ],
)
def test_a_last_event_without_its_blank_line_or_name_counts(dialect: Dialect, last: bytes) -> None:
    tail, sent = through(dialect, [b": hi\n\n", last])
    assert tail.finished
    assert sent == b": hi\n\n"
    assert RECEIPT.encode() in tail.signed(RECEIPT)


def test_finish_reasons_are_seen_before_the_end() -> None:
    for dialect in ("chat", "messages"):
        events = list(stub_dialects.streamed(dialect, Reply("x"), "m", 1, "hi"))
        tail, _ = through(dialect, events[:-1])
        assert tail.reasoned
        assert not tail.finished
    quoted = (
        b'data: {"choices":[{"delta":{"content":"\\"finish_reason\\":\\"stop\\" [DONE] \\"error\\""}}]}\n\n'
    )
    tail, sent = through("chat", [quoted])
    assert (tail.reasoned, tail.finished, tail.errored, sent) == (False, False, False, quoted)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_error_event_is_one_and_keeps_its_words(dialect: Dialect) -> None:
    begun = list(stub_dialects.streamed(dialect, Reply("x"), "m", 1, "hi"))[:2]
    tail, sent = through(dialect, begun)
    event = tail.error_event("502 upstream overloaded: it broke")
    assert b"502 upstream overloaded: it broke" in event
    assert b"[DONE]" not in event
    again, _ = through(dialect, [sent, event])
    assert again.errored
    assert not again.finished
    if dialect == "responses":
        failed = json.loads(sse.data(event))
        assert (failed["sequence_number"], failed["response"]["id"]) == (2, "resp_1")
        whole = list(stub_dialects.streamed(dialect, Reply("x"), "m", 1, "hi"))
        held, _ = through(dialect, whole)
        failed = json.loads(sse.data(held.error_event("it cannot be stored")))
        assert failed["sequence_number"] == len(whole) - 1, "in place of the one that is held back"
