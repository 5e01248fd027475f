"""Anthropic's messages: requests, to and from the neutral form."""

import re
from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import fitting_id
from daemon.wire.bridge.neutral import (
    Format,
    Image,
    Part,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    asked,
    joined,
    split_system,
    unheard,
)
from daemon.wire.bridge.reading import (
    arguments_of,
    bound,
    closed,
    message_of,
    number,
    object_at,
    result_parts,
    role_of,
    text_at,
    texts,
    tool,
    truth_at,
    words,
)
from daemon.wire.values import Json, load_object, mapping, mappings, string

FIELDS = {
    "stop": "stop_sequences",
    "failed": "messages[].content[].is_error",
    "signature": "messages[].content[].signature",
    "thinking": "messages[].content[].thinking",
}
"""What the neutral form's fields are called here, where a writer has to drop them."""

MAX_TOKENS = 8192
"""For requests that set no bound: this dialect wants one."""

_KNOWN = frozenset(
    [
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "output_config",
        "stream",
    ]
)
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def to_neutral_request(payload: Json) -> Request:
    dropped = Dropped()
    dropped.rest(payload, _KNOWN)
    output = object_at(payload, "output_config", dropped, "")
    dropped.rest(output, {"format"}, "output_config.")
    opening = parts_of(payload.get("system"), dropped, "system[]")
    said = mappings(payload.get("messages"))
    messages = [
        message_of(
            role_of(message, dropped, "messages[]."),
            parts_of(message.get("content"), dropped, "messages[].content[]"),
            dropped,
            "messages[].content",
        )
        for message in said
    ]
    system, rest = split_system([message_of("system", opening, dropped, "system"), *messages])
    choice = object_at(payload, "tool_choice", dropped, "")
    return Request(
        string(payload.get("model")),
        rest,
        system,
        tuple(found for item in mappings(payload.get("tools")) if (found := _tool(item, dropped))),
        _choice_from(choice, dropped),
        False if truth_at(choice, "disable_parallel_tool_use", dropped, "tool_choice.") else None,
        Sampling(
            max_tokens=bound(payload, "max_tokens", dropped),
            temperature=number(payload.get("temperature")),
            top_p=number(payload.get("top_p")),
            top_k=bound(payload, "top_k", dropped),
            stop=words(payload, "stop_sequences", dropped),
        ),
        _format(output, dropped),
        payload.get("stream") is True,
        dropped=dropped.paths(),
        unheard=unheard(said, messages),
    )


def _format(output: Json, dropped: Dropped) -> Format | None:
    wanted = object_at(output, "format", dropped, "output_config.")
    schema = wanted.get("schema")
    if wanted.get("type") != "json_schema" or not isinstance(schema, dict):
        if wanted:
            dropped.note("output_config.format")
        return None
    dropped.rest(wanted, {"type", "schema"}, "output_config.format.")
    return Format(schema)


def _tool(item: Json, dropped: Dropped) -> Tool | None:
    """Only those that the client runs itself and describes; the others are of the provider's making."""
    kind = item.get("type", "custom")
    if kind != "custom":
        dropped.note(f"tools[{kind}]")
        return None
    return tool(item, "input_schema", dropped, "tools[].")


def _choice_from(choice: Json, dropped: Dropped) -> ToolChoice | None:
    dropped.rest(choice, {"type", "name", "disable_parallel_tool_use"}, "tool_choice.")
    name = string(choice.get("name"))
    match choice.get("type"):
        case "auto":
            return ToolChoice("auto")
        case "none":
            return ToolChoice("none")
        case "any":
            return ToolChoice("required")
        case "tool" if name:
            return ToolChoice("tool", name)
    if choice:
        dropped.note("tool_choice")
    return None


def parts_of(content: Any, dropped: Dropped, at: str) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return texts(content)
    parts: tuple[Part, ...] = ()
    for item in content:
        block = mapping(item)
        match block.get("type"):
            case "text":
                dropped.rest(block, {"type", "text"}, f"{at}.")
                parts += texts(block.get("text"))
            case "image" if url := url_of(mapping(block.get("source"))):
                dropped.rest(block, {"type", "source"}, f"{at}.")
                dropped.rest(block["source"], {"type", "url", "media_type", "data"}, f"{at}.source.")
                parts += (Image(url),)
            case "thinking":
                dropped.rest(block, {"type", "thinking", "signature"}, f"{at}.")
                thoughts = string(block.get("thinking")) or ""
                if not thoughts:
                    dropped.note(f"{at.removesuffix('[]')}[thinking]")
                else:
                    parts += (Thinking(thoughts, string(block.get("signature")) or ""),)
            case "tool_use":
                dropped.rest(block, {"type", "id", "name", "input"}, f"{at}.")
                parts += (_call(block),)
            case "tool_result":
                dropped.rest(block, {"type", "tool_use_id", "content", "is_error"}, f"{at}.")
                inner = parts_of(block.get("content"), dropped, f"{at}.content[]")
                said = result_parts(inner, dropped, f"{at}.content")
                call = text_at(block, "tool_use_id", dropped, f"{at}.") or ""
                failed = truth_at(block, "is_error", dropped, f"{at}.") is True
                parts += (ToolResult(call, said, failed),)
            case kind:
                dropped.note(f"{at.removesuffix('[]')}[{kind}]")
    return parts


def _call(block: Json) -> ToolCall:
    name = string(block.get("name")) or ""
    return ToolCall(string(block.get("id")) or "", name, arguments_of(block.get("input")))


def url_of(source: Json) -> str | None:
    """Where an image is, if not in a file at the provider."""
    if source.get("type") == "url":
        return string(source.get("url"))
    kind, data = string(source.get("media_type")), string(source.get("data"))
    return f"data:{kind};base64,{data}" if source.get("type") == "base64" and kind and data else None


def from_neutral_request(request: Request) -> tuple[Json, Dropped]:
    """The body, and what of the neutral form has no place in it."""
    request = asked(request)
    dropped = Dropped()
    sampling = request.sampling
    for name in ("seed", "presence_penalty", "frequency_penalty", "effort"):
        if getattr(sampling, name) is not None:
            dropped.note(name)
    stop = [word for word in sampling.stop if word.strip()]  # others are refused
    if len(stop) < len(sampling.stop):
        dropped.note("stop")
    temperature = sampling.temperature
    if temperature is not None and temperature > 1:
        dropped.note("temperature")
        temperature = 1.0
    top_p = sampling.top_p
    if temperature is not None and top_p is not None:  # models refuse the two together
        dropped.note("top_p")
        top_p = None
    body: Json = {
        "model": request.model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "system": request.system or None,
        "messages": _turns(request, dropped),
        "temperature": temperature,
        "top_p": top_p,
        "top_k": sampling.top_k,
        "stop_sequences": stop or None,
        "stream": request.stream or None,
    }
    if request.tools:
        if any(item.strict for item in request.tools):
            dropped.note("strict")
        body["tools"] = [
            {
                "name": item.name,
                **({"description": item.description} if item.description else {}),
                "input_schema": item.schema or {"type": "object", "properties": {}},
            }
            for item in request.tools
        ]
        body["tool_choice"] = _choice_for(request)
    elif request.demands:
        dropped.note("tool_choice")
    if wanted := request.format:
        if wanted.schema in (None, {}, {"type": "object"}):  # any object: that is refused
            dropped.note("format")
        else:
            body["output_config"] = {"format": {"type": "json_schema", "schema": closed(wanted.schema)}}
    return {key: value for key, value in body.items() if value is not None}, dropped


def _choice_for(request: Request) -> Json | None:
    serial = {"disable_parallel_tool_use": True} if request.parallel is False else {}
    if request.choice is None:
        return {"type": "auto", **serial} if serial else None
    match request.choice.mode:
        case "tool":
            return {"type": "tool", "name": request.choice.name, **serial}
        case "required":
            return {"type": "any", **serial}
        case "none":
            return {"type": "none"}
        case _:
            return {"type": "auto", **serial}


def _turns(request: Request, dropped: Dropped) -> list[Json]:
    """The conversation. System text in the middle of it becomes the user's, marked as what it is."""
    turns: list[Json] = []
    for message in request.messages:
        if message.role == "system":
            blocks: list[Json] = [{"type": "text", "text": f"<system>\n{joined(message.parts)}\n</system>"}]
        else:
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            rest = [part for part in message.parts if not isinstance(part, ToolResult)]
            blocks = [block for part in (*results, *rest) if (block := _block(part, dropped))]
        role = "assistant" if message.role == "assistant" else "user"
        if blocks and turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _block(part: Part, dropped: Dropped) -> Json | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case Image():
            if part.detail is not None:
                dropped.note("detail")
            return {"type": "image", "source": _source(part.url)}
        case Thinking():
            if not part.signature:  # such are refused
                dropped.note("thinking")
                return None
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall():
            return tool_use(fitting_id(part.id), part.name, part.arguments)
        case ToolResult():
            said = [block for inner in part.parts if (block := _block(inner, dropped))]
            result: Json = {"type": "tool_result", "tool_use_id": fitting_id(part.call), "content": said}
            return result | ({"is_error": True} if part.failed else {})


def _source(url: str) -> Json:
    if found := _DATA_URL.fullmatch(url):
        return {"type": "base64", "media_type": found[1], "data": found[2]}
    return {"type": "url", "url": url}


def tool_use(identity: str, name: str, arguments: str) -> Json:
    """A call; arguments that are no object (a model may write anything) are kept as text in one."""
    value = load_object(arguments.encode(errors="replace"), exact=True)
    value = {"input": arguments} if value is None else value
    return {"type": "tool_use", "id": identity, "name": name, "input": value}
