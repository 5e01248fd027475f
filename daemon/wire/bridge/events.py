"""What happens in a stream, in nobody's words."""

from dataclasses import dataclass

from daemon.wire.bridge.neutral import Stop, Usage
from daemon.wire.parsing import DONE, unread


@dataclass(frozen=True, slots=True)
class Begin:
    """The first event of a stream."""

    id: str | None
    model: str
    created: int | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """`key` tells the calls of one answer apart."""

    key: int
    id: str
    name: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class CallDelta:
    key: int
    arguments: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    key: int


@dataclass(frozen=True, slots=True)
class Finish:
    stop: Stop
    sequence: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What is known of the usage so far; what it leaves open (None) stays as it was."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Failed:
    message: str


class Garbled(Failed):
    """Of no weight where the answer is whole already."""


def bare(event: bytes, data: bytes) -> list["Event"]:
    """What an event says whose `data` is no object: that the stream is over, or nothing, or nobody knows."""
    if data.strip() == DONE:
        return [End()]
    said = unread(event, data)
    return [] if said is None else [Garbled(f"an event of the stream cannot be read: {said}")]


@dataclass(frozen=True, slots=True)
class End:
    """The provider's terminal event."""


Event = Begin | TextDelta | ThinkingDelta | CallStart | CallDelta | CallEnd | Finish | Spent | Failed | End
