"""Chat completions: `POST /v1/chat/completions`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orjson import dumps

from daemon.wire import shared, sse
from daemon.wire.chat_stream import assemble
from daemon.wire.facts import RequestFacts
from daemon.wire.parsing import forgiving, response_in
from daemon.wire.prefix import Prefix
from daemon.wire.spans import Edit, Layout, Span, add_elements, add_text, apply
from daemon.wire.tail import Mark
from daemon.wire.values import (
    Json,
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
from reef.runtime import Parsed

# Inside a JSON string these quotes would be escaped, so this matches a key with a string value only.
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_CODES = {"502": "upstream", "503": "unavailable"}
"""By the status that an error event begins with."""
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_MORE = ("tool_calls", "tool_call_id", "name")
_KEPT = ("id", "created", "model", "system_fingerprint", "service_tier")


class ChatCodec:
    """See `daemon.wire.codec.Codec`."""

    path = "/chat/completions"

    def facts(self, body: bytes) -> RequestFacts:
        return RequestFacts(load_request(body), ("max_completion_tokens", "max_tokens"), _messages)

    def inject(self, body: bytes, prefix: Prefix) -> bytes:
        if not prefix:
            return body
        layout = Layout(body)
        array = layout.members(layout.root()).get("messages")
        if array is None or layout.kind(array) != "[":
            return body
        first = next(shared.leading_system(layout, array), None)
        edit = _add_to_system(layout, first[1].get("content"), prefix.system) if first else None
        if not prefix.system or edit:
            return apply(body, [*([edit] if edit else []), *shared.add_turns(layout, array, prefix.turns)])
        system = dumps({"role": "system", "content": prefix.system})
        if first:
            turns = shared.add_turns(layout, array, prefix.turns)
            return apply(body, [add_elements(layout, array, [system]), *turns])
        return apply(body, [add_elements(layout, array, [system, *shared.turn_elements(prefix.turns)])])

    def fill_model(self, body: bytes, model: str) -> bytes:
        return apply(body, shared.fill_model(body, model))

    def set_model(self, body: bytes, model: str) -> bytes:
        return apply(body, shared.set_model(body, model))

    @forgiving
    def parse(self, body: bytes, *, stream: bool) -> Parsed:
        response, unread = response_in(body, assemble, stream=stream)
        if response is None:
            return Parsed(None)
        choice = next(iter(mappings(response.get("choices"))), {})
        message = mapping(choice.get("message"))
        usage = mapping(response.get("usage"))
        counts = (
            integer(usage.get("prompt_tokens")),
            integer(usage.get("completion_tokens")),
            integer(mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        )
        return Parsed(
            response,
            text=content_text(message.get("content")),
            model=string(response.get("model")),
            finish=string(choice.get("finish_reason")),
            input_tokens=counts[0],
            output_tokens=counts[1],
            cached_tokens=counts[2],
            billed=shared.billed(*counts),
            aliases=strings(response.get("id"), *(c.get("id") for c in mappings(message.get("tool_calls")))),
            unread=unread,
        )

    def answers(self, response: Mapping[str, Any]) -> bool:
        return any(_says(choice) for choice in mappings(response.get("choices")))

    def turn(self, response: Mapping[str, Any]) -> Message | None:
        for choice in mappings(response.get("choices")):
            return _message(mapping(choice.get("message")) | {"role": "assistant"})
        return None

    def mark(self, event: bytes) -> Mark:
        if b"[DONE]" in event and sse.data(event).strip() == b"[DONE]":
            return Mark.TERMINAL
        if b'"error"' in event and (load_object(sse.data(event)) or {}).get("error"):
            return Mark.ERROR
        if sse.name(event) == b"error":
            return Mark.ERROR
        return Mark.FINISH if _FINISH.search(event) else Mark.NONE

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes:
        chunk = load_object(sse.data(first)) or {}
        kept = {key: chunk[key] for key in _KEPT if key in chunk}
        extra = {
            "id": kept.pop("id", receipt),
            "object": "chat.completion.chunk",
            "created": kept.pop("created", 0),
            "model": kept.pop("model", ""),
            **kept,
            "choices": [],
            "reef": {"agent_record_id": receipt},
        }
        return sse.encode(dump(extra)) + terminal

    def error_body(self, error: ReefError, status: int) -> bytes:
        return shared.error_body(error, status)

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes:
        code = _CODES.get(message[:3])
        error = {"message": message, "type": "server_error", "param": None, "code": code}
        return sse.encode(dumps({"error": error}))

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
        body |= {"messages": list(messages), "max_tokens": max_tokens, "temperature": temperature}
        if schema is not None:
            named = {"name": "answer", "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if seed is not None:
            body["seed"] = seed
        return dumps(body)


def _add_to_system(layout: Layout, content: Span | None, text: str) -> Edit | None:
    """Text in front of a system message's own; None where its content is neither text nor a list."""
    if content is None or not text:
        return None
    if layout.kind(content) == '"':
        return add_text(layout, content, text)
    if layout.kind(content) == "[":
        end = "" if layout.is_empty(content) else "\n\n"
        return add_elements(layout, content, [dumps({"type": "text", "text": text + end})])
    return None


def _says(choice: Json) -> bool:
    """Whether there is an end, or anything beside a role."""
    said = mapping(choice.get("message")) or mapping(choice.get("delta"))
    return bool(choice.get("finish_reason")) or any(said[key] for key in said if key != "role")


def _messages(payload: Json) -> list[Message]:
    return [_message(message) for message in mappings(payload.get("messages"))]


def _message(message: Json) -> Message:
    role = string(message.get("role")) or "user"
    neutral: Message = {"role": _ROLES.get(role) or role, "content": content_text(message.get("content"))}
    for key in _MORE:
        if value := message.get(key):
            neutral[key] = value
    return neutral


CODEC = ChatCodec()
