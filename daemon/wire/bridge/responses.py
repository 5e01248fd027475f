"""OpenAI's responses: requests, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import Known, flat_name
from daemon.wire.bridge.neutral import (
    Image,
    Message,
    Part,
    Request,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    asked,
    joined,
    split_system,
    unheard,
)
from daemon.wire.bridge.reading import (
    arguments_of,
    bound,
    free_form,
    message_of,
    number,
    object_at,
    openai_choice,
    openai_format,
    result_parts,
    role_of,
    text_at,
    texts,
    tool,
    truth_at,
    unwrapped,
    wrapped,
)
from daemon.wire.values import Json, mapping, mappings, string
from reef.errors import Invalid

FIELDS = {
    "effort": "reasoning.effort",
    "format": "text.format",
    "strict": "tools[].strict",
    "detail": "input[].content[].detail",
    "thinking": "input[reasoning]",
}
"""What the neutral form's fields are called here, where a writer has to drop them."""

_KNOWN = frozenset(
    [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "reasoning",
        "text",
        "stream",
    ]
)
TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")
_CALL = frozenset({"type", "id", "call_id", "status", "name", "namespace", "arguments", "input"})
_RESULT = frozenset({"type", "id", "call_id", "status", "output"})


def to_neutral_request(payload: Json) -> Request:
    dropped = Dropped()
    dropped.rest(payload, _KNOWN)
    reasoning = object_at(payload, "reasoning", dropped, "")
    wanted = object_at(payload, "text", dropped, "")
    dropped.rest(reasoning, {"effort"}, "reasoning.")
    dropped.rest(wanted, {"format"}, "text.")
    own = payload.get("input")
    items = [{"role": "user", "content": own}] if isinstance(own, str) else mappings(own)
    said = [_message(item, dropped) for item in items]
    opening = texts(text_at(payload, "instructions", dropped, ""))
    system, rest = split_system([Message("system", opening), *said])
    return Request(
        string(payload.get("model")),
        rest,
        system,
        tuple(found for item in mappings(payload.get("tools")) for found in _tools(item, dropped)),
        openai_choice(payload.get("tool_choice"), dropped),
        truth_at(payload, "parallel_tool_calls", dropped, ""),
        Sampling(
            max_tokens=bound(payload, "max_output_tokens", dropped),
            temperature=number(payload.get("temperature")),
            top_p=number(payload.get("top_p")),
            effort=text_at(reasoning, "effort", dropped, "reasoning."),
        ),
        openai_format(wanted, "format", dropped, "text."),
        payload.get("stream") is True,
        dropped=dropped.paths(),
        unheard=unheard(items, said),
    )


def _tools(item: Json, dropped: Dropped, namespace: str = "") -> list[Tool]:
    """The tools of one entry; those of a namespace stand in it one level deep."""
    kind = item.get("type", "function")
    at = "tools[].tools[]." if namespace else "tools[]."
    if kind == "namespace" and not namespace:
        name = string(item.get("name")) or ""
        dropped.rest(item, {"type", "name", "tools"}, "tools[namespace].")
        return [found for inner in mappings(item.get("tools")) for found in _tools(inner, dropped, name)]
    if kind not in ("function", "custom"):
        dropped.note(f"{at.removesuffix('[].')}[{kind}]")
        return []
    found = free_form(item, dropped, at) if kind == "custom" else tool(item, "parameters", dropped, at)
    if found is None or not namespace:
        return [found] if found else []
    flat = flat_name(namespace, found.name)
    return [Tool(flat, found.description, found.schema, found.strict, found.custom, namespace, found.name)]


def _message(item: Json, dropped: Dropped) -> Message:
    """An item as (a part of) a message."""
    kind = str(item.get("type") or "message")
    match kind:
        case "message":
            dropped.rest(item, {"type", "role", "content", "id", "status"}, "input[].")
            parts = parts_of(item.get("content"), dropped)
            return message_of(role_of(item, dropped, "input[]."), parts, dropped, "input[].content")
        case "reasoning":
            thoughts = thinking_of(item)
            if not thoughts:
                dropped.note("input[reasoning]")
            elif item.get("encrypted_content"):
                dropped.note("input[].encrypted_content")
            return Message("assistant", thoughts)
        case "function_call" | "custom_tool_call":
            dropped.rest(item, _CALL, "input[].")
            return Message("assistant", (call_from(item),))
        case "function_call_output" | "custom_tool_call_output":
            dropped.rest(item, _RESULT, "input[].")
            said = result_parts(
                parts_of(item.get("output"), dropped, "input[].output[]"), dropped, "input[].output"
            )
            result = ToolResult(string(item.get("call_id")) or "", said, custom=kind.startswith("custom"))
            return Message("user", (result,))
        case "item_reference":
            raise Invalid(
                "an `item_reference` leads to what the upstream does not keep",
                hint="set `store` to false, so that the client sends items whole",
            )
        case _:
            dropped.note(f"input[{kind}]")
            return Message("user", ())


def parts_of(content: Any, dropped: Dropped, at: str = "input[].content[]") -> tuple[Part, ...]:
    if not isinstance(content, list):
        return texts(content)
    parts: tuple[Part, ...] = ()
    for item in content:
        part = mapping(item)
        kind = part.get("type")
        if kind in TEXTS:
            dropped.rest(part, {"type", "text", "refusal", "annotations", "logprobs"}, f"{at}.")
            parts += texts(part.get("text", part.get("refusal")))
        elif kind == "input_image" and (url := string(part.get("image_url"))):
            dropped.rest(part, {"type", "image_url", "detail"}, f"{at}.")
            parts += (Image(url, text_at(part, "detail", dropped, f"{at}.")),)
        else:
            dropped.note(f"{at.removesuffix('[]')}[{kind}]")
    return parts


def thinking_of(item: Json) -> tuple[Thinking, ...]:
    """What a reasoning item says in plain words: its own text, else the summary."""
    own = [string(part.get("text")) or "" for part in mappings(item.get("content"))]
    summary = [string(part.get("text")) or "" for part in mappings(item.get("summary"))]
    text = "\n\n".join(said for said in own or summary if said)
    return (Thinking(text),) if text else ()


def call_from(item: Json) -> ToolCall:
    namespace, name = string(item.get("namespace")) or "", string(item.get("name")) or ""
    flat = flat_name(namespace, name) if namespace else name
    identity = string(item.get("call_id")) or string(item.get("id")) or ""
    if item.get("type") == "custom_tool_call":
        return ToolCall(identity, flat, wrapped(item.get("input")), True)
    return ToolCall(identity, flat, arguments_of(item.get("arguments")))


def from_neutral_request(request: Request) -> tuple[Json, Dropped]:
    """The body, and what of the neutral form has no place in it. A temperature of 1, the default, is left
    out: models that reason refuse to be told."""
    request = asked(request)
    dropped = Dropped()
    sampling = request.sampling
    for name in ("top_k", "seed", "presence_penalty", "frequency_penalty", "stop"):
        if getattr(sampling, name) not in (None, ()):
            dropped.note(name)
    body: Json = {
        "model": request.model,
        "instructions": request.system or None,
        "input": [item for message in request.messages for item in _items(message, dropped)],
        "max_output_tokens": sampling.max_tokens,
        "temperature": None if sampling.temperature == 1 else sampling.temperature,
        "top_p": sampling.top_p,
        "reasoning": {"effort": sampling.effort} if sampling.effort else None,
        "stream": request.stream or None,
        "store": False,
    }
    if request.tools:
        body["tools"] = [_offered(item) for item in request.tools]
        if choice := request.choice:
            named = {"type": "custom" if _is_custom(request, choice.name) else "function"}
            body["tool_choice"] = named | {"name": choice.name} if choice.mode == "tool" else choice.mode
        body["parallel_tool_calls"] = request.parallel
    elif request.demands:
        dropped.note("tool_choice")
    if wanted := request.format:
        body["text"] = {"format": {"type": "json_object"}}
        if wanted.schema is not None:
            shape: Json = {"type": "json_schema", "name": wanted.name, "schema": wanted.schema}
            body["text"] = {"format": shape | ({} if wanted.strict is None else {"strict": wanted.strict})}
    return {key: value for key, value in body.items() if value is not None}, dropped


def _is_custom(request: Request, name: str) -> bool:
    return any(item.custom and item.name == name for item in request.tools)


def _offered(item: Tool) -> Json:
    named = {"name": item.name} | ({"description": item.description} if item.description else {})
    if item.custom:
        return {"type": "custom", **named}
    return {"type": "function", **named, "parameters": item.schema, "strict": item.strict or False}


def _items(message: Message, dropped: Dropped) -> list[Json]:
    """A message as items; texts and images in a row stay one item."""
    items: list[Json] = []
    spoken: list[Json] = []
    for part in message.parts:
        match part:
            case Text() | Image():
                if not spoken:
                    items.append({"type": "message", "role": message.role, "content": spoken})
                spoken.append(_content(part, message.role))
                continue
            case ToolCall():
                items.append(call_item("", part.id, part.arguments, Known(part.name, custom=part.custom)))
            case ToolResult():
                if part.failed:
                    dropped.note("failed")
                kind = "custom_tool_call_output" if part.custom else "function_call_output"
                items.append({"type": kind, "call_id": part.call, "output": _output(part)})
            case Thinking():  # the server takes back none but what it made
                dropped.note("thinking")
                continue
        spoken = []
    return items


def _content(part: Text | Image, role: Role = "user") -> Json:
    if isinstance(part, Text):
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
    return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}


def _output(result: ToolResult) -> Any:
    if any(isinstance(part, Image) for part in result.parts):
        return [_content(part) for part in result.parts]
    return joined(result.parts)


def call_item(identity: str, call_id: str, arguments: str, known: Known) -> Json:
    """A call of a tool; without an `identity` it is one that goes back to a server."""
    item: Json = {"type": "function_call", "call_id": call_id, "name": known.name, "arguments": arguments}
    if known.custom:
        item = {"type": "custom_tool_call", "call_id": call_id, "name": known.name}
        item["input"] = unwrapped(arguments)
    if known.namespace:
        item["namespace"] = known.namespace
    return {"id": identity, **item, "status": "completed"} if identity else item
