"""OpenAI's responses: `POST /v1/responses`."""

from collections.abc import Mapping, Sequence
from typing import Any

from orjson import dumps

from daemon.wire import shared, sse
from daemon.wire.facts import RequestFacts
from daemon.wire.parsing import forgiving, response_in
from daemon.wire.prefix import Prefix
from daemon.wire.responses_stream import assemble
from daemon.wire.spans import Edit, Layout, Span, add_member, add_text, apply
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
from reef.runtime import Parsed

_BEFORE = frozenset({"response.created", "response.queued", "response.in_progress"})
"""Events in which nothing is said yet."""
_MARKS = {
    b"response.completed": Mark.TERMINAL,
    b"response.incomplete": Mark.TERMINAL,
    b"response.failed": Mark.ERROR,
    b"error": Mark.ERROR,
}


class ResponsesCodec:
    """See `daemon.wire.codec.Codec`."""

    path = "/responses"

    def facts(self, body: bytes) -> RequestFacts:
        return RequestFacts(load_request(body), ("max_output_tokens",), _messages)

    def inject(self, body: bytes, prefix: Prefix) -> bytes:
        if not prefix:
            return body
        layout = Layout(body)
        root = layout.root()
        members = layout.members(root)
        edits: list[Edit] = []
        if prefix.system:
            edits.append(_add_instructions(layout, root, members.get("instructions"), prefix.system))
        # Where the provider holds what was said before, the examples stand in front of that already.
        continues = any(
            key in members and layout.kind(members[key]) != "n"
            for key in ("previous_response_id", "conversation")
        )
        own = members.get("input")
        if prefix.turns and own is not None and not continues:
            edits += _add_turns(layout, own, prefix.turns)
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
        output = mappings(response.get("output"))
        usage = mapping(response.get("usage"))
        counts = (
            integer(usage.get("input_tokens")),
            integer(usage.get("output_tokens")),
            integer(mapping(usage.get("input_tokens_details")).get("cached_tokens")),
        )
        said = [content_text(item.get("content")) for item in output if item.get("type") == "message"]
        return Parsed(
            response,
            text="\n".join(text for text in said if text),
            model=string(response.get("model")),
            finish=string(response.get("status")),
            input_tokens=counts[0],
            output_tokens=counts[1],
            cached_tokens=counts[2],
            billed=shared.billed(*counts),
            aliases=strings(response.get("id"), *(item.get("call_id") for item in output)),
            unread=unread,
        )

    def answers(self, response: Mapping[str, Any]) -> bool:
        kind = string(response.get("type")) or ""
        if kind in _BEFORE or (kind.startswith("response.") and kind != "response.completed"):
            return kind not in _BEFORE
        whole = mapping(response.get("response")) or response
        # One that is complete says something; one that waits, failed or was cut short may not.
        output = whole.get("output")
        return isinstance(output, list) and bool(output or whole.get("status") not in (None, "completed"))

    def turn(self, response: Mapping[str, Any]) -> Message | None:
        items = _items(mappings(response.get("output")))
        return items[0] if items else None

    def mark(self, event: bytes) -> Mark:
        name = sse.name(event)
        if not name and (b'"response.' in event or b'"error"' in event):
            said = load_object(sse.data(event)) or {}
            name = (string(said.get("type")) or "").encode()
            if not name and said.get("error"):  # as servers say it that speak chat as well
                return Mark.ERROR
        return _MARKS.get(name, Mark.NONE)

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes:
        return sse.splice(terminal, b'"reef":{"agent_record_id":"' + receipt.encode() + b'"}')

    def error_body(self, error: ReefError, status: int) -> bytes:
        return shared.error_body(error, status)

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes:
        began = mapping((load_object(sse.data(first)) or {}).get("response"))
        response = {"id": "", "object": "response", "created_at": 0, "model": "", "output": []} | began
        response |= {"status": "failed", "error": {"code": "server_error", "message": message}}
        event = {"type": "response.failed", "sequence_number": sequence, "response": response}
        return sse.encode(dump(event), "response.failed")

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
        system = [content_text(message.get("content")) for message in messages if message["role"] == "system"]
        if system:
            body["instructions"] = "\n\n".join(system)
        body["input"] = [message for message in messages if message["role"] != "system"]
        body |= {"max_output_tokens": max_tokens, "temperature": temperature, "store": False}
        if schema is not None:
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": dict(schema)}}
        return dumps(body)


def _add_instructions(layout: Layout, root: Span, own: Span | None, text: str) -> Edit:
    if own is None:
        return add_member(layout, root, "instructions", dumps(text))
    if layout.kind(own) == '"':
        return add_text(layout, own, text)
    return Edit(own.start, own.end, dumps(text))


def _add_turns(layout: Layout, own: Span, turns: Sequence[tuple[str, str]]) -> list[Edit]:
    """Example turns in front of the input; an input of plain text becomes a list around its own bytes."""
    if layout.kind(own) == "[":
        return shared.add_turns(layout, own, turns)
    if layout.kind(own) != '"':
        return []
    before = b"[" + b",".join(shared.turn_elements(turns)) + b',{"role":"user","content":'
    return [Edit(own.start, own.start, before), Edit(own.end, own.end, b"}]")]


def _messages(payload: Json) -> list[Message]:
    instructions = content_text(payload.get("instructions"))
    neutral: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    own = payload.get("input")
    if isinstance(own, str):
        return [*neutral, {"role": "user", "content": clean(own)}]
    return neutral + _items(mappings(own))


def _items(items: Sequence[Json]) -> list[Message]:
    """Items in chat form; what one answer consists of (messages, calls) is one assistant message."""
    neutral: list[Message] = []
    for item in items:
        kind = str(item.get("type") or "message")
        if kind == "message":
            role = string(item.get("role")) or "user"
            text = content_text(item.get("content"))
            if role == "assistant":
                before = _answer(neutral)
                before["content"] = "\n".join(part for part in (before["content"], text) if part)
            else:
                neutral.append({"role": "system" if role == "developer" else role, "content": text})
        elif kind.endswith("_output"):
            result = item.get("output")
            neutral.append(
                {"role": "tool", "tool_call_id": item.get("call_id"), "content": content_text(result)}
            )
        elif kind.endswith("_call"):
            arguments = item.get("arguments", item.get("input", ""))
            call = {
                "id": item.get("call_id") or item.get("id"),
                "type": "function",
                "function": {"name": item.get("name") or kind, "arguments": arguments},
            }
            _answer(neutral).setdefault("tool_calls", []).append(call)
    return neutral


def _answer(neutral: list[Message]) -> Message:
    """The assistant message that the list ends with; begun, where it does not."""
    if not neutral or neutral[-1]["role"] != "assistant":
        neutral.append({"role": "assistant", "content": ""})
    return neutral[-1]


CODEC = ResponsesCodec()
