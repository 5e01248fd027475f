"""Where values stand in a JSON body, so that it can be edited without being written anew.

Offsets are bytes: a body is read as Latin-1, in which each byte is one character; the bytes of UTF-8 beyond
ASCII occur inside strings only and never look like JSON's own punctuation.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any

from orjson import dumps

from reef.errors import Invalid

_decode = JSONDecoder().raw_decode
_SPACE = " \t\n\r"
_SPACES = frozenset(_SPACE)


@dataclass(frozen=True, slots=True)
class Span:
    """A value at `[start, end)`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `new` in place of `[start, end)`; with start == end it only inserts."""

    start: int
    end: int
    new: bytes


class Layout:
    """The places of a body's values. The body has been read as JSON before: malformed ones are not found out
    here in every case."""

    __slots__ = ("text",)

    def __init__(self, body: bytes) -> None:
        self.text = body.decode("latin-1")

    def kind(self, span: Span) -> str:
        """The character a value begins with: it tells `{`, `[`, `"` and `n`(ull) apart."""
        return self.text[span.start]

    def string(self, span: Span | None) -> str | None:
        """The value where it is a string of ASCII, else None or not what it says (used for roles)."""
        if span is None or self.kind(span) != '"':
            return None
        value: str = _decode(self.text, span.start)[0]
        return value

    def is_empty(self, span: Span) -> bool:
        """Whether an object, an array or a string holds nothing."""
        at = span.start + 1 if self.kind(span) == '"' else self._skip(span.start + 1)
        return at == span.end - 1

    def root(self) -> Span:
        """The body's only value, white space around it left out."""
        return Span(self._skip(0), len(self.text.rstrip(_SPACE)))

    def members(self, span: Span) -> dict[str, Span]:
        """The values of an object by key; of equal keys the last counts. Only ASCII keys are right."""
        found: dict[str, Span] = {}
        at = self._skip(span.start + 1)
        while self.text[at] != "}":
            key, at = self._decode(at)
            start = self._skip(self._skip(at) + 1)
            end = self._decode(start)[1]
            found[key] = Span(start, end)
            at = self._next(end)
        return found

    def elements(self, span: Span) -> Iterator[Span]:
        """The elements of an array; those that nobody asks for are not looked at."""
        at = self._skip(span.start + 1)
        while self.text[at] != "]":
            end = self._decode(at)[1]
            yield Span(at, end)
            at = self._next(end)

    def cuts(self, keys: Collection[str], *, inside: bool = False) -> Iterator[tuple[str | None, int]]:
        """Where to cut the body so that each element of the root's arrays under `keys` stands by itself, any
        separator in front of it: (key, where its elements begin) for each of the arrays, each followed by
        (None, where it ends) for its elements. None where the root is no object.

        `inside`: what is read here is the rest of a body, behind one of these places.

        Raises:
            Invalid, IndexError: it is not JSON after all.
        """
        text = self.text
        if inside:
            at = self._next(0)
        else:
            at = self._skip(0)
            if text[at] != "{":
                return
            at = self._skip(at + 1)
        while inside or text[at] != "}":
            if not inside:
                if text[at] != '"':
                    raise Invalid("the body is not JSON: a key is no string")
                key, at = self._decode(at)
                at = self._skip(self._skip(at) + 1)
                if key not in keys or text[at] != "[":
                    at = self._next(self._decode(at)[1])
                    continue
                at = self._skip(at + 1)
                yield key, at
            while text[at] != "]":
                at = self._decode(at)[1]
                yield None, at
                at = self._next(at)
            at = self._next(at + 1)
            inside = False

    def _skip(self, at: int) -> int:
        text = self.text
        while text[at : at + 1] in _SPACES:
            at += 1
        return at

    def _next(self, at: int) -> int:
        """Step over the comma after a value, if there is one."""
        if self.text[at] != ",":
            at = self._skip(at)
            if self.text[at] != ",":
                return at
        return self._skip(at + 1)

    def _decode(self, at: int) -> tuple[Any, int]:
        try:
            return _decode(self.text, at)
        except (JSONDecodeError, RecursionError) as error:
            raise Invalid(f"the body is not JSON that can be edited: {error}") from error


def add_member(layout: Layout, target: Span, key: str, value: bytes) -> Edit:
    """Put a member in front of an object's own."""
    comma = b"" if layout.is_empty(target) else b","
    at = target.start + 1
    return Edit(at, at, b'"' + key.encode() + b'":' + value + comma)


def add_elements(layout: Layout, target: Span, elements: Sequence[bytes]) -> Edit:
    """Put elements in front of an array's own."""
    comma = b"" if layout.is_empty(target) else b","
    at = target.start + 1
    return Edit(at, at, b",".join(elements) + comma)


def add_text(layout: Layout, target: Span, text: str, separator: str = "\n\n") -> Edit:
    """Put text in front of a string's own."""
    at = target.start + 1
    return Edit(at, at, dumps(text if layout.is_empty(target) else text + separator)[1:-1])


def apply(body: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply edits that do not overlap; those at one place stay in the order given."""
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += (body[at : edit.start], edit.new)
        at = edit.end
    parts.append(body[at:])
    return b"".join(parts)
