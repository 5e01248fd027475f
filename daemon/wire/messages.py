"""Anthropic's messages: `POST /v1/messages` and `/v1/messages/count_tokens`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orjson import dumps

from daemon.wire import shared, sse
from daemon.wire.errors import sentence
from daemon.wire.facts import RequestFacts
from daemon.wire.messages_stream import assemble
from daemon.wire.parsing import forgiving, response_in
from daemon.wire.prefix import Prefix
from daemon.wire.spans import Edit, Layout, Span, add_elements, add_member, add_text, apply
from daemon.wire.tail import Mark
from daemon.wire.values import (
    Json,
    clean,
    content_text,
    dump,
    integer,
    load_object,
    load_request,
    mapping,
    mappings,
    string,
    strings,
)
from reef.errors import ReefError
from reef.feedback import Message
from reef.runtime import Billed, Parsed

_STOP = re.compile(rb'"stop_reason"\s*:\s*"')
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class MessagesCodec:
    """See `daemon.wire.codec.Codec`."""

    path = "/messages"

    def facts(self, body: bytes) -> RequestFacts:
        return RequestFacts(load_request(body), ("max_tokens",), _messages)

    def inject(self, body: bytes, prefix: Prefix) -> bytes:
        if not prefix:
            return body
        layout = Layout(body)
        root = layout.root()
        members = layout.members(root)
        edits: list[Edit] = []
        if prefix.system:
            edits.append(_add_system(layout, root, members.get("system"), prefix.system))
        array = members.get("messages")
        if array is not None and layout.kind(array) == "[":
            edits += shared.add_turns(layout, array, prefix.turns)
        return apply(body, edits)

    def fill_model(self, body: bytes, model: str) -> bytes:
        return apply(body, shared.fill_model(body, model))

    def set_model(self, body: bytes, model: str) -> bytes:
        return apply(body, shared.set_model(body, model))

    @forgiving
    def parse(self, body: bytes, *, stream: bool) -> Parsed:
        response, unread = response_in(body, assemble, stream=stream)
        if response is None:
            return Parsed(None)
        # count_tokens answers with a number and no usage
        usage = mapping(response.get("usage", response))
        calls = [part.get("id") for part in mappings(response.get("content")) if _is_call(part)]
        return Parsed(
            response,
            text=content_text(response.get("content")),
            model=string(response.get("model")),
            finish=string(response.get("stop_reason")),
            input_tokens=integer(usage.get("input_tokens")),
            output_tokens=integer(usage.get("output_tokens")),
            cached_tokens=integer(usage.get("cache_read_input_tokens")),
            billed=_billed(usage),
            aliases=strings(response.get("id"), *calls),
            unread=unread,
        )

    def answers(self, response: Mapping[str, Any]) -> bool:
        content, kind = response.get("content"), string(response.get("type")) or ""
        ended = response.get("stop_reason") or mapping(response.get("delta")).get("stop_reason")
        if kind == "message_delta":
            return bool(ended)
        return kind.startswith("content_block") or (isinstance(content, list) and bool(content or ended))

    def turn(self, response: Mapping[str, Any]) -> Message | None:
        content = response.get("content")
        return _turn({"role": "assistant", "content": content})[-1] if isinstance(content, list) else None

    def mark(self, event: bytes) -> Mark:
        name = sse.name(event)
        if not name and (b"message_stop" in event or b'"error"' in event or b"message_delta" in event):
            name = (string((load_object(sse.data(event)) or {}).get("type")) or "").encode()
        if name == b"message_stop":
            return Mark.TERMINAL
        if name == b"error":
            return Mark.ERROR
        return Mark.FINISH if name == b"message_delta" and _STOP.search(event) else Mark.NONE

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes:
        return sse.splice(terminal, b'"reef":{"agent_record_id":"' + receipt.encode() + b'"}')

    def error_body(self, error: ReefError, status: int) -> bytes:
        kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        told = {"type": kind, "message": sentence(error), "code": error.type}
        return dumps({"type": "error", "error": told | ({"hint": error.hint} if error.hint else {})})

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes:
        error = {"type": "overloaded_error", "message": message}
        return sse.encode(dumps({"type": "error", "error": error}), "error")

    def ask(
        self,
        messages: Sequence[Message],
        *,
        model: str | None,
        max_tokens: int,
        temperature: float,
        schema: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> bytes:
        body: Json = {"model": model} if model else {}
        body |= {"max_tokens": max_tokens, "temperature": temperature}
        system = [content_text(message.get("content")) for message in messages if message["role"] == "system"]
        if schema is not None:
            shape = dumps(dict(schema)).decode()
            system.append(f"Answer with one JSON value and nothing else, of this JSON schema:\n{shape}")
        if system:
            body["system"] = "\n\n".join(system)
        body["messages"] = [message for message in messages if message["role"] != "system"]
        return dumps(body)


def _add_system(layout: Layout, root: Span, system: Span | None, text: str) -> Edit:
    if system is None:
        return add_member(layout, root, "system", dumps(text))
    if layout.kind(system) == '"':
        return add_text(layout, system, text)
    if layout.kind(system) == "[":
        return add_elements(layout, system, [dumps({"type": "text", "text": text})])
    return Edit(system.start, system.end, dumps(text))


def _billed(usage: Json) -> Billed | None:
    """What was read from the cache, or put into it, stands beside the input."""
    fresh, output = integer(usage.get("input_tokens")), integer(usage.get("output_tokens"))
    if fresh is None or output is None:
        return None
    cached = integer(usage.get("cache_read_input_tokens"))
    written = integer(usage.get("cache_creation_input_tokens"))
    return Billed(fresh, output, cached or 0, written or 0)


def _is_call(part: Json) -> bool:
    return str(part.get("type")).endswith("tool_use")


def _messages(payload: Json) -> list[Message]:
    system = content_text(payload.get("system"))
    neutral: list[Message] = [{"role": "system", "content": system}] if system else []
    for message in mappings(payload.get("messages")):
        neutral += _turn(message)
    return neutral


def _turn(message: Json) -> list[Message]:
    """A message in chat form: results of tools become messages of their own, before what else it says."""
    role = string(message.get("role")) or "user"
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": clean(content)}]
    parts = mappings(content)
    neutral: list[Message] = [
        {
            "role": "tool",
            "tool_call_id": part.get("tool_use_id"),
            "content": content_text(part.get("content")),
        }
        for part in parts
        if part.get("type") == "tool_result"
    ]
    text = content_text(content)
    calls = [
        {
            "id": part.get("id"),
            "type": "function",
            "function": {"name": part.get("name"), "arguments": dump(part.get("input")).decode()},
        }
        for part in parts
        if _is_call(part)
    ]
    if calls:
        neutral.append({"role": role, "content": text, "tool_calls": calls})
    elif text or not neutral:
        neutral.append({"role": role, "content": text})
    return neutral


CODEC = MessagesCodec()
