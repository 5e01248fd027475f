"""The end of a stream: which event says that all is well, and how the receipt gets into it."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol

from daemon.wire.errors import error_in_event
from daemon.wire.sse import EventSplitter, data
from daemon.wire.values import load_object


class Mark(Enum):
    """What an event means for the stream's end."""

    NONE = 0
    FINISH = 1
    """The answer is whole (a finish reason was given), though the stream goes on."""
    TERMINAL = 2
    ERROR = 3


class Marker(Protocol):
    """The part of a codec that knows the events of a stream."""

    def mark(self, event: bytes) -> Mark: ...

    def answers(self, response: Mapping[str, Any]) -> bool: ...

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes: ...

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes: ...


class StreamTail:
    """Watches one stream go by: feed it bytes and send on what it returns.

    What it holds back (the terminal event and what followed in the same chunk) goes out as `signed(receipt)`
    or `plain()`.
    """

    __slots__ = (
        "_codec",
        "_first",
        "_held",
        "_seen",
        "_splitter",
        "answered",
        "errored",
        "finished",
        "reasoned",
        "told",
    )

    def __init__(self, codec: Marker) -> None:
        self._codec = codec
        self._splitter = EventSplitter()
        self._first = b""
        self._held: list[bytes] = []
        self._seen = 0
        self.answered = False
        """An event of an answer was seen."""
        self.finished = False
        """The terminal event was seen."""
        self.reasoned = False
        """A finish reason was seen."""
        self.errored = False
        """An error event was seen."""
        self.told = ""
        """What it said."""

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes in; return those that may go out now. An event goes out once it is whole."""
        if self.finished:
            return chunk
        events = self._splitter.feed(chunk)
        for index, event in enumerate(events):
            if self._look(event):
                self._held = [*events[index:], self._splitter.rest]
                return b"".join(events[:index])
        return events[0] if len(events) == 1 else b"".join(events)

    def end(self) -> bytes:
        """The stream is over: return what may still go out. Some servers leave out the last blank line."""
        rest = b"" if self.finished else self._splitter.rest
        if rest and self._look(rest):
            self._held = [rest]
            return b""
        return rest

    def signed(self, receipt: str) -> bytes:
        """What was held back, with the receipt in it."""
        if self.errored or not self._held:
            return self.plain()
        return self._codec.sign(self._held[0], receipt, self._first) + b"".join(self._held[1:])

    def plain(self) -> bytes:
        """What was held back, as it came."""
        return b"".join(self._held)

    def error_event(self, message: str) -> bytes:
        """What to send in place of the rest when the stream broke."""
        sent = self._seen - self.finished
        return self._codec.error_event(message, first=self._first, sequence=sent)

    def _look(self, event: bytes) -> bool:
        """Note what an event means; whether it is the terminal one."""
        mark = self._codec.mark(event)
        if not self._first and b"data:" in event:
            self._first = event
        self._seen += 1
        if not self.answered:
            self.answered = self._codec.answers(load_object(data(event)) or {})
        if mark is Mark.NONE:
            return False
        if mark is Mark.FINISH:
            self.reasoned = True
        elif mark is Mark.ERROR:
            self.errored = True
            self.told = error_in_event(load_object(data(event)) or {})
        else:
            self.finished = True
        return self.finished
