"""Reading JSON that others wrote: nothing in it has to be what its format promises."""

import json
from typing import Any

import orjson

from reef.errors import Invalid
from reef.feedback import text_of

Json = dict[str, Any]


def load(body: bytes) -> Any:
    """Parse JSON. What only the more lenient parser takes (lone surrogates, NaN) is taken too.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def dump(value: Any) -> bytes:
    """JSON of what `load` took, however lenient it was."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def load_request(body: bytes) -> Json:
    """Parse a request body. Raises Invalid when it is no JSON object."""
    try:
        payload = load(body)
    except ValueError as error:
        raise Invalid(f"the request body is not JSON: {error}", hint="send one JSON object") from error
    if not isinstance(payload, dict):
        raise Invalid("the request body is JSON, but not an object", hint="send one JSON object")
    return payload


def load_object(body: bytes) -> Json | None:
    """Parse an answer; None where it is no JSON object."""
    try:
        payload = load(body)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


def mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Json]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: Any) -> str | None:
    """A string that says something, else None. Half a surrogate pair in it, which no database takes and which
    some clients make of an emoji, becomes a question mark."""
    if not isinstance(value, str) or not value:
        return None
    return value if value.isascii() else value.encode(errors="replace").decode()


def integer(value: Any) -> int | None:
    """A count; None for what is none, or no database could hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**63 else None


def content_text(content: Any) -> str:
    """`text_of` for content that may hold anything."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return text_of([part for part in content if isinstance(part, str | dict)])
    return text_of(content)


def strings(*values: Any) -> tuple[str, ...]:
    """The distinct strings among `values`, in order."""
    return tuple(dict.fromkeys(text for value in values if (text := string(value)) is not None))
