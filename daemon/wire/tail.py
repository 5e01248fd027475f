"""The end of a stream: which event says that all is well, and how the receipt gets into it."""

from enum import Enum
from typing import Protocol

from daemon.wire.sse import EventSplitter


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

    def follows(self, event: bytes) -> bool: ...

    def sign(self, terminal: bytes, receipt: str, first: bytes) -> bytes: ...

    def error_event(self, message: str, *, first: bytes = b"", sequence: int = 0) -> bytes: ...


class StreamTail:
    """Watches one stream go by: feed it bytes and send on what it returns.

    What it holds back (the terminal event and what followed in the same chunk, and before it an event that
    must follow the receipt) goes out as `signed(receipt)` or `plain()`.
    """

    __slots__ = (
        "_codec",
        "_first",
        "_held",
        "_late",
        "_seen",
        "_splitter",
        "errored",
        "finished",
        "reasoned",
    )

    def __init__(self, codec: Marker) -> None:
        self._codec = codec
        self._splitter = EventSplitter()
        self._first = b""
        self._held: list[bytes] = []
        self._late = b""
        """The last event, where the receipt comes before it if it is the last before the terminal one."""
        self._seen = 0
        self.finished = False
        """The terminal event was seen."""
        self.reasoned = False
        """A finish reason was seen."""
        self.errored = False
        """An error event was seen."""

    def feed(self, chunk: bytes) -> bytes:
        """Take bytes in; return those that may go out now. An event goes out once it is whole."""
        if self.finished:
            return chunk
        events = self._splitter.feed(chunk)
        out: list[bytes] = []
        for index, event in enumerate(events):
            if self._look(event):
                self._hold(*events[index:], self._splitter.rest)
                break
            if self._late:
                out.append(self._late)
                self._late = b""
            if self._codec.follows(event):
                self._late = event
            else:
                out.append(event)
        return out[0] if len(out) == 1 else b"".join(out)

    def end(self) -> bytes:
        """The stream is over: return what may still go out. Some servers leave out the last blank line."""
        rest = b"" if self.finished else self._splitter.rest
        if rest and self._look(rest):
            self._hold(rest)
            return b""
        if self.reasoned or self.errored:
            rest, self._late = self._late + rest, b""
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
        return self._late + self._codec.error_event(message, first=self._first, sequence=self._seen)

    def _hold(self, *events: bytes) -> None:
        self._held = [self._late, *events] if self._late else [*events]
        self._late = b""

    def _look(self, event: bytes) -> bool:
        """Note what an event means; whether it is the terminal one."""
        mark = self._codec.mark(event)
        if not self._first and b"data:" in event:
            self._first = event
        self._seen += 1
        if mark is Mark.NONE:
            return False
        if mark is Mark.FINISH:
            self.reasoned = True
        elif mark is Mark.ERROR:
            self.errored = True
        else:
            self.finished = True
        return self.finished
