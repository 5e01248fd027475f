"""What an engine cannot do as it was asked, done by way of chat completions.

A dialect that its server does not speak; an answer of a given shape; a tool call by grammar. Everything else
is passed through as it is.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import orjson

from daemon.runtimes.engine.calls import Calls
from daemon.runtimes.engine.kinds import EngineKind
from daemon.runtimes.engine.schemas import gbnf, grammar_of, guided
from daemon.runtimes.replayed import once
from daemon.wire import sse
from daemon.wire.bridge.crossing import Crossing, cross, neutral_request
from daemon.wire.bridge.neutral import Tool
from daemon.wire.bridge.translator import Translator
from daemon.wire.values import Json, dump, load_exact, load_object, load_request, mapping, mappings
from reef.errors import Invalid, UpstreamFailed
from reef.ids import new_receipt
from reef.runtime import Dialect, ProviderRequest, ProviderResponse

_SIGNS = (b'"tool_choice"', b'"format"', b'"response_format"')
"""What a request has in it that demands a call or a shape. To look for it costs less than to parse."""
_DOCUMENT = b'"document"'
"""llama.cpp's own messages leave such a part out without a word."""
_FORMAT: dict[Dialect, str] = {
    "chat": "response_format.json_schema.schema",
    "messages": "output_config.format.schema",
    "responses": "text.format.schema",
}
_TOOL: dict[Dialect, str] = {
    "chat": "tools[].function.parameters",
    "messages": "tools[].input_schema",
    "responses": "tools[].parameters",
}
"""Where a client's schemas stand."""
_THOUGHT = b'"reasoning_content":'
_JSON = [("content-type", "application/json")]
_EVENTS = [("content-type", "text/event-stream")]


@dataclass(frozen=True, slots=True)
class Shaping:
    """How one request is asked instead: send `request`, and hand its answer to `shaped`."""

    request: ProviderRequest
    stream: bool
    _crossing: Crossing | None
    """None: the answer is in the client's dialect as it is."""
    _calls: Calls | None
    _guided: bool

    async def shaped(self, response: ProviderResponse) -> ProviderResponse:
        """The answer in the client's dialect. An error stays as it is.

        Raises:
            UpstreamFailed: it cannot be read.
        """
        if response.status >= 400:
            return response
        if self._guided:
            response.body = _said(response.body, stream=self.request.stream)
        if self._crossing is None:
            return response
        if self._calls is None and self.stream:
            response.body = _translated(response.body, self._crossing.translator())
            return response
        try:
            whole = b"".join([chunk async for chunk in response.body])
        finally:
            await response.close()
        if self._calls is not None:
            whole = self._with_call(whole, self._calls)
        if self.stream:
            translator = self._crossing.translator()
            said = translator.feed(_as_stream(whole)) + translator.end()
            return ProviderResponse(response.status, _EVENTS, once(said))
        return ProviderResponse(response.status, _JSON, once(self._crossing.answer(whole)))

    def _with_call(self, whole: bytes, calls: Calls) -> bytes:
        response = load_object(whole)
        if response is None:
            raise UpstreamFailed("the engine's answer cannot be read", hint="see its log")
        return dump(calls.taken_from(response))


def may_need_shaping(request: ProviderRequest, kind: EngineKind) -> bool:
    """Whether `shaping` has to be asked, which may take it tens of milliseconds."""
    if request.dialect is None or request.counts:
        return False
    signs = (*_SIGNS, b'"tools"') if kind.calls == "all" else _SIGNS
    return not _speaks(kind, request) or any(sign in request.body for sign in signs)


def _speaks(kind: EngineKind, request: ProviderRequest) -> bool:
    """Whether the engine's own server answers in the dialect of a request as it is meant."""
    if kind.runtime == "engine" and request.dialect == "messages" and _DOCUMENT in request.body:
        return False
    return request.dialect in (kind.streams if request.stream else kind.dialects)


def shaping(request: ProviderRequest, kind: EngineKind) -> Shaping | None:
    """How to ask what the engine does not do by itself; None where the request is passed through. What chat
    completions have no word for is noted in `request.dropped`.

    Raises:
        Invalid: the request is no JSON object, or leans on what only its own provider could know.
    """
    dialect = request.dialect
    if dialect is None or request.counts:
        return None
    spoken = _speaks(kind, request)
    payload = load_request(request.body, exact=True)
    neutral = neutral_request(dialect, payload)
    shape = neutral.format.schema if neutral.format else None
    if dialect == "chat" and shape is None and kind.schemas is not None:
        _check_format(payload)
    # llama.cpp takes no grammar beside tools that a model may call, so that these are called by grammar too.
    every = kind.calls == "all" or (kind.schemas == "guidance" and shape is not None)
    calls = Calls.wanted(neutral, all_calls=every)
    held_here = shape is not None and kind.schemas is not None
    if spoken and calls is None and not held_here and (dialect in kind.shapes or neutral.format is None):
        return None
    crossing = cross(dialect, "chat", payload, new_receipt())
    body = payload
    if dialect != "chat":
        body = _more(mapping(load_exact(crossing.body)), payload)
        request.dropped.extend(path for path in crossing.dropped if path not in body)

    def held(schema: Json, tool: Tool | None) -> Json:
        if kind.schemas is None:
            return schema
        found, lost = guided(schema) if kind.schemas == "guidance" else gbnf(schema)
        at = _FORMAT[dialect] if tool is None else _TOOL[dialect]
        if tool is not None and tool.namespace:
            at = f"tools[].{at}"
        request.dropped.extend(path for one in lost if (path := f"{at}.{one}") not in request.dropped)
        return found

    if calls is not None:
        body = calls.put_into(body, held)
    elif shape is not None:
        named = mapping(mapping(body.get("response_format")).get("json_schema"))
        wanted = {"type": "json_schema", "json_schema": named | {"schema": held(shape, None)}}
        body = body | {"response_format": wanted}
    by_guidance = kind.schemas == "guidance" and (calls is not None or shape is not None)
    asked = replace(
        request,
        dialect="chat",
        path=crossing.path if dialect != "chat" else request.path,
        headers=crossing.headers(request.headers) if dialect != "chat" else request.headers,
        body=dump(_by_guidance(body) if by_guidance else body),
        stream=neutral.stream and calls is None,
    )
    untouched = dialect == "chat" and calls is None
    return Shaping(asked, neutral.stream, None if untouched else crossing, calls, by_guidance)


def _check_format(payload: Json) -> None:
    """A shape that is none would be left out without a word."""
    wanted = payload.get("response_format")
    own = isinstance(mapping(wanted).get("schema"), dict)  # as llama.cpp takes it too
    if wanted and not own and mapping(wanted).get("type") not in ("text", "json_object"):
        raise Invalid(
            "`response_format` asks for no shape that there is",
            hint='for example {"type": "json_schema", "json_schema": {"name": "n", "schema": {...}}}',
        )


def _by_guidance(body: Json) -> Json:
    """With llguidance's grammar in place of the schema. It holds from the first token: nothing is thought."""
    schema = body["response_format"]["json_schema"]["schema"]
    kept = {key: value for key, value in body.items() if key != "response_format"}
    told = mapping(body.get("chat_template_kwargs")) | {"enable_thinking": False}
    messages = mappings(body.get("messages"))
    if messages and messages[-1].get("role") == "assistant":
        # llama.cpp would go on in the middle of it, and the answer would begin with what was said before.
        messages.append({"role": "user", "content": ""})
    return kept | {"messages": messages, "grammar": grammar_of(schema), "chat_template_kwargs": told}


def _more(body: Json, payload: Json) -> Json:
    """With what chat completions have no word for, and llama.cpp has."""
    return body | {"top_k": payload["top_k"]} if isinstance(payload.get("top_k"), int) else body


def _as_stream(whole: bytes) -> bytes:
    """A buffered chat completion as the stream that adds up to it."""
    response = orjson.loads(whole)
    head = {key: response.get(key) for key in ("id", "created", "model")}
    choice = next(iter(mappings(response.get("choices"))), {})
    message = mapping(choice.get("message"))
    delta = {"role": "assistant", "content": message.get("content")}
    if calls := mappings(message.get("tool_calls")):
        delta["tool_calls"] = [call | {"index": number} for number, call in enumerate(calls)]
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}]},
        {"choices": [], "usage": response.get("usage")},
    ]
    return b"".join(sse.encode(dump(head | chunk)) for chunk in chunks) + sse.encode(b"[DONE]")


async def _translated(body: AsyncIterator[bytes], translator: Translator) -> AsyncIterator[bytes]:
    async for chunk in body:
        if said := translator.feed(chunk):
            yield said
    if said := translator.end():
        yield said


async def _said(body: AsyncIterator[bytes], *, stream: bool) -> AsyncIterator[bytes]:
    """An answer by grammar, in which nothing is thought: what llama.cpp takes for a thought, because the
    model's template begins an answer with one, is the answer."""
    if not stream:
        yield _spoken(b"".join([chunk async for chunk in body]))
        return
    events = sse.EventSplitter()
    async for chunk in body:
        for event in events.feed(chunk):
            yield event.replace(_THOUGHT, b'"content":')  # a quote within a text would be escaped
    yield events.rest


def _spoken(whole: bytes) -> bytes:
    response = load_object(whole) if _THOUGHT in whole else None
    for choice in mappings((response or {}).get("choices")):
        message = mapping(choice.get("message"))
        message["content"] = message.pop("reasoning_content", None) or message.get("content")
    return whole if response is None else dump(response)
