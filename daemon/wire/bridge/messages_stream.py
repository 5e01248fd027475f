"""A messages stream, read into neutral events and written from blocks."""

from typing import Any

from daemon.wire import sse
from daemon.wire.bridge.blocks import Block
from daemon.wire.bridge.events import (
    Begin,
    CallDelta,
    CallEnd,
    CallStart,
    End,
    Event,
    Failed,
    Finish,
    Spent,
    TextDelta,
    ThinkingDelta,
    bare,
)
from daemon.wire.bridge.messages_answer import REASONS, STOPS, usage_for, usage_from
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import Stop, Usage
from daemon.wire.codec import codec_for
from daemon.wire.errors import error_in_event
from daemon.wire.values import Json, dump, integer, load_object, mapping, string


class Reader:
    """Reads one stream, event by event."""

    def __init__(self) -> None:
        self._usage: Json = {}

    def read(self, event: bytes) -> list[Event]:
        data = sse.data(event)
        item = load_object(data)
        if item is None:
            return bare(event, data)
        index = integer(item.get("index")) or 0
        match item.get("type"):
            case "message_start":
                message = mapping(item.get("message"))
                begin = Begin(string(message.get("id")), string(message.get("model")) or "")
                return [begin, *self._spent(message.get("usage"))]
            case "content_block_start":
                return _opened(index, mapping(item.get("content_block")))
            case "content_block_delta":
                return _grown(index, mapping(item.get("delta")))
            case "content_block_stop":
                return [CallEnd(index)]
            case "message_delta":
                delta = mapping(item.get("delta"))
                found = self._spent(item.get("usage"))
                if reason := string(delta.get("stop_reason")):
                    found.append(Finish(STOPS.get(reason, "end"), string(delta.get("stop_sequence"))))
                return found
            case "message_stop":
                return [End()]
            case kind:
                return [Failed(error_in_event(item))] if kind == "error" or item.get("error") else []

    def _spent(self, usage: Any) -> list[Event]:
        """Counts come in pieces, and later ones are totals."""
        self._usage |= {key: value for key, value in mapping(usage).items() if value is not None}
        return [Spent(usage_from(self._usage))]


def _opened(index: int, block: Json) -> list[Event]:
    match block.get("type"):
        case "text":
            return [TextDelta(string(block.get("text")) or "")]
        case "thinking":
            return [ThinkingDelta(string(block.get("thinking")) or "")]
        case "tool_use":
            start = CallStart(index, string(block.get("id")) or "", string(block.get("name")) or "")
            given = mapping(block.get("input"))
            return [start, CallDelta(index, dump(given).decode())] if given else [start]
        case _:
            return []


def _grown(index: int, delta: Json) -> list[Event]:
    match delta.get("type"):
        case "text_delta":
            return [TextDelta(string(delta.get("text")) or "")]
        case "thinking_delta":
            return [ThinkingDelta(string(delta.get("thinking")) or "")]
        case "input_json_delta":
            return [CallDelta(index, string(delta.get("partial_json")) or "")]
        case _:
            return []


class Writer:
    """See `daemon.wire.bridge.blocks.Writer`."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def begin(self, begin: Begin) -> bytes:
        message: Json = {
            "id": f"msg_{self._names.stem}",
            "type": "message",
            "role": "assistant",
            "model": begin.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_for(Usage()),
        }
        return _event("message_start", message=message)

    def open(self, block: Block) -> bytes:
        match block.kind:
            case "text":
                empty: Json = {"type": "text", "text": ""}
            case "thinking":
                empty = {"type": "thinking", "thinking": "", "signature": ""}
            case "call":
                empty = {"type": "tool_use", "id": block.call_id, "name": block.tool.name, "input": {}}
        return _event("content_block_start", index=block.index, content_block=empty)

    def delta(self, block: Block, text: str) -> bytes:
        match block.kind:
            case "text":
                delta = {"type": "text_delta", "text": text}
            case "thinking":
                delta = {"type": "thinking_delta", "thinking": text}
            case "call":
                delta = {"type": "input_json_delta", "partial_json": text}
        return _event("content_block_delta", index=block.index, delta=delta)

    def close(self, block: Block, text: str) -> bytes:
        return _event("content_block_stop", index=block.index)

    def fail(self, message: str) -> bytes:
        return codec_for("messages").error_event(message)

    def finish(self, stop: Stop, sequence: str | None, usage: Usage) -> bytes:
        delta = {"stop_reason": REASONS[stop], "stop_sequence": sequence}
        return _event("message_delta", delta=delta, usage=usage_for(usage)) + _event("message_stop")


def _event(kind: str, **members: Any) -> bytes:
    return sse.encode(dump({"type": kind, **members}), kind)
