"""Texts that arrive piece by piece. Adding each piece to the text before it would copy that text each time,
which a long answer makes many seconds of; so the pieces are kept, and joined once."""

from typing import Any


class Pieces(list[str]):
    """A text that still grows, in the place where it will stand."""


def grow(target: dict[Any, Any], key: Any, text: str) -> None:
    """Add to the text under `key`; what is there and is none is replaced."""
    before = target.get(key)
    if isinstance(before, Pieces):
        before.append(text)
    else:
        target[key] = Pieces([before, text] if isinstance(before, str) else [text])


def joined(value: Any) -> Any:
    """The value with each text that grew in it as one."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: joined(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [joined(inner) for inner in value]
    return value
