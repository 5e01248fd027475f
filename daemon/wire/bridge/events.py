"""What happens in a stream, in nobody's words."""

from dataclasses import dataclass

from daemon.wire.bridge.neutral import Stop, Usage


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


@dataclass(frozen=True, slots=True)
class End:
    """The provider's terminal event."""


Event = Begin | TextDelta | ThinkingDelta | CallStart | CallDelta | CallEnd | Finish | Spent | Failed | End
