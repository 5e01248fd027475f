"""Anthropic's messages: what of a request goes over no bridge."""

from daemon.wire.bridge.checking import (
    check_choice,
    check_content,
    check_lists,
    check_numbers,
    check_objects,
    check_spoken,
    check_texts,
    check_truths,
    check_words,
    wrong,
)
from daemon.wire.bridge.messages import url_of
from daemon.wire.values import Json, mapping, mappings

_SOURCES = ("base64", "url")
"""Where an image may come from that goes over a bridge."""


def check(payload: Json) -> None:
    """Raises Invalid for what no provider takes."""
    check_lists(payload, "messages", "tools")
    check_texts(payload, "model")
    check_objects(payload, "output_config")
    check_objects(mapping(payload.get("output_config")), "format", at="output_config.")
    check_numbers(payload, "max_tokens", "temperature", "top_p", "top_k")
    check_truths(payload, "stream")
    check_choice(payload, dict)
    check_truths(mapping(payload.get("tool_choice")), "disable_parallel_tool_use", at="tool_choice.")
    check_words(payload, "stop_sequences")
    check_content(payload, "system", "", _check_part)
    for at, message in enumerate(mappings(payload.get("messages"))):
        check_texts(message, "role", at=f"messages[{at}].")
        check_content(message, "content", f"messages[{at}].", _check_part)


def _check_part(part: Json, at: str) -> None:
    match part.get("type"):
        case "text":
            check_spoken(part, at)
        case "image":
            source = part.get("source")
            if not isinstance(source, dict) or (source.get("type") in _SOURCES and url_of(source) is None):
                raise wrong(f"{at}source", "holds no image")
        case "thinking":
            check_texts(part, "thinking", "signature", at=at)
        case "tool_use":
            check_texts(part, "id", "name", at=at)
        case "tool_result":
            check_texts(part, "tool_use_id", at=at)
            check_truths(part, "is_error", at=at)
            check_content(part, "content", at, _check_part)
