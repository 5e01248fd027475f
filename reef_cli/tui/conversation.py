"""What was said in an exchange, read off a record's payload whatever its dialect.

A payload is the request as it was received with the whole `response` in it: chat completions, messages or
responses. What a part of it is cannot always be shown (images, kinds that came later); it is named then.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """`role` is who speaks. `kind` is `text`, `thinking`, `call`, `result` or `other` (named, not shown);
    `name` is the tool's, where there is one."""

    role: str
    kind: str
    text: str
    name: str = ""


def asked(payload: Json) -> list[Part]:
    """What the model was given."""
    parts = [*_content("system", payload.get("system")), *_content("system", payload.get("instructions"))]
    parts += (part for message in _objects(payload.get("messages")) for part in _message(message))
    own = payload.get("input")
    if isinstance(own, str):
        return [*parts, Part("user", "text", own)]
    return [*parts, *(part for item in _objects(own) for part in _item(item))]


def answered(payload: Json) -> list[Part]:
    """What the model said."""
    response = _object(payload.get("response"))
    parts: list[Part] = []
    for choice in _objects(response.get("choices")):
        parts += _message({"role": "assistant"} | _object(choice.get("message")))
    parts += (part for item in _objects(response.get("output")) for part in _item(item))
    if isinstance(response.get("content"), list | str):
        parts += _content("assistant", response["content"])
    return parts


def prompt_of(payload: Json) -> str:
    """The text that the user said last."""
    texts = [part.text for part in asked(payload) if part.role == "user" and part.kind == "text"]
    return texts[-1] if texts else ""


def answer_of(payload: Json) -> str:
    """The answer's text; its calls where it says nothing."""
    parts = answered(payload)
    text = "\n".join(part.text for part in parts if part.kind == "text")
    return text or "\n".join(f"calls {part.name} {part.text}" for part in parts if part.kind == "call")


def _message(message: Json) -> Iterator[Part]:
    """One message of chat completions or of messages."""
    role = str(message.get("role") or "user")
    for key in ("reasoning_content", "reasoning"):
        if isinstance(thought := message.get(key), str) and thought:
            yield Part(role, "thinking", thought)
            break
    if role in ("tool", "function"):
        name = str(message.get("name") or message.get("tool_call_id") or "")
        yield Part("tool", "result", "\n".join(p.text for p in _content(role, message.get("content"))), name)
    else:
        yield from _content(role, message.get("content"))
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        yield Part(role, "text", refusal)
    for call in _objects(message.get("tool_calls")):
        function = _object(call.get("function")) or _object(call.get("custom"))
        arguments = function.get("arguments", function.get("input"))
        yield Part(role, "call", _value(arguments), str(function.get("name") or ""))


def _content(role: str, content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Part(role, "text", content)
        return
    for block in content if isinstance(content, list) else ():
        yield from [Part(role, "text", block)] if isinstance(block, str) else _block(role, _object(block))


def _block(role: str, block: Json) -> Iterator[Part]:
    kind = str(block.get("type") or "text")
    if kind in ("text", "input_text", "output_text", "refusal"):
        yield Part(role, "text", str(block.get("text") or block.get("refusal") or ""))
    elif kind == "thinking":
        yield Part(role, "thinking", str(block.get("thinking") or ""))
    elif kind.endswith("tool_use"):
        yield Part(role, "call", _value(block.get("input")), str(block.get("name") or ""))
    elif kind.endswith("tool_result"):
        told = "\n".join(part.text for part in _content("tool", block.get("content")))
        yield Part("tool", "result", told, str(block.get("tool_use_id") or ""))
    else:
        yield Part(role, "other", _named(kind, block))


def _item(item: Json) -> Iterator[Part]:
    """One item of responses' input or output."""
    kind = str(item.get("type") or "message")
    if kind == "message":
        yield from _content(str(item.get("role") or "user"), item.get("content"))
    elif kind == "reasoning":
        thoughts = [*_objects(item.get("summary")), *_objects(item.get("content"))]
        yield Part("assistant", "thinking", "\n".join(str(thought.get("text") or "") for thought in thoughts))
    elif kind.endswith("_output"):
        output = item.get("output")
        told = "\n".join(p.text for p in _content("tool", output)) if isinstance(output, list) else output
        yield Part("tool", "result", _value(told), str(item.get("call_id") or ""))
    elif kind.endswith("_call"):
        arguments = item.get("arguments", item.get("input", item.get("action")))
        yield Part("assistant", "call", _value(arguments), str(item.get("name") or kind))
    else:
        yield Part("assistant", "other", _named(kind, item))


def _named(kind: str, block: Json) -> str:
    """`image, image/png, 12 kB`: what stands there instead of text."""
    source = _object(block.get("source")) or _object(block.get("image_url")) or block
    media = source.get("media_type") or source.get("mime_type") or ""
    size = len(json.dumps(block, ensure_ascii=False, default=str))
    kilobytes = f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} B"
    return ", ".join(part for part in (kind.replace("_", " "), str(media), kilobytes) if part)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
