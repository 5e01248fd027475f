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
    joined,
    split_system,
)
from daemon.wire.bridge.reading import (
    arguments_of,
    bound,
    check_lists,
    check_numbers,
    check_said,
    check_truths,
    free_form,
    number,
    openai_choice,
    openai_format,
    role_of,
    texts,
    tool,
    unwrapped,
    wrapped,
)
from daemon.wire.values import Json, mapping, mappings, string
from reef.errors import Invalid

FIELDS = {
    "effort": "reasoning.effort",
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
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"})


def check(payload: Json) -> None:
    """Raises Invalid for what no provider takes, and what leads to what only OpenAI's own server keeps."""
    for key in ("previous_response_id", "conversation", "prompt"):
        if payload.get(key) is not None:
            raise Invalid(
                f"`{key}` leads to what the upstream does not keep",
                hint="send the whole conversation in `input`",
            )
    check_lists(payload, "tools", *(() if isinstance(payload.get("input"), str) else ("input",)))
    check_said(payload, "input")
    check_numbers(payload, "max_output_tokens", "temperature", "top_p")
    check_truths(payload, "stream", "parallel_tool_calls")


def to_neutral_request(payload: Json) -> Request:
    dropped = Dropped()
    dropped.rest(payload, _KNOWN)
    reasoning, wanted = mapping(payload.get("reasoning")), mapping(payload.get("text"))
    dropped.rest(reasoning, {"effort"}, "reasoning.")
    dropped.rest(wanted, {"format"}, "text.")
    shape = mapping(wanted.get("format"))
    own = payload.get("input")
    items = [{"role": "user", "content": own}] if isinstance(own, str) else mappings(own)
    messages = [Message("system", texts(payload.get("instructions")))]
    messages += [_message(item, dropped) for item in items]
    system, rest = split_system(messages)
    parallel = payload.get("parallel_tool_calls")
    return Request(
        string(payload.get("model")),
        rest,
        system,
        tuple(found for item in mappings(payload.get("tools")) for found in _tools(item, dropped)),
        openai_choice(payload.get("tool_choice"), dropped),
        parallel if isinstance(parallel, bool) else None,
        Sampling(
            max_tokens=bound(payload, "max_output_tokens", dropped),
            temperature=number(payload.get("temperature")),
            top_p=number(payload.get("top_p")),
            effort=string(reasoning.get("effort")),
        ),
        openai_format(shape, shape),
        payload.get("stream") is True,
        dropped=dropped.paths(),
    )


def _tools(item: Json, dropped: Dropped, namespace: str = "") -> list[Tool]:
    """The tools of one entry; those of a namespace stand in it one level deep."""
    kind = item.get("type", "function")
    at = "tools[].tools[]." if namespace else "tools[]."
    if kind == "namespace" and not namespace:
        name = string(item.get("name")) or ""
        dropped.rest(item, {"type", "name", "description", "tools"}, at)
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
            return Message(role_of(item, dropped, "input[]."), parts_of(item.get("content"), dropped))
        case "reasoning":
            thoughts = thinking_of(item)
            if not thoughts:
                dropped.note("input[reasoning]")
            return Message("assistant", thoughts)
        case "function_call" | "custom_tool_call":
            return Message("assistant", (call_from(item),))
        case "function_call_output" | "custom_tool_call_output":
            inner = parts_of(item.get("output"), dropped, "input[].output[]")
            said = tuple(part for part in inner if isinstance(part, Text | Image))
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
        if kind in _TEXTS:
            dropped.rest(part, {"type", "text", "refusal", "annotations", "logprobs"}, f"{at}.")
            parts += texts(part.get("text", part.get("refusal")))
        elif kind == "input_image" and (url := string(part.get("image_url"))):
            parts += (Image(url, string(part.get("detail"))),)
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
