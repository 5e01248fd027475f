"""Texts that arrive piece by piece. Adding each piece to the text before it would copy that text each time,
which a long answer makes many seconds of; so the pieces are kept, and joined once."""

from typing import Any


class Pieces(list[str]):
    """A text that still grows, in the place where it will stand."""


class Texts:
    """The texts of one answer. Where they grow is remembered: nothing else has to be looked through."""

    def __init__(self) -> None:
        self._places: list[tuple[dict[Any, Any], Any]] = []

    def grow(self, target: dict[Any, Any], key: Any, text: str) -> None:
        """Add to the text under `key`; what is there and is none is replaced."""
        before = target.get(key)
        if isinstance(before, Pieces):
            before.append(text)
        else:
            target[key] = Pieces([before, text] if isinstance(before, str) else [text])
            self._places.append((target, key))

    def join(self) -> None:
        """Nothing more comes: each text is one from now on."""
        for target, key in self._places:
            if isinstance(pieces := target.get(key), Pieces):
                target[key] = "".join(pieces)
