"""Reads the answer off a responses stream: its last event holds all of it; a cut one is put together."""

from collections.abc import Iterable
from typing import Any

from daemon.wire.growing import Texts
from daemon.wire.values import Json, mapping, string

_LAST = {"response.completed", "response.incomplete", "response.failed"}


def assemble(events: Iterable[Json]) -> Json | None:
    """The buffered form of what a stream's events say, as far as it came; None where there are none."""
    answer: Json = {}
    items: dict[Any, Json] = {}
    said: dict[Any, Any] = {}
    texts = Texts()
    for item in events:
        kind = string(item.get("type"))
        index = item.get("output_index")
        index = index if isinstance(index, int) else 0
        response = mapping(item.get("response"))
        if kind in _LAST and response:
            return response
        if response:
            answer = response
        elif kind in {"response.output_item.added", "response.output_item.done"}:
            items[index] = mapping(item.get("item"))
            if kind == "response.output_item.done":
                said.pop(index, None)
        elif kind == "response.output_text.delta":
            texts.grow(said, index, str(item.get("delta") or ""))
        elif kind == "error":
            answer["error"] = {key: value for key, value in item.items() if key != "type"}
    texts.join()
    for index, text in said.items():
        part = {"type": "output_text", "text": text, "annotations": []}
        items[index] = {"type": "message", "role": "assistant"} | items.get(index, {}) | {"content": [part]}
    if items:
        answer["output"] = [item for _, item in sorted(items.items())]
    return answer or None
