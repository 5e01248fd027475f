"""Where a body is cut, and how little of it has to be read when one like it was cut before.

A client sends its whole conversation with each turn, so a request is cut after each element of its lists (the
messages, the tools): the next turn then begins, and often ends, with the very pieces of the one before.
What two bodies share is found by comparing bytes; only what lies between is read as JSON.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from daemon.wire.spans import Layout
from reef.errors import Invalid

CUT_FROM_BYTES = 4096
"""A shorter body is one piece."""
MOST_PIECES = 10_000
_CLOSING = b'}]"'
_LISTS = frozenset({"messages", "input", "tools", "system"})


class Elements(NamedTuple):
    """A list of the body's root: its key, where its elements begin, and where each of them ends."""

    key: str
    start: int
    ends: list[int]


class Cut(NamedTuple):
    """A body and the offsets at which its pieces end; joined they are its very bytes."""

    body: bytes
    lists: Sequence[Elements]
    ends: Sequence[int]

    def pieces(self, first: int, last: int) -> list[bytes]:
        """Those from number `first` up to, and without, `last`."""
        ends = self.ends
        return [self.body[ends[at - 1] if at else 0 : ends[at]] for at in range(first, last)]

    def places(self, key: str) -> tuple[int, int] | None:
        """The pieces (from, up to) that the list under `key` consists of; of equal keys the last counts."""
        for found in reversed(self.lists):
            if found.key == key:
                last = found.ends[-1] if found.ends else found.start
                return bisect_right(self.ends, found.start), bisect_right(self.ends, last)
        return None


class Shared(NamedTuple):
    """How many pieces a body begins with, and how many it ends with, that are another's."""

    head: int
    tail: int


NOTHING = Shared(0, 0)


def cut(body: bytes, like: Cut | None = None) -> tuple[Cut, Shared]:
    """Cut a request, and say what it shares with `like`, which never changes where it is cut.

    What is no JSON object is one piece.
    """
    if len(body) < CUT_FROM_BYTES:
        return Cut(body, (), (len(body),) if body else ()), NOTHING
    try:
        lists, shared = _lists(body, like)
    except (Invalid, IndexError):
        lists, shared = [], NOTHING
    ends = [place for found in lists for place in (found.start, *found.ends)]
    if not lists or len(ends) > MOST_PIECES:
        return Cut(body, (), (len(body),)), NOTHING
    ends.append(len(body))
    return Cut(body, lists, ends), shared


def common_head(body: bytes, like: Cut) -> int:
    """With how many pieces of `like` a body begins, and is cut after them as well. What follows the last of
    them may differ, unless it tells where that ends: as it does for a number, which has no end of its own.
    """
    ends, other = like.ends, memoryview(like.body)
    least, most = 0, len(ends) - 1
    while least < most:
        middle = (least + most + 1) // 2
        start = ends[least - 1] if least else 0
        stop = ends[middle - 1]
        if body.startswith(other[start : stop if other[stop - 1] in _CLOSING else stop + 1], start):
            least = middle
        else:
            most = middle - 1
    return least


def _common_tail(body: bytes, like: Cut) -> int:
    """From which place of `like` on a body ends with the same bytes."""
    ends, other = like.ends, memoryview(like.body)
    least, most = 0, len(ends) - 1
    while least < most:
        middle = (least + most) // 2
        stop = ends[most]
        behind = len(other) - stop
        if body.endswith(other[ends[middle] : stop], 0, max(len(body) - behind, 0)):
            most = middle
        else:
            least = middle + 1
    return ends[most]


def _lists(body: bytes, like: Cut | None) -> tuple[list[Elements], Shared]:
    """The lists of a body, as far as they can be from `like`."""
    found: list[Elements] = []
    if like is None or not like.lists:
        for key, at in Layout(body).cuts(_LISTS):
            _note(found, key, at)
        return found, NOTHING
    head = common_head(body, like)
    after = like.ends[head - 1] if head else 0
    if head:
        for elements in like.lists:
            if elements.start <= after:
                ends = elements.ends[: bisect_right(elements.ends, after)]
                found.append(Elements(elements.key, elements.start, ends))
    same_from, moved = _common_tail(body, like), len(body) - len(like.body)
    for key, behind in Layout(body[after:]).cuts(_LISTS, inside=head > 0):
        at = after + behind
        _note(found, key, at)
        there = at - moved
        if key is None and there >= same_from and _is_in(like.ends, there):
            _note_rest(found, like, there, moved)
            return found, Shared(head, len(like.ends) - bisect_right(like.ends, there))
    return found, Shared(head, 0)


def _note(found: list[Elements], key: str | None, at: int) -> None:
    if key is None:
        found[-1].ends.append(at)
    else:
        found.append(Elements(key, at, []))


def _note_rest(found: list[Elements], like: Cut, there: int, moved: int) -> None:
    """Add the places of `like` after `there`, moved by so many bytes."""
    for elements in like.lists:
        rest = [end + moved for end in elements.ends[bisect_right(elements.ends, there) :]]
        if elements.start > there:
            found.append(Elements(elements.key, elements.start + moved, rest))
        else:
            found[-1].ends.extend(rest)


def _is_in(places: Sequence[int], place: int) -> bool:
    at = bisect_left(places, place)
    return at < len(places) - 1 and places[at] == place
