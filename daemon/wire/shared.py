"""What dialects have in common: editing a list of messages, filling in a model, OpenAI's errors."""

from collections.abc import Iterator, Sequence

from orjson import dumps

from daemon.wire.errors import sentence
from daemon.wire.spans import Edit, Layout, Span, add_elements, add_member
from reef.errors import ReefError
from reef.runtime import Billed

SYSTEM_ROLES = frozenset({"system", "developer"})
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def error_body(error: ReefError, status: int) -> bytes:
    """`{"error": {...}}` with the hint, where there is one, in the message and beside it."""
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    told = {"message": sentence(error), "type": kind, "param": None, "code": error.type}
    return dumps({"error": told | ({"hint": error.hint} if error.hint else {})})


def billed(input_tokens: int | None, output_tokens: int | None, cached: int | None) -> Billed | None:
    """The tokens as OpenAI counts them: what came from the cache is part of the input."""
    if input_tokens is None or output_tokens is None:
        return None
    kept = min(cached or 0, input_tokens)
    return Billed(input_tokens - kept, output_tokens, kept)


def leading_system(layout: Layout, array: Span) -> Iterator[tuple[Span, dict[str, Span]]]:
    """The system and developer messages that a list begins with, each with its members."""
    for element in layout.elements(array):
        if layout.kind(element) != "{":
            return
        members = layout.members(element)
        if layout.string(members.get("role")) not in SYSTEM_ROLES:
            return
        yield element, members


def turn_elements(turns: Sequence[tuple[str, str]]) -> list[bytes]:
    """Example turns as messages; the three dialects write them alike."""
    return [
        dumps({"role": role, "content": text})
        for turn in turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]


def add_turns(layout: Layout, array: Span, turns: Sequence[tuple[str, str]]) -> list[Edit]:
    """Put example turns in front of a list of messages, after the system messages it begins with."""
    if not turns:
        return []
    ends = [element.end for element, _ in leading_system(layout, array)]
    if not ends:
        return [add_elements(layout, array, turn_elements(turns))]
    return [Edit(ends[-1], ends[-1], b"".join(b"," + element for element in turn_elements(turns)))]


def set_model(body: bytes, model: str) -> list[Edit]:
    """Name another model than the body does."""
    layout = Layout(body)
    span = layout.members(layout.root()).get("model")
    return [Edit(span.start, span.end, dumps(model))] if span is not None else []


def fill_model(body: bytes, model: str) -> list[Edit]:
    """Name a model where the body names none, or an empty one."""
    layout = Layout(body)
    root = layout.root()
    span = layout.members(root).get("model")
    if span is None:
        return [add_member(layout, root, "model", dumps(model))]
    if layout.kind(span) == "n" or (layout.kind(span) == '"' and layout.is_empty(span)):
        return [Edit(span.start, span.end, dumps(model))]
    return []
