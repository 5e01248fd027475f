"""Anthropic's messages: answers, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.messages import parts_of, tool_use
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import (
    Answer,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
    run_on,
)
from daemon.wire.values import Json, integer, mapping, string

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "pause_turn": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tools",
    "stop_sequence": "sequence",
    "refusal": "refusal",
}
REASONS: dict[Stop, str] = {
    "end": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    "sequence": "stop_sequence",
    "refusal": "refusal",
}


def to_neutral_answer(response: Json) -> Answer:
    """An answer as it came, however far; ids that it lacks are empty."""
    parts = parts_of(response.get("content"), Dropped(), "content[]")
    reason = string(response.get("stop_reason"))
    return Answer(
        string(response.get("id")),
        string(response.get("model")) or "",
        run_on(part for part in parts if isinstance(part, Text | Thinking | ToolCall)),
        STOPS.get(reason or "", "end"),
        usage_from(response.get("usage")),
        sequence=string(response.get("stop_sequence")),
    )


def from_neutral_answer(answer: Answer, names: Names) -> Json:
    """The buffered form; `names` says what the client calls its tools, and makes ids."""
    content: list[Json] = []
    calls = 0
    for part in answer.parts:
        match part:
            case Text():
                content.append({"type": "text", "text": part.text})
            case Thinking():
                content.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
            case ToolCall():
                name = names.restored(part.name).name
                content.append(tool_use(names.call_id(part.id, calls), name, part.arguments))
                calls += 1
    return {
        "id": f"msg_{names.stem}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": REASONS[answer.stop] if answer.stop else None,
        "stop_sequence": answer.sequence,
        "usage": usage_for(answer.usage),
    }


def usage_from(value: Any) -> Usage:
    usage = mapping(value)
    cached = integer(usage.get("cache_read_input_tokens"))
    written = integer(usage.get("cache_creation_input_tokens"))
    fresh = integer(usage.get("input_tokens"))
    total = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(total, integer(usage.get("output_tokens")), cached, written)


def usage_for(usage: Usage) -> Json:
    """Clients of this dialect reckon with numbers: what is unknown is 0 here (and null in the record)."""
    cached, written = usage.cached or 0, usage.written or 0
    return {
        "input_tokens": max((usage.input or 0) - cached - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output or 0,
    }
