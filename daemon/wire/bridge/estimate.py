"""How many tokens a request may have, where no upstream counts them. A guess, and marked as one."""

from math import ceil

from daemon.wire.bridge.messages import to_neutral_request
from daemon.wire.bridge.neutral import Image, Part, Text, Thinking, ToolCall, ToolResult
from daemon.wire.values import Json, dump

_BYTES = 3.5
"""Bytes of UTF-8 a token, on the low side of what tokenizers make of prose and code: a client that keeps to a
window is better told too much than too little."""
_MESSAGE, _TOOL, _IMAGE = 4, 8, 1600


def estimate(payload: Json) -> int:
    """The tokens of a request of Anthropic's messages."""
    request = to_neutral_request(payload)
    tokens = _tokens(request.system) + _MESSAGE
    for message in request.messages:
        tokens += _MESSAGE + sum(_part(part) for part in message.parts)
    for tool in request.tools:
        tokens += _TOOL + _tokens(tool.name + tool.description) + _tokens(dump(tool.schema).decode())
    return tokens


def counted(payload: Json) -> bytes:
    """The answer to `count_tokens`: its own key, and the mark that it is an estimate."""
    return dump({"input_tokens": estimate(payload), "reef": {"estimate": True}})


def _part(part: Part) -> int:
    match part:
        case Text() | Thinking():
            return _tokens(part.text)
        case Image():
            return _IMAGE
        case ToolCall():
            return _TOOL + _tokens(part.name + part.arguments)
        case ToolResult():
            return _TOOL + sum(_part(inner) for inner in part.parts)


def _tokens(text: str) -> int:
    return ceil(len(text.encode(errors="replace")) / _BYTES)
