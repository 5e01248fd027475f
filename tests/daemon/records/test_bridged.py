"""Records of bridged exchanges: raw is what went over the wire, the payload is what the client got."""

import base64
import json

from daemon.records import query
from daemon.records.draft import Draft
from reef.ids import new_receipt, now
from tests import stub_dialects
from tests.daemon.records.desk import Desk
from tests.stub_dialects import Reply, ToolCall


def test_a_bridged_stream_is_read_as_its_client_got_it(desk: Desk) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    raw = b"".join(stub_dialects.streamed("chat", Reply("Hello.", (ToolCall("f", {"x": 1}),)), "up", 7, "hi"))
    draft = Draft(
        new_receipt(),
        "city",
        now(),
        "messages",
        request=json.dumps(asked).encode(),
        forwarded=b"{}",
        bridged="chat",
        response=raw,
        stream=True,
        dropped=["thinking"],
    )
    desk.run(desk.book.append(draft))

    def read(connection):
        row = query.find(connection, draft.id)
        return (
            query.to_wire(connection, row, payload=True, raw=True),
            query.exchange_of(connection, row),
            query.story(connection, row),
        )

    wire, exchange, story = desk.run(desk.store.read(read))
    assert (wire["dialect"], wire["metadata"]["bridged"], wire["dropped"]) == (
        "messages",
        "chat",
        ["thinking"],
    )
    assert (wire["usage"]["input_tokens"], wire["usage"]["output_tokens"]) == (1, 1)
    assert wire["upstream"]["model"] == "up"
    assert base64.b64decode(wire["raw"]["response"]) == raw
    assert base64.b64decode(wire["raw"]["forwarded"]) == b"{}"
    response = wire["payload"]["response"]
    assert [part["type"] for part in response["content"]] == ["text", "tool_use"]
    assert response["stop_reason"] == "tool_use"
    assert (exchange.answer, exchange.prompt) == ("Hello.", "hi")
    assert set(story["aliases"]) == {response["id"], "chatcmpl-7", "call_1"}
