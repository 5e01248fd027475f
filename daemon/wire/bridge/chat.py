"""Chat completions: requests, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.neutral import (
    Image,
    Message,
    Part,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
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
    role_of,
    split_result,
    text_at,
    texts,
    tool,
    truth_at,
    whole,
    words,
    wrapped,
)
from daemon.wire.values import Json, content_text, mapping, mappings, string

FIELDS = {
    "stop": "stop",
    "effort": "reasoning_effort",
    "format": "response_format",
    "strict": "tools[].function.strict",
    "detail": "messages[].content[].image_url.detail",
    "thinking": "messages[].reasoning_content",
}
"""What the neutral form's fields are called here, where a writer has to drop them."""

_KNOWN = frozenset(
    [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "stop",
        "reasoning_effort",
        "response_format",
        "stream",
        "stream_options",
    ]
)


def to_neutral_request(payload: Json) -> Request:
    dropped = Dropped()
    dropped.rest(payload, _KNOWN)
    options = object_at(payload, "stream_options", dropped, "")
    dropped.rest(options, {"include_usage"}, "stream_options.")
    said = mappings(payload.get("messages"))
    messages = [_message(message, dropped) for message in said]
    system, rest = split_system(messages)
    most = bound(payload, "max_completion_tokens", dropped)
    if most is not None and payload.get("max_tokens") not in (None, most):
        dropped.note("max_tokens")
    sampling = Sampling(
        max_tokens=bound(payload, "max_tokens", dropped) if most is None else most,
        temperature=number(payload.get("temperature")),
        top_p=number(payload.get("top_p")),
        top_k=bound(payload, "top_k", dropped),
        seed=whole(payload, "seed", dropped),
        presence_penalty=number(payload.get("presence_penalty")),
        frequency_penalty=number(payload.get("frequency_penalty")),
        stop=words(payload, "stop", dropped),
        effort=text_at(payload, "reasoning_effort", dropped, ""),
    )
    return Request(
        string(payload.get("model")),
        rest,
        system,
        tuple(found for item in mappings(payload.get("tools")) if (found := _tool(item, dropped))),
        openai_choice(payload.get("tool_choice"), dropped),
        truth_at(payload, "parallel_tool_calls", dropped, ""),
        sampling,
        openai_format(payload, "response_format", dropped, inner="json_schema"),
        payload.get("stream") is True,
        options.get("include_usage") is True,
        dropped.paths(),
        unheard(said, messages),
    )


def _tool(item: Json, dropped: Dropped) -> Tool | None:
    kind = item.get("type", "function")
    if kind == "custom":
        dropped.rest(item, {"type", "custom"}, "tools[].")
        return free_form(mapping(item.get("custom")), dropped, "tools[].custom.")
    if kind == "function":
        dropped.rest(item, {"type", "function"}, "tools[].")
        return tool(mapping(item.get("function")), "parameters", dropped, "tools[].function.")
    dropped.note(f"tools[{kind}]")
    return None


def _message(message: Json, dropped: Dropped) -> Message:
    at = "messages[]."
    if message.get("role") == "tool":
        dropped.rest(message, {"role", "content", "tool_call_id"}, at)
        said = tuple(p for p in parts_of(message.get("content"), dropped) if isinstance(p, Text | Image))
        return Message("user", (ToolResult(text_at(message, "tool_call_id", dropped, at) or "", said),))
    known = {"role", "content", "tool_calls", "reasoning_content", "reasoning", "refusal"}
    dropped.rest(message, known, at)
    parts = thinking_of(message) + parts_of(message.get("content"), dropped)
    parts += texts(message.get("refusal"))
    for key in ("reasoning_content", "reasoning"):
        text_at(message, key, dropped, at)
    for call in mappings(message.get("tool_calls")):
        dropped.rest(call, {"type", "id", "function", "custom", "index"}, f"{at}tool_calls[].")
        parts += (call_from(call),)
    return message_of(role_of(message, dropped, at), parts, dropped, f"{at}content")


def thinking_of(message: Json) -> tuple[Part, ...]:
    """Servers differ in what they call it, and some send it under both names."""
    text = string(message.get("reasoning_content")) or string(message.get("reasoning"))
    return (Thinking(text),) if text else ()


def parts_of(content: Any, dropped: Dropped) -> tuple[Part, ...]:
    if not isinstance(content, list):
        return texts(content)
    parts: tuple[Part, ...] = ()
    for item in content:
        kind = mapping(item).get("type")
        if isinstance(item, str):
            parts += texts(item)
        elif kind in ("text", "refusal"):
            dropped.rest(item, {"type", "text", "refusal"}, "messages[].content[].")
            parts += texts(item.get("text", item.get("refusal")))
        elif kind == "image_url" and (url := url_of(item)):
            place = "messages[].content[].image_url."
            dropped.rest(item, {"type", "image_url"}, "messages[].content[].")
            image = mapping(item["image_url"])
            dropped.rest(image, {"url", "detail"}, place)
            parts += (Image(url, text_at(image, "detail", dropped, place)),)
        elif kind == "thinking":
            dropped.rest(item, {"type", "thinking"}, "messages[].content[].")
            said = content_text(item.get("thinking"))
            parts += (Thinking(said),) if said else ()
        else:
            dropped.note(f"messages[].content[{kind}]")
    return parts


def calls_in(message: Json) -> list[Json]:
    """The calls of an answer, or of a piece of one; older servers know one, under another name."""
    calls = mappings(message.get("tool_calls"))
    if not calls and mapping(message.get("function_call")):
        return [{"index": 0, "function": message["function_call"]}]
    return calls


def url_of(item: Json) -> str | None:
    """Where the image of a part is."""
    image = item.get("image_url")
    return string(image) or string(mapping(image).get("url"))


def call_from(call: Json) -> ToolCall:
    identity = string(call.get("id")) or ""
    if call.get("type") == "custom":
        custom = mapping(call.get("custom"))
        return ToolCall(identity, string(custom.get("name")) or "", wrapped(custom.get("input")), True)
    function = mapping(call.get("function"))
    return ToolCall(identity, string(function.get("name")) or "", arguments_of(function.get("arguments")))


def from_neutral_request(request: Request) -> tuple[Json, Dropped]:
    """The body, and what of the neutral form has no place in it."""
    dropped = Dropped()
    sampling = request.sampling
    messages: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        messages += _said(message, dropped)
    body: Json = {
        "model": request.model,
        "messages": messages,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "stop": list(sampling.stop) or None,
        "reasoning_effort": sampling.effort,
    }
    if sampling.top_k is not None:
        dropped.note("top_k")
    if request.tools:
        body["tools"] = [_offered(item) for item in request.tools]
        body["tool_choice"] = _choice(request.choice)
        body["parallel_tool_calls"] = False if request.parallel is False else None
    elif request.demands:
        dropped.note("tool_choice")
    if wanted := request.format:
        named = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
        body["response_format"] = (
            {"type": "json_schema", "json_schema": _without_none(named)}
            if wanted.schema is not None
            else {"type": "json_object"}
        )
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return _without_none(body), dropped


def _without_none(value: Json) -> Json:
    return {key: member for key, member in value.items() if member is not None}


def _offered(item: Tool) -> Json:
    function = {"name": item.name, "description": item.description or None, "parameters": item.schema}
    return {"type": "function", "function": _without_none(function | {"strict": item.strict or None})}


def _choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _said(message: Message, dropped: Dropped) -> list[Json]:
    """A message of the neutral form: results of tools are messages of their own and come first; the images
    in them, which such a message cannot hold, follow as the user's."""
    if message.role == "assistant":
        return [_assistant(message, dropped)]
    said: list[Json] = []
    rest: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            text, images = split_result(part.parts)
            if part.failed:
                dropped.note("failed")
            if images:
                rest += [Text(f"The images of the tool's result {part.call}:"), *images]
            said.append({"role": "tool", "tool_call_id": part.call, "content": text})
        else:
            rest.append(part)
    if rest:
        said.append({"role": message.role, "content": _content(rest)})
    return said


def _content(parts: list[Part]) -> Any:
    """A string, which every server takes, wherever there is nothing but text."""
    if not any(isinstance(part, Image) for part in parts):
        return joined(parts)
    listed: list[Json] = []
    for part in parts:
        if isinstance(part, Image):
            image = _without_none({"url": part.url, "detail": part.detail})
            listed.append({"type": "image_url", "image_url": image})
        elif isinstance(part, Text):
            listed.append({"type": "text", "text": part.text})
    return listed


def _assistant(message: Message, dropped: Dropped) -> Json:
    said: Json = {"role": "assistant", "content": joined(message.parts) or None}
    thoughts = [part for part in message.parts if isinstance(part, Thinking) and part.text]
    if thoughts:
        said["reasoning_content"] = "\n\n".join(part.text for part in thoughts)
    if any(part.signature for part in thoughts):
        dropped.note("signature")
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        said["tool_calls"] = [call_of(call) for call in calls]
    elif said["content"] is None:
        said["content"] = ""
    return said


def call_of(call: ToolCall) -> Json:
    """A call that takes an object; so are free-form ones asked of an upstream."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
