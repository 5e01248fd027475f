"""Puts the chunks of a chat completions stream together again."""

from collections.abc import Iterable
from typing import Any

from daemon.wire.growing import Pieces, Texts
from daemon.wire.values import Json, mapping, mappings

_NAMES = frozenset({"role", "name", "id", "type"})


def assemble(events: Iterable[Json]) -> Json | None:
    """The buffered form of what a stream's events say, as far as it came; None where there are none."""
    answer: Json = {}
    choices: dict[Any, Json] = {}
    texts = Texts()
    for chunk in events:
        for key, value in chunk.items():
            if key not in {"choices", "object", "reef"} and (value is not None or key not in answer):
                answer[key] = value
        for part in mappings(chunk.get("choices")):
            index = part.get("index")
            choice = choices.setdefault(index if isinstance(index, int) else 0, {"message": {}})
            _merge_choice(texts, choice, part)
    if not answer and not choices:
        return None
    texts.join()
    if choices:
        answer["object"] = "chat.completion"
        answer["choices"] = [
            {"index": index, "finish_reason": None, **choice} for index, choice in sorted(choices.items())
        ]
    return answer


def _merge_choice(texts: Texts, choice: Json, part: Json) -> None:
    for key, value in part.items():
        if key in {"index", "delta", "message"} or value is None:
            continue
        if key == "logprobs" and isinstance(value, dict):
            _merge(texts, _object(choice, "logprobs"), value)
        else:
            choice[key] = value
    message = choice["message"]
    delta = mapping(part.get("delta"))
    for call in mappings(delta.get("tool_calls")):
        _merge_call(texts, message.setdefault("tool_calls", []), call)
    _merge(texts, message, {key: value for key, value in delta.items() if key != "tool_calls"})


def _merge_call(texts: Texts, calls: list[Json], part: Json) -> None:
    """Calls are told apart by index; some servers send none, and each of their calls whole with its id."""
    index = part.get("index")
    if not isinstance(index, int):
        index = len(calls) if part.get("id") or not calls else calls[-1]["index"]
    call = next((call for call in calls if call["index"] == index), None)
    if call is None:
        calls.append(call := {"index": index})
    function = mapping(part.get("function"))
    call.update({key: value for key, value in part.items() if key not in {"index", "function"} and value})
    if function:
        _merge(texts, _object(call, "function"), function)


def _object(parent: Json, key: str) -> Json:
    """What is there; begun anew where it is none."""
    if not isinstance(found := parent.get(key), dict):
        found = parent[key] = {}
    return found


def _merge(texts: Texts, target: Json, part: Json) -> None:
    """Strings grow, except those that name something; lists grow; all else is replaced."""
    for key, value in part.items():
        before = target.get(key)
        if value is None:
            target.setdefault(key, None)
        elif isinstance(value, str) and isinstance(before, str | Pieces) and key not in _NAMES:
            texts.grow(target, key, value)
        elif isinstance(value, list) and isinstance(before, list) and not isinstance(before, Pieces):
            before.extend(value)
        else:
            target[key] = value
