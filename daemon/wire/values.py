"""Reading JSON that others wrote: nothing in it has to be what its format promises."""

import json
import re
from typing import Any

import orjson

from reef.errors import Invalid
from reef.feedback import text_of

Json = dict[str, Any]
_LONG = re.compile(rb"[0-9]{19}")
"""A whole number that may not fit into 64 bits."""
_SMALLEST, _TOO_LARGE = -(2**63), 2**64
"""Whole numbers that fit into 64 bits, with a sign or without."""


def load(body: bytes) -> Any:
    """Parse JSON. What only the more lenient parser takes (lone surrogates, NaN) is taken too.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _lenient(body.decode("utf-8-sig", "surrogatepass"))


def _lenient(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dump(value: Any) -> bytes:
    """JSON of what `load` took, however lenient it was. Raises Invalid when it is nested too deeply."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        try:
            return json.dumps(value).encode()
        except RecursionError as error:
            raise _too_deep() from error


def load_exact(body: bytes) -> Any:
    """As `load`, for what is written again: numbers of any length keep all their digits."""
    return _lenient(body.decode("utf-8-sig", "surrogatepass")) if _LONG.search(body) else load(body)


def load_request(body: bytes, *, exact: bool = False) -> Json:
    """Parse a request body; `exact` is for one that is written again (see `load_exact`).

    Raises:
        Invalid: it is no JSON object.
    """
    try:
        payload = load_exact(body) if exact else load(body)
    except ValueError as error:
        raise Invalid(f"the request body is not JSON: {error}", hint="send one JSON object") from error
    if not isinstance(payload, dict):
        raise Invalid("the request body is JSON, but not an object", hint="send one JSON object")
    return payload


def load_object(body: bytes, *, exact: bool = False) -> Json | None:
    """Parse an answer; None where it is no JSON object. A byte in it that is no text is a question mark.
    `exact` is for what is written again (see `load_exact`)."""
    try:
        payload = load_exact(body) if exact else load(body)
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):
            return None
        try:
            payload = _lenient(body.decode("utf-8-sig", "replace"))
        except ValueError:
            return None
    return payload if isinstance(payload, dict) else None


def mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Json]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def clean(text: str) -> str:
    """Half a surrogate pair, which no file and no database takes and which some clients make of an emoji,
    becomes a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def plain(value: Any) -> Any:
    """What any writer of JSON takes: text is `clean`, and a number that is too long for some is text.

    Raises:
        Invalid: it is nested too deeply.
    """
    try:
        orjson.dumps(value)
        return value
    except orjson.JSONEncodeError:
        try:
            said = json.dumps(value, ensure_ascii=False).encode(errors="replace")
            value = json.loads(said, parse_int=_short)
            orjson.dumps(value)
        except (RecursionError, orjson.JSONEncodeError) as error:
            raise _too_deep() from error
        return value


def _too_deep() -> Invalid:
    return Invalid("the JSON is nested too deeply", hint="send a flatter value")


def _short(digits: str) -> int | str:
    number = int(digits)
    return number if _SMALLEST <= number < _TOO_LARGE else digits


def string(value: Any) -> str | None:
    """A string that says something, `clean`, else None."""
    return clean(value) if isinstance(value, str) and value else None


def integer(value: Any) -> int | None:
    """A count; None for what is none, or no database could hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**63 else None


def content_text(content: Any) -> str:
    """`text_of` for content that may hold anything; `clean`."""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        content = [part for part in content if isinstance(part, str | dict)]
    return clean(text_of(content))


def strings(*values: Any) -> tuple[str, ...]:
    """The distinct strings among `values`, in order."""
    return tuple(dict.fromkeys(text for value in values if (text := string(value)) is not None))
