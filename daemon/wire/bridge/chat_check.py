"""Chat completions: what of a request goes over no bridge."""

from daemon.wire.bridge.chat import url_of
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
from daemon.wire.values import Json, mapping, mappings
from reef.errors import Invalid

_NUMBERS = (
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "presence_penalty",
    "frequency_penalty",
)


def check(payload: Json) -> None:
    """Raises Invalid for what no provider takes, and for what was before tools: its calls would be taken for
    something else."""
    check_lists(payload, "messages", "tools")
    check_texts(payload, "model", "reasoning_effort")
    check_objects(payload, "stream_options", "response_format")
    check_numbers(payload, *_NUMBERS)
    check_truths(payload, "stream", "parallel_tool_calls")
    check_truths(mapping(payload.get("stream_options")), "include_usage", at="stream_options.")
    check_choice(payload, str, dict)
    check_words(payload, "stop")
    said = mappings(payload.get("messages"))
    old = any(message.get("function_call") or message.get("role") == "function" for message in said)
    if old or payload.get("functions"):
        raise Invalid(
            f"`{'function_call' if old else 'functions'}` does not go over a bridge",
            hint="send `tools` and `tool_calls`, which took its place",
        )
    for at, message in enumerate(said):
        _check_message(message, f"messages[{at}].")


def _check_message(message: Json, at: str) -> None:
    check_content(message, "content", at, _check_part, bare=True)
    check_texts(message, "role", "refusal", "tool_call_id", at=at)
    check_lists(message, "tool_calls", at=at)
    for count, call in enumerate(mappings(message.get("tool_calls"))):
        place = f"{at}tool_calls[{count}]."
        check_texts(call, "id", at=place)
        check_objects(call, "function", "custom", at=place)
        check_texts(mapping(call.get("function")), "name", at=f"{place}function.")
        check_texts(mapping(call.get("custom")), "name", "input", at=f"{place}custom.")


def _check_part(part: Json, at: str) -> None:
    if part.get("type") in ("text", "refusal"):
        check_spoken(part, at)
    elif part.get("type") == "image_url" and url_of(part) is None:
        raise wrong(f"{at}image_url", "holds no image")
