"""How the stub provider says things: the three dialects, buffered and as events."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    name: str
    arguments: Json
    id: str = "call_1"


@dataclass(frozen=True)
class Reply:
    """An answer that is more than a text."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    prompt_tokens: int | None = None
    """What it says that the prompt had; by default its words are counted."""


def sse(data: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def _words(text: str) -> list[str]:
    parts = text.split(" ")
    return [word if index == 0 else f" {word}" for index, word in enumerate(parts)] if text else []


def _count(text: str) -> int:
    return max(len(text.split()), 1)


def buffered(dialect: str, reply: Reply, model: str, number: int, prompt: str) -> Json:
    tokens = (reply.prompt_tokens or _count(prompt), _count(reply.text))
    if dialect == "messages":
        return _message(reply, model, number, tokens)
    if dialect == "responses":
        return _response(reply, model, number, tokens)
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [_chat_call(call) for call in reply.calls]
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        "usage": {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }


def streamed(dialect: str, reply: Reply, model: str, number: int, prompt: str) -> Iterator[bytes]:
    whole = buffered(dialect, reply, model, number, prompt)
    return {"chat": _chat_events, "messages": _message_events, "responses": _response_events}[dialect](
        reply, whole
    )


def error(dialect: str, status: int, message: str) -> Json:
    if dialect == "messages":
        return {"type": "error", "error": {"type": "api_error", "message": message}}
    return {"error": {"message": message, "type": "stub_error", "param": None, "code": str(status)}}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _chat_call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _chat_events(reply: Reply, whole: Json) -> Iterator[bytes]:
    head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        return sse(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for word in _words(reply.thinking):
        yield chunk({"reasoning_content": word})
    for word in _words(reply.text):
        yield chunk({"content": word})
    for index, call in enumerate(reply.calls):
        made = _chat_call(call)
        yield chunk(
            {"tool_calls": [{"index": index, **made, "function": made["function"] | {"arguments": ""}}]}
        )
        arguments = made["function"]["arguments"]
        for part in (arguments[:3], arguments[3:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, _finish(reply))
    yield sse(head | {"choices": [], "usage": whole["usage"]})
    yield sse("[DONE]")


def _message(reply: Reply, model: str, number: int, tokens: tuple[int, int]) -> Json:
    content: list[Json] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": "sig=="})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in reply.calls]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1], "cache_read_input_tokens": 0},
    }


def _message_events(reply: Reply, whole: Json) -> Iterator[bytes]:
    def event(data: Json) -> bytes:
        return sse(data, data["type"])

    began = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield event({"type": "message_start", "message": began})
    yield event({"type": "ping"})
    for index, block in enumerate(whole["content"]):
        empty, deltas = _block_deltas(block)
        yield event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    tokens = {"output_tokens": whole["usage"]["output_tokens"]}
    yield event({"type": "message_delta", "delta": stop, "usage": tokens})
    yield event({"type": "message_stop"})


def _block_deltas(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": word} for word in _words(block["text"])]
    if block["type"] == "thinking":
        return block | {"thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    text = json.dumps(block["input"])
    parts = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:4], text[4:])]
    return block | {"input": {}}, parts


def _response(reply: Reply, model: str, number: int, tokens: tuple[int, int]) -> Json:
    output: list[Json] = []
    if reply.text:
        said = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [said],
            }
        )
    output += [
        {
            "id": f"fc_{number}",
            "type": "function_call",
            "call_id": c.id,
            "name": c.name,
            "arguments": json.dumps(c.arguments),
            "status": "completed",
        }
        for c in reply.calls
    ]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        "usage": {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "total_tokens": sum(tokens),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(reply: Reply, whole: Json) -> Iterator[bytes]:
    numbers = iter(range(10**6))

    def event(kind: str, **data: Any) -> bytes:
        return sse({"type": f"response.{kind}", "sequence_number": next(numbers), **data}, f"response.{kind}")

    yield event("created", response=whole | {"status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = item["content"][0]
            yield event(
                "output_item.added",
                output_index=index,
                item=item | {"content": [], "status": "in_progress"},
            )
            yield event("content_part.added", **at, content_index=0, part=part | {"text": ""})
            for word in _words(part["text"]):
                yield event("output_text.delta", **at, content_index=0, delta=word, logprobs=[])
            yield event("output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield event("content_part.done", **at, content_index=0, part=part)
        else:
            yield event(
                "output_item.added",
                output_index=index,
                item=item | {"arguments": "", "status": "in_progress"},
            )
            yield event("function_call_arguments.delta", **at, delta=item["arguments"])
            yield event("function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield event("output_item.done", output_index=index, item=item)
    yield event("completed", response=whole)
