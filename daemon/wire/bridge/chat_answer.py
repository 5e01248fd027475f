"""Chat completions: answers, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.chat import call_from, call_of, calls_in, parts_of, thinking_of
from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import (
    Answer,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
    run_on,
    spoken,
    thought,
)
from daemon.wire.bridge.reading import (
    texts,
    unwrapped,
    usage_of,
)
from daemon.wire.values import Json, integer, mapping, mappings, string

STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refusal",
}
FINISHES: dict[Stop, str] = {
    "end": "stop",
    "length": "length",
    "tools": "tool_calls",
    "sequence": "stop",
    "refusal": "content_filter",
}


def to_neutral_answer(response: Json) -> Answer:
    """An answer as it came, however far; ids that it lacks are empty."""
    choice = next(iter(mappings(response.get("choices"))), {})
    message = mapping(choice.get("message"))
    said = (
        *thinking_of(message),
        *parts_of(message.get("content"), Dropped()),
        *texts(message.get("refusal")),
    )
    parts = run_on(part for part in said if isinstance(part, Text | Thinking))
    calls = [call_from(call) for call in calls_in(message)]
    stop = STOPS.get(str(choice.get("finish_reason")), "end")  # some give no reason at all
    return Answer(
        string(response.get("id")),
        string(response.get("model")) or "",
        (*parts, *calls),
        "tools" if calls and stop == "end" else stop,
        usage_from(response.get("usage")),
        integer(response.get("created")),
    )


def from_neutral_answer(answer: Answer, names: Names) -> Json:
    """The buffered form; `names` says what the client calls its tools, and makes ids."""
    message: Json = {"role": "assistant", "content": spoken(answer.parts) or None, "refusal": None}
    if thoughts := thought(answer.parts):
        message["reasoning_content"] = thoughts
    calls = [part for part in answer.parts if isinstance(part, ToolCall)]
    if calls:
        message["tool_calls"] = [
            answered_call(names.call_id(call.id, number), call, names) for number, call in enumerate(calls)
        ]
    finish = FINISHES[answer.stop] if answer.stop else None
    return {
        "id": f"chatcmpl-{names.stem}",
        "object": "chat.completion",
        "created": answer.created or names.created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": usage_for(answer.usage),
    }


def answered_call(identity: str, call: ToolCall, names: Names) -> Json:
    """A call as the client gets it."""
    known = names.restored(call.name)
    if known.custom:
        custom = {"name": known.name, "input": unwrapped(call.arguments)}
        return {"id": identity, "type": "custom", "custom": custom}
    return call_of(ToolCall(identity, known.name, call.arguments))


def usage_from(value: Any) -> Usage:
    return usage_of(value, "prompt_tokens", "completion_tokens")


def usage_for(usage: Usage) -> Json | None:
    if usage.input is None and usage.output is None:
        return None
    total = None if usage.input is None or usage.output is None else usage.input + usage.output
    found: Json = {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": total}
    if usage.cached is not None:
        found["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.reasoning is not None:
        found["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return found
