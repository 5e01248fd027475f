"""OpenAI's responses: what of a request goes over no bridge."""

from daemon.wire.bridge.checking import (
    check_choice,
    check_content,
    check_lists,
    check_numbers,
    check_objects,
    check_spoken,
    check_texts,
    check_truths,
    wrong,
)
from daemon.wire.bridge.responses import TEXTS
from daemon.wire.values import Json, mapping, mappings, string
from reef.errors import Invalid


def check(payload: Json) -> None:
    """Raises Invalid for what no provider takes, and what leads to what only OpenAI's own server keeps."""
    for key in ("previous_response_id", "conversation", "prompt"):
        if payload.get(key) is not None:
            raise Invalid(
                f"`{key}` leads to what the upstream does not keep",
                hint="send the whole conversation in `input`",
            )
    check_lists(payload, "tools", *(() if isinstance(payload.get("input"), str) else ("input",)))
    check_texts(payload, "model", "instructions")
    check_objects(payload, "reasoning", "text")
    check_texts(mapping(payload.get("reasoning")), "effort", at="reasoning.")
    check_objects(mapping(payload.get("text")), "format", at="text.")
    check_numbers(payload, "max_output_tokens", "temperature", "top_p")
    check_truths(payload, "stream", "parallel_tool_calls")
    check_choice(payload, str, dict)
    for at, item in enumerate(mappings(payload.get("input"))):
        _check_item(item, f"input[{at}].")
    for at, offered in enumerate(mappings(payload.get("tools"))):
        if offered.get("type") == "namespace":
            check_lists(offered, "tools", at=f"tools[{at}].")


def _check_item(item: Json, at: str) -> None:
    check_texts(item, "type", at=at)
    match item.get("type") or "message":
        case "message":
            check_texts(item, "role", at=at)
            check_content(item, "content", at, _check_part)
        case "function_call":
            check_texts(item, "call_id", "name", "namespace", at=at)
        case "custom_tool_call":
            check_texts(item, "call_id", "name", "namespace", "input", at=at)
        case "function_call_output" | "custom_tool_call_output":
            check_texts(item, "call_id", at=at)
            check_content(item, "output", at, _check_part)


def _check_part(part: Json, at: str) -> None:
    if part.get("type") in TEXTS:
        check_spoken(part, at)
    elif part.get("type") == "input_image" and not (
        string(part.get("image_url")) or string(part.get("file_id"))
    ):
        raise wrong(f"{at}image_url", "holds no image")
