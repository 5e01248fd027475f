"""Puts the events of a messages stream together again."""

from collections.abc import Iterable
from typing import Any

from daemon.wire.growing import Texts
from daemon.wire.values import Json, load, mapping

# What a delta adds to, by its type: (key of the delta, key of the block).
_GROWS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


def assemble(events: Iterable[Json]) -> Json | None:
    """The buffered form of what a stream's events say, as far as it came; None where there are none."""
    answer: Json = {}
    blocks: dict[Any, Json] = {}
    inputs: dict[Any, Any] = {}
    texts = Texts()
    for item in events:
        index = item.get("index")
        index = index if isinstance(index, int) else 0
        match item.get("type"):
            case "message_start":
                answer |= mapping(item.get("message"))
            case "content_block_start":
                blocks[index] = dict(mapping(item.get("content_block")))
            case "content_block_delta":
                _grow(texts, blocks.setdefault(index, {}), inputs, index, mapping(item.get("delta")))
            case "message_delta":
                answer |= mapping(item.get("delta"))
                if mapping(item.get("usage")):
                    answer["usage"] = mapping(answer.get("usage")) | item["usage"]
            case "error":
                answer["error"] = item.get("error")
            case _:
                pass
    if not answer and not blocks:
        return None
    texts.join()
    for index, text in inputs.items():
        blocks[index]["input"] = _input(text)
    if blocks:
        answer["content"] = [block for _, block in sorted(blocks.items())]
    return answer


def _grow(texts: Texts, block: Json, inputs: dict[Any, Any], index: int, delta: Json) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        texts.grow(inputs, index, str(delta.get("partial_json") or ""))
    elif kind == "citations_delta":
        before = block.get("citations")
        citations = before if isinstance(before, list) else []
        citations.append(delta.get("citation"))
        block["citations"] = citations
    elif isinstance(kind, str) and kind in _GROWS:
        source, target = _GROWS[kind]
        texts.grow(block, target, str(delta.get(source) or ""))


def _input(text: str) -> Any:
    """A tool's input; what was cut off in the middle stays text."""
    try:
        return load(text.encode(errors="replace")) if text else {}
    except ValueError:
        return text
