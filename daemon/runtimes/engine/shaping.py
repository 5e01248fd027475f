"""What an engine cannot do as it was asked, done by way of chat completions.

A dialect that its server does not speak; an answer of a given shape, where its server takes that in chat
completions only; a tool call by grammar. Everything else is passed through as it is.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import orjson

from daemon.runtimes.engine.calls import Calls
from daemon.runtimes.engine.kinds import EngineKind
from daemon.runtimes.replayed import once
from daemon.wire import sse
from daemon.wire.bridge.crossing import Crossing, cross, neutral_request
from daemon.wire.bridge.translator import Translator
from daemon.wire.values import Json, dump, load_object, load_request, mapping, mappings
from reef.errors import UpstreamFailed
from reef.ids import new_receipt
from reef.runtime import ProviderRequest, ProviderResponse

_SIGNS = (b'"tool_choice"', b'"format"')
"""What a request has in it that demands a call or a shape. To look for it costs less than to parse."""
_JSON = [("content-type", "application/json")]
_EVENTS = [("content-type", "text/event-stream")]


@dataclass(frozen=True, slots=True)
class Shaping:
    """How one request is asked instead: send `request`, and hand its answer to `shaped`."""

    request: ProviderRequest
    stream: bool
    _crossing: Crossing
    _calls: Calls | None

    async def shaped(self, response: ProviderResponse) -> ProviderResponse:
        """The answer in the client's dialect. An error stays as it is.

        Raises:
            UpstreamFailed: it cannot be read.
        """
        if response.status >= 400:
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


def shaping(request: ProviderRequest, kind: EngineKind) -> Shaping | None:
    """How to ask what the engine does not do by itself; None where the request is passed through.

    Raises:
        Invalid: the request is no JSON object, or leans on what only its own provider could know.
    """
    dialect = request.dialect
    if dialect is None or request.path.startswith("/messages/count_tokens"):
        return None
    spoken = dialect in (kind.streams if request.stream else kind.dialects)
    signs = (*_SIGNS, b'"tools"') if kind.calls == "all" else _SIGNS
    if spoken and not any(sign in request.body for sign in signs):
        return None
    payload = load_request(request.body)
    neutral = neutral_request(dialect, payload)
    calls = Calls.wanted(neutral, all_calls=kind.calls == "all")
    if spoken and calls is None and (dialect in kind.shapes or neutral.format is None):
        return None
    crossing = cross(dialect, "chat", payload, new_receipt())
    body = payload if dialect == "chat" else _more(orjson.loads(crossing.body), payload)
    if calls is not None:
        body = calls.put_into(body)
    asked = replace(
        request,
        dialect="chat",
        path=crossing.path,
        headers=crossing.headers(request.headers),
        body=dump(body),
        stream=neutral.stream and calls is None,
    )
    return Shaping(asked, neutral.stream, crossing, calls)


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
