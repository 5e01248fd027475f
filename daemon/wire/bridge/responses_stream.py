"""A responses stream, read into neutral events and written from blocks."""

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
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import Answer, Stop, Usage
from daemon.wire.bridge.reading import wrapped
from daemon.wire.bridge.responses import call_item
from daemon.wire.bridge.responses_answer import (
    reasoning_item,
    response_of,
    stop_from,
    text_item,
    usage_from,
)
from daemon.wire.errors import error_in_event
from daemon.wire.values import Json, dump, integer, load_object, mapping, string


class Reader:
    """Reads one stream, event by event."""

    def __init__(self) -> None:
        self._begun = False
        self._heard: set[int] = set()
        """Calls of which arguments have arrived."""
        self._called = False

    def read(self, event: bytes) -> list[Event]:
        data = sse.data(event)
        item = load_object(data)
        if item is None:
            return bare(event, data)
        index = integer(item.get("output_index")) or 0
        text = string(item.get("delta")) or ""
        match str(item.get("type")).removeprefix("response."):
            case "output_text.delta" | "refusal.delta":
                return [TextDelta(text)]
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                return [ThinkingDelta(text)]
            case "output_item.added":
                return self._added(index, mapping(item.get("item")))
            case "function_call_arguments.delta":
                self._heard.add(index)
                return [CallDelta(index, text)]
            case "output_item.done":
                return self._done(index, mapping(item.get("item")))
            case "created" | "in_progress" if not self._begun:
                self._begun = True
                response = mapping(item.get("response"))
                model = string(response.get("model")) or ""
                return [Begin(string(response.get("id")), model, integer(response.get("created_at")))]
            case "completed" | "incomplete" | "failed" | "error":
                return self._last(item)
            case _:
                return [Failed(error_in_event(item))] if item.get("error") else []

    def _added(self, index: int, item: Json) -> list[Event]:
        if item.get("type") not in ("function_call", "custom_tool_call"):
            return []
        self._called = True
        custom = item["type"] == "custom_tool_call"
        identity = string(item.get("call_id")) or ""
        return [CallStart(index, identity, string(item.get("name")) or "", custom)]

    def _done(self, index: int, item: Json) -> list[Event]:
        """A free-form call is read here, as a whole; so is one whose arguments did not come in pieces."""
        if item.get("type") == "custom_tool_call":
            return [CallDelta(index, wrapped(item.get("input"))), CallEnd(index)]
        if item.get("type") != "function_call":
            return []
        whole = "" if index in self._heard else string(item.get("arguments")) or ""
        return [CallDelta(index, whole), CallEnd(index)]

    def _last(self, item: Json) -> list[Event]:
        response = mapping(item.get("response"))
        stop = stop_from(response, self._called)
        if stop is None:
            return [Failed(error_in_event(item))]
        spent = Spent(usage_from(response.get("usage")))
        # It is complete also where nothing was said, which is no answer's end.
        return [spent, Finish(stop), End()] if response.get("output") or stop != "end" else [spent, End()]


class Writer:
    """See `daemon.wire.bridge.blocks.Writer`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._begin = Begin(None, "")
        self._items: list[Json] = []
        self._sent = 0

    def begin(self, begin: Begin) -> bytes:
        self._begin = begin
        began = self._response(None, Usage())
        return self._event("created", response=began) + self._event("in_progress", response=began)

    def open(self, block: Block) -> bytes:
        at = self._at(block)
        match block.kind:
            case "text":
                item = text_item(at["item_id"], "") | {"content": []}
                part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
                then = ("content_part.added", {"content_index": 0, "part": part})
            case "thinking":
                item = reasoning_item(at["item_id"], "") | {"summary": []}
                part = {"type": "summary_text", "text": ""}
                then = ("reasoning_summary_part.added", {"summary_index": 0, "part": part})
            case "call":
                item = self._call(block, at["item_id"], "")
                then = ("", {})
        if "status" in item:
            item["status"] = "in_progress"
        said = self._event("output_item.added", output_index=block.index, item=item)
        return said + (self._event(then[0], **at, **then[1]) if then[0] else b"")

    def delta(self, block: Block, text: str) -> bytes:
        at = self._at(block)
        match block.kind:
            case "text":
                return self._event("output_text.delta", **at, content_index=0, delta=text, logprobs=[])
            case "thinking":
                return self._event("reasoning_summary_text.delta", **at, summary_index=0, delta=text)
            case "call":
                kind = "custom_tool_call_input" if block.tool.custom else "function_call_arguments"
                return self._event(f"{kind}.delta", **at, delta=text)

    def close(self, block: Block, text: str) -> bytes:
        at = self._at(block)
        match block.kind:
            case "text":
                item = text_item(at["item_id"], text)
                said = self._event("output_text.done", **at, content_index=0, text=text, logprobs=[])
                part = item["content"][0]
                said += self._event("content_part.done", **at, content_index=0, part=part)
            case "thinking":
                item = reasoning_item(at["item_id"], text)
                said = self._event("reasoning_summary_text.done", **at, summary_index=0, text=text)
                part = item["summary"][0]
                said += self._event("reasoning_summary_part.done", **at, summary_index=0, part=part)
            case "call":
                item = self._call(block, at["item_id"], block.whole)
                if block.tool.custom:
                    said = self._event("custom_tool_call_input.done", **at, input=text)
                else:
                    named = {"name": block.tool.name, "arguments": text}
                    said = self._event("function_call_arguments.done", **at, **named)
        self._items.append(item)
        return said + self._event("output_item.done", output_index=block.index, item=item)

    def fail(self, message: str) -> bytes:
        failed = {"status": "failed", "error": {"code": "server_error", "message": message}}
        return self._event("failed", response=self._response(None, Usage()) | failed)

    def finish(self, stop: Stop, sequence: str | None, usage: Usage) -> bytes:
        response = self._response(stop, usage)
        return self._event(response["status"], response=response)

    def _response(self, stop: Stop | None, usage: Usage) -> Json:
        begin = self._begin
        answer = Answer(begin.id, begin.model, (), stop, usage, begin.created)
        return response_of(answer, self._names, list(self._items))

    def _at(self, block: Block) -> Json:
        kind = {"text": "msg", "thinking": "rs", "call": "ctc" if block.tool.custom else "fc"}[block.kind]
        return {"item_id": self._names.item_id(kind, block.index), "output_index": block.index}

    def _call(self, block: Block, identity: str, arguments: str) -> Json:
        return call_item(identity, block.call_id, arguments, block.tool)

    def _event(self, kind: str, **members: Any) -> bytes:
        event = {"type": f"response.{kind}", "sequence_number": self._sent, **members}
        self._sent += 1
        return sse.encode(dump(event), f"response.{kind}")
