"""OpenAI's responses: answers, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import (
    Answer,
    AnswerPart,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
    run_on,
)
from daemon.wire.bridge.reading import usage_of
from daemon.wire.bridge.responses import call_from, call_item, parts_of, thinking_of
from daemon.wire.values import Json, integer, mapping, mappings, string


def to_neutral_answer(response: Json) -> Answer:
    """An answer as it came, however far; ids that it lacks are empty."""
    parts: list[AnswerPart] = []
    for item in mappings(response.get("output")):
        match item.get("type"):
            case "message":
                said = parts_of(item.get("content"), Dropped())
                parts += [part for part in said if isinstance(part, Text)]
            case "reasoning":
                parts += thinking_of(item)
            case "function_call" | "custom_tool_call":
                parts.append(call_from(item))
            case _:
                pass
    return Answer(
        string(response.get("id")),
        string(response.get("model")) or "",
        run_on(parts),
        stop_from(response, any(isinstance(part, ToolCall) for part in parts)),
        usage_from(response.get("usage")),
        integer(response.get("created_at")),
    )


def stop_from(response: Json, called: bool) -> Stop | None:
    if response.get("status") == "incomplete":
        refused = mapping(response.get("incomplete_details")).get("reason") == "content_filter"
        return "refusal" if refused else "length"
    if response.get("status") != "completed":
        return None
    return "tools" if called else "end"


def from_neutral_answer(answer: Answer, names: Names) -> Json:
    """The buffered form; `names` says what the client calls its tools, and makes ids."""
    output: list[Json] = []
    calls = 0
    for index, part in enumerate(answer.parts):
        match part:
            case Text():
                output.append(text_item(names.item_id("msg", index), part.text))
            case Thinking():
                output.append(reasoning_item(names.item_id("rs", index), part.text))
            case ToolCall():
                known = names.restored(part.name)
                identity = names.item_id("ctc" if known.custom else "fc", index)
                output.append(call_item(identity, names.call_id(part.id, calls), part.arguments, known))
                calls += 1
    return response_of(answer, names, output)


def response_of(answer: Answer, names: Names, output: list[Json]) -> Json:
    """A response with these items; one without a stop is under way."""
    incomplete = {"length": "max_output_tokens", "refusal": "content_filter"}.get(answer.stop or "")
    status = "incomplete" if incomplete else "completed" if answer.stop else "in_progress"
    return {
        "id": f"resp_{names.stem}",
        "object": "response",
        "created_at": answer.created or names.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": usage_for(answer.usage),
    }


def text_item(identity: str, text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {
        "id": identity,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def reasoning_item(identity: str, text: str) -> Json:
    return {"id": identity, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def usage_from(value: Any) -> Usage:
    return usage_of(value, "input_tokens", "output_tokens")


def usage_for(usage: Usage) -> Json | None:
    if usage.input is None and usage.output is None:
        return None
    read, wrote = usage.input or 0, usage.output or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": read + wrote,
    }
