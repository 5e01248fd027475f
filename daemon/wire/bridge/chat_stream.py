"""A chat completions stream, read into neutral events and written from blocks."""

from dataclasses import dataclass

from daemon.wire import sse
from daemon.wire.bridge.blocks import Block
from daemon.wire.bridge.chat import calls_in, parts_of
from daemon.wire.bridge.chat_answer import FINISHES, STOPS, usage_for, usage_from
from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.events import (
    Begin,
    CallDelta,
    CallStart,
    Event,
    Failed,
    Finish,
    Spent,
    TextDelta,
    ThinkingDelta,
    bare,
)
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import Stop, Text, Thinking, Usage
from daemon.wire.bridge.reading import texts
from daemon.wire.codec import codec_for
from daemon.wire.errors import error_in_event
from daemon.wire.values import Json, clean, dump, integer, load_object, mapping, mappings, string


@dataclass(slots=True)
class _Call:
    """`held` are arguments that came before the name did."""

    key: int
    id: str
    name: str = ""
    held: str = ""


class Reader:
    """Reads one stream, event by event."""

    def __init__(self) -> None:
        self._began = False
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def read(self, event: bytes) -> list[Event]:
        data = sse.data(event)
        chunk = load_object(data)
        if chunk is None:
            return bare(event, data)
        if chunk.get("error") or sse.name(event) == b"error":
            return [Failed(error_in_event(chunk))]
        found: list[Event] = []
        if not self._began:
            self._began = True
            begin = Begin(
                string(chunk.get("id")), string(chunk.get("model")) or "", integer(chunk.get("created"))
            )
            found.append(begin)
        for choice in mappings(chunk.get("choices")):
            if not choice.get("index"):
                found += self._choice(choice)
        if mapping(chunk.get("usage")):
            found.append(Spent(usage_from(chunk["usage"])))
        return found

    def _choice(self, choice: Json) -> list[Event]:
        found: list[Event] = []
        delta = mapping(choice.get("delta"))
        if text := string(delta.get("reasoning_content")) or string(delta.get("reasoning")):
            found.append(ThinkingDelta(text))
        for part in (*parts_of(delta.get("content"), Dropped()), *texts(delta.get("refusal"))):
            if isinstance(part, Text | Thinking):
                said = clean(part.text)
                found.append(TextDelta(said) if isinstance(part, Text) else ThinkingDelta(said))
        for call in calls_in(delta):
            found += self._part(call)
        if reason := string(choice.get("finish_reason")):
            found += [CallStart(made.key, made.id, made.name) for made in self._calls if not made.name]
            found.append(Finish(STOPS.get(reason, "end")))
        return found

    def _part(self, part: Json) -> list[Event]:
        """Calls are told apart by index. Some servers send none, and each of their calls whole with its id;
        others give all the same, and tell them apart by id."""
        identity = string(part.get("id")) or ""
        function = mapping(part.get("function"))
        name, arguments = string(function.get("name")) or "", function.get("arguments")
        index = integer(part.get("index"))
        if index is None:
            index = len(self._calls) if identity or not self._calls else self._calls[-1].key
        call = self._at.get(index)
        if call is None or (identity and name and call.id and identity != call.id):
            call = self._at[index] = _Call(len(self._calls), identity)
            self._calls.append(call)
        found: list[Event] = []
        text = arguments if isinstance(arguments, str) else dump(arguments).decode() if arguments else ""
        if not call.name and name:
            call.name, call.id = name, call.id or identity
            found.append(CallStart(call.key, call.id, name))
            text = call.held + text
        if not call.name:
            call.held += text
        elif text:
            found.append(CallDelta(call.key, text))
        return found


class Writer:
    """See `daemon.wire.bridge.blocks.Writer`."""

    def __init__(self, names: Names, usage_wanted: bool) -> None:
        self._names = names
        self._usage_wanted = usage_wanted
        self._head: Json = {}

    def begin(self, begin: Begin) -> bytes:
        self._head = {
            "id": f"chatcmpl-{self._names.stem}",
            "object": "chat.completion.chunk",
            "created": begin.created or self._names.created,
            "model": begin.model,
        }
        return self._chunk({"role": "assistant", "content": ""})

    def open(self, block: Block) -> bytes:
        if block.kind != "call":
            return b""
        kind = "custom" if block.tool.custom else "function"
        called = {"name": block.tool.name, "input" if block.tool.custom else "arguments": ""}
        return self._call(block, {"id": block.call_id, "type": kind, kind: called})

    def delta(self, block: Block, text: str) -> bytes:
        if block.kind == "call":
            grown = {"custom": {"input": text}} if block.tool.custom else {"function": {"arguments": text}}
            return self._call(block, grown)
        return self._chunk({"content" if block.kind == "text" else "reasoning_content": text})

    def close(self, block: Block, text: str) -> bytes:
        return b""

    def fail(self, message: str) -> bytes:
        return codec_for("chat").error_event(message)

    def finish(self, stop: Stop, sequence: str | None, usage: Usage) -> bytes:
        said = self._chunk({}, FINISHES[stop])
        if self._usage_wanted and (spent := usage_for(usage)):
            said += sse.encode(dump(self._head | {"choices": [], "usage": spent}))
        return said + sse.encode(b"[DONE]")

    def _call(self, block: Block, grown: Json) -> bytes:
        return self._chunk({"tool_calls": [{"index": block.number, **grown}]})

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse.encode(dump(self._head | {"choices": [choice]}))
