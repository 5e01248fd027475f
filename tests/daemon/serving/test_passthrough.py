"""Streams through the real passthrough, cut anywhere: the client gets the upstream's bytes and the receipt,
and what is recorded does not depend on where they were cut."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.records.draft import Draft
from daemon.serving.call import Call
from daemon.serving.conversation import Said
from daemon.serving.keeper import Keeper
from daemon.serving.stream import Stream
from daemon.serving.turn import Turn
from daemon.wire import sse
from daemon.wire.bridge.crossing import Crossing, read_answer
from daemon.wire.codec import codec_for
from daemon.wire.encoding import decoder
from daemon.wire.values import load_request
from reef.runtime import DIALECTS, Dialect, Parsed, ProviderResponse
from tests import stub_dialects
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import MemoryRecords
from tests.daemon.wire.cutting import chunked
from tests.stub_dialects import Reply, ToolCall
from tests.stub_dialects import sse as sse_of

RECEIPT = "01980000-0000-7000-8000-000000000001"
MEMBER = f',"reef":{{"agent_record_id":"{RECEIPT}"}}'.encode()
TEXT = "Grüße, 世界 🐚 [DONE] message_stop"
CALLS = (ToolCall("look", {"at": "sea 🐚", "n": [1, {"}": None}]}, "call_a"), ToolCall("go", {}, "call_b"))


def of(dialect: Dialect, reply: Reply) -> list[bytes]:
    return list(stub_dialects.streamed(dialect, reply, "m", 1, "hi"))


def interleaved() -> list[bytes]:
    """Two chat tool calls whose arguments come by turns."""
    begun = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": ""}}
        for i in (0, 1)
    ]
    grown = [
        {"tool_calls": [{"index": index % 2, "function": {"arguments": part}}]}
        for index, part in enumerate(('{"a"', '{"b"', ":1}", ":2}"))
    ]
    deltas: list[Any] = [{"role": "assistant", "content": None}, {"tool_calls": begun}, *grown, {}]
    head = {"id": "x", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    return [
        *(
            sse_of(
                head | {"choices": [{"index": 0, "delta": d, "finish_reason": None if d else "tool_calls"}]}
            )
            for d in deltas
        ),
        sse_of("[DONE]"),
    ]


def blocks_by_turns() -> list[bytes]:
    """Two blocks of a message that grow by turns, a ping, an unknown event and an unknown delta."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "m1", "role": "assistant", "content": [], "model": "m", "usage": usage}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    tool = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    grown = [
        (1, {"type": "input_json_delta", "partial_json": '{"at": "s'}),
        (0, {"type": "thinking_delta", "thinking": "hm 🐚"}),
        (1, {"type": "input_json_delta", "partial_json": 'ea"}'}),
        (0, {"type": "signature_delta", "signature": "c2ln"}),
        (0, {"type": "odd_delta", "odd": 1}),
    ]
    events: list[Any] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "ping"},
        {"type": "content_block_start", "index": 1, "content_block": tool},
        *({"type": "content_block_delta", "index": index, "delta": delta} for index, delta in grown),
        {"type": "something_new", "value": {"type": "message_stop"}},
        *({"type": "content_block_stop", "index": index} for index in (0, 1)),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return [sse_of(event, event["type"]) for event in events]


STREAMS: dict[Dialect, list[list[bytes]]] = {
    dialect: [of(dialect, Reply(TEXT)), of(dialect, Reply("I look.", CALLS, thinking="hm 🐚"))]
    for dialect in DIALECTS
}
STREAMS["chat"].append(interleaved())
STREAMS["messages"].append(blocks_by_turns())


NOTES = [": ping 🐚".encode(), b":", b"id: 7\nretry: 5"]


def styled(draw: st.DrawFn, events: Sequence[bytes]) -> bytes:
    """The same events as another server may write them."""
    noted = draw(st.sets(st.integers(0, len(events) - 1), max_size=4))
    written: list[bytes] = []
    for index, event in enumerate(events):
        if index in noted:
            written.append(draw(st.sampled_from(NOTES)) + b"\n\n")
        written.append(event)
    body = b"".join(written) + draw(st.sampled_from([b"", b": bye\n\n"]))
    if draw(st.booleans()):
        body = body.replace(b"data: ", b"data:").replace(b"event: ", b"event:")
    return body.replace(b"\n", draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))


bodies = {
    dialect: st.composite(lambda draw, d=dialect: styled(draw, draw(st.sampled_from(STREAMS[d]))))()
    for dialect in DIALECTS
}


def passed(
    dialect: Dialect, chunks: Sequence[bytes], *, upstream: Dialect | None = None, packed: bool = False
) -> tuple[bytes, Draft]:
    """What the client gets, and the draft that is stored. No event waits for more than the next one."""
    request = json.dumps(body_of(dialect, stream=True)).encode()
    codec = codec_for(dialect)
    draft = Draft(RECEIPT, "s", datetime(2026, 1, 1, tzinfo=UTC), dialect, request=request, stream=True)
    call = Call(dialect, PATHS[dialect], (), request)
    facts = codec.facts(request)
    turn = Turn(call, draft, codec, facts, opens=Said(facts.messages))
    if upstream is not None:
        turn.crossing, draft.bridged = Crossing(dialect, upstream, load_request(request), RECEIPT), upstream
    out: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        came = b""
        for chunk in chunks:
            yield chunk
            came += chunk
            if upstream is None and not packed and len(chunks) < 100:
                assert sum(map(len, out)) >= sum(map(len, sse.split(came)[0][:-1]))

    async def begin() -> None:
        assert not out

    async def write(chunk: bytes) -> None:
        out.append(chunk)

    async def run() -> None:
        records = MemoryRecords()
        response = ProviderResponse(200, (), body())
        unpack = decoder("gzip") if packed else None
        await Stream(turn, response, Keeper(records, "refuse", None), unpack).pump(begin, write)
        assert records.drafts == [draft]

    asyncio.run(run())
    return b"".join(out), draft


def unsigned(dialect: Dialect, sent: bytes) -> bytes:
    """The stream without its receipt, which is there once."""
    assert sent.count(RECEIPT.encode()) == 1
    if dialect != "chat":
        return sent.replace(MEMBER, b"")
    events, rest = sse.split(sent)
    return b"".join(event for event in events if RECEIPT.encode() not in event) + rest


def parsed(draft: Draft) -> Parsed:
    return read_answer(
        draft.dialect,
        draft.response,
        stream=True,
        bridged=draft.bridged,
        request=draft.request,
        receipt=draft.id,
    )


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
@settings(max_examples=40)
def test_the_client_gets_the_upstreams_bytes_however_they_are_cut(
    dialect: Dialect, packed: bool, data: st.DataObject
) -> None:
    body = data.draw(bodies[dialect])
    sent, draft = passed(dialect, data.draw(chunked(gzip.compress(body) if packed else body)), packed=packed)
    assert unsigned(dialect, sent) == body
    whole, expected = passed(dialect, [body])
    assert unsigned(dialect, whole) == body
    assert sent == whole
    assert (draft.status, draft.conversation) == ("complete", expected.conversation)
    assert draft.conversation is not None
    assert parsed(draft) == parsed(expected)


@pytest.mark.parametrize(
    ("dialect", "upstream"), [(a, b) for a in DIALECTS for b in ("chat", "messages") if a != b]
)
@given(data=st.data())
@settings(max_examples=20)
def test_what_a_bridge_says_does_not_depend_on_the_cuts(
    dialect: Dialect, upstream: Dialect, data: st.DataObject
) -> None:
    body = data.draw(bodies[upstream])
    sent, draft = passed(dialect, data.draw(chunked(body)), upstream=upstream)
    whole, expected = passed(dialect, [body], upstream=upstream)
    assert sent == whole
    assert sent.count(RECEIPT.encode()) == 1
    assert draft.status == "complete"
    assert parsed(draft) == parsed(expected)


@pytest.mark.parametrize("size", [2**16, 2**24])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_event_of_five_megabytes(dialect: Dialect, size: int) -> None:
    text = "🐚" + "x" * 5_000_000
    events = of(dialect, Reply(text))
    body = b"".join(events)
    assert max(map(len, events)) > 5_000_000
    sent, draft = passed(dialect, [body[at : at + size] for at in range(0, len(body), size)])
    assert unsigned(dialect, sent) == body
    assert parsed(draft).text == text
