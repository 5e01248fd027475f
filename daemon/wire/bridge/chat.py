"""Chat completions, to and from the neutral form."""

from typing import Any

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import (
    Answer,
    Image,
    Message,
    Part,
    Request,
    Sampling,
    Stop,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
    joined,
    run_on,
    split_system,
    spoken,
    thought,
)
from daemon.wire.bridge.reading import (
    arguments_of,
    free_form,
    number,
    openai_choice,
    openai_format,
    role_of,
    split_result,
    texts,
    tool,
    unwrapped,
    words,
    wrapped,
)
from daemon.wire.values import Json, integer, mapping, mappings, string

FIELDS = {
    "stop": "stop",
    "effort": "reasoning_effort",
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


def to_neutral_request(payload: Json) -> Request:
    dropped = Dropped()
    dropped.rest(payload, _KNOWN)
    options = mapping(payload.get("stream_options"))
    dropped.rest(options, {"include_usage"}, "stream_options.")
    messages = [_message(message, dropped) for message in mappings(payload.get("messages"))]
    system, rest = split_system(messages)
    parallel = payload.get("parallel_tool_calls")
    wanted = mapping(payload.get("response_format"))
    most = integer(payload.get("max_completion_tokens"))
    sampling = Sampling(
        max_tokens=integer(payload.get("max_tokens")) if most is None else most,
        temperature=number(payload.get("temperature")),
        top_p=number(payload.get("top_p")),
        top_k=integer(payload.get("top_k")),
        seed=integer(payload.get("seed")),
        presence_penalty=number(payload.get("presence_penalty")),
        frequency_penalty=number(payload.get("frequency_penalty")),
        stop=words(payload.get("stop")),
        effort=string(payload.get("reasoning_effort")),
    )
    return Request(
        string(payload.get("model")),
        rest,
        system,
        tuple(found for item in mappings(payload.get("tools")) if (found := _tool(item, dropped))),
        openai_choice(payload.get("tool_choice"), dropped),
        parallel if isinstance(parallel, bool) else None,
        sampling,
        openai_format(wanted, mapping(wanted.get("json_schema"))),
        payload.get("stream") is True,
        options.get("include_usage") is True,
        dropped.paths(),
    )


def _tool(item: Json, dropped: Dropped) -> Tool | None:
    kind = item.get("type", "function")
    if kind == "custom":
        return free_form(mapping(item.get("custom")), dropped, "tools[].custom.")
    if kind == "function":
        return tool(mapping(item.get("function")), "parameters", dropped, "tools[].function.")
    dropped.note(f"tools[{kind}]")
    return None


def _message(message: Json, dropped: Dropped) -> Message:
    at = "messages[]."
    if message.get("role") == "tool":
        dropped.rest(message, {"role", "content", "tool_call_id"}, at)
        said = tuple(p for p in _parts(message.get("content"), dropped) if isinstance(p, Text | Image))
        return Message("user", (ToolResult(string(message.get("tool_call_id")) or "", said),))
    known = {"role", "content", "tool_calls", "reasoning_content", "reasoning", "refusal"}
    dropped.rest(message, known, at)
    parts = _thinking(message) + _parts(message.get("content"), dropped)
    parts += texts(message.get("refusal"))
    for call in mappings(message.get("tool_calls")):
        parts += (_call(call),)
    return Message(role_of(message.get("role")), parts)


def _thinking(message: Json) -> tuple[Part, ...]:
    """Servers differ in what they call it, and some send it under both names."""
    text = string(message.get("reasoning_content")) or string(message.get("reasoning"))
    return (Thinking(text),) if text else ()


def _parts(content: Any, dropped: Dropped) -> tuple[Part, ...]:
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
        elif kind == "image_url" and (url := _url(item)):
            parts += (Image(url, string(mapping(item["image_url"]).get("detail"))),)
        else:
            dropped.note(f"messages[].content[{kind}]")
    return parts


def _url(item: Json) -> str | None:
    image = item.get("image_url")
    return string(image) or string(mapping(image).get("url"))


def _call(call: Json) -> ToolCall:
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


def to_neutral_answer(response: Json) -> Answer:
    """An answer as it came, however far; ids that it lacks are empty."""
    choice = next(iter(mappings(response.get("choices"))), {})
    message = mapping(choice.get("message"))
    said = (*_thinking(message), *_parts(message.get("content"), Dropped()), *texts(message.get("refusal")))
    parts = run_on(part for part in said if isinstance(part, Text | Thinking))
    calls = [_call(call) for call in mappings(message.get("tool_calls"))]
    stop = STOPS.get(str(choice.get("finish_reason")), "end") if choice.get("finish_reason") else None
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
    usage = mapping(value)
    return Usage(
        integer(usage.get("prompt_tokens")),
        integer(usage.get("completion_tokens")),
        integer(mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        None,
        integer(mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


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
