"""Long answers in small pieces: the time they take grows with what they say, not with its square."""

import json
from typing import Any

import pytest

from daemon.wire import sse
from daemon.wire.bridge.crossing import Crossing
from daemon.wire.codec import codec_for
from reef.ids import new_receipt
from reef.runtime import DIALECTS, Dialect

COUNT = 100_000
PIECE = "a piece of an answer that goes on and on, " * 2
WHOLE = PIECE * COUNT


def events(dialect: Dialect) -> bytes:
    """A stream of `COUNT` pieces, cut off after them. Adding each to a text before it would take minutes."""
    delta: dict[str, Any] = {
        "chat": {"choices": [{"index": 0, "delta": {"content": PIECE}}]},
        "messages": {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": PIECE},
        },
        "responses": {"type": "response.output_text.delta", "output_index": 0, "delta": PIECE},
    }[dialect]
    return sse.encode(json.dumps(delta).encode()) * COUNT


@pytest.mark.timeout(40)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_in_many_pieces(dialect: Dialect) -> None:
    assert codec_for(dialect).parse(events(dialect), stream=True).text == WHOLE


@pytest.mark.timeout(60)
def test_an_answer_in_many_pieces_over_a_bridge() -> None:
    crossing = Crossing("messages", "chat", {"messages": [], "max_tokens": 1}, new_receipt())
    translator = crossing.translator()
    said = translator.feed(events("chat")) + translator.end()
    assert codec_for("messages").parse(said, stream=True).text == WHOLE
