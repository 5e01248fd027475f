"""A stream in one dialect, said in another while it arrives."""

from collections.abc import Callable
from typing import Protocol

from daemon.wire.bridge import chat_stream, messages_stream, responses_stream
from daemon.wire.bridge.blocks import Blocks, Writer
from daemon.wire.bridge.events import Begin, End, Event, Failed, Finish, Garbled, Spent
from daemon.wire.bridge.names import Names
from daemon.wire.bridge.neutral import Stop, Usage, updated
from daemon.wire.errors import UPSTREAM_BROKE
from daemon.wire.parsing import DONE
from daemon.wire.sse import EventSplitter, data
from daemon.wire.values import load_object
from reef.runtime import Dialect

_KEEP_ALIVE = b": keep-alive\n\n"


class Reader(Protocol):
    """Reads a stream in one dialect."""

    def read(self, event: bytes) -> list[Event]:
        """What one event, raw, says."""


_READERS: dict[Dialect, Callable[[], Reader]] = {
    "chat": chat_stream.Reader,
    "messages": messages_stream.Reader,
    "responses": responses_stream.Reader,
}
_WRITERS: dict[Dialect, Callable[[Names, bool], Writer]] = {
    "chat": chat_stream.Writer,
    "messages": lambda names, _: messages_stream.Writer(names),
    "responses": lambda names, _: responses_stream.Writer(names),
}


class Translator:
    """Feed it what an upstream that speaks `source` sends; send on what it returns, which is `target`.

    What comes out does not depend on how the bytes were cut. A stream that stops before its answer's end
    comes out without an end as well.

    Attributes:
        usage: what the upstream said of it so far.
    """

    def __init__(self, source: Dialect, target: Dialect, names: Names, *, usage_wanted: bool = True) -> None:
        self._splitter = EventSplitter()
        self._reader = _READERS[source]()
        self._writer = _WRITERS[target](names, usage_wanted)
        self._blocks = Blocks(self._writer, names)
        self._begun = False
        self._stop: Stop | None = None
        self._sequence: str | None = None
        self._over = False
        self.usage = Usage()

    def feed(self, chunk: bytes) -> bytes:
        return b"".join(self._event(event) for event in self._splitter.feed(chunk))

    def end(self) -> bytes:
        """Nothing more comes. Some servers leave out the last blank line, or the terminal event; what was cut
        off in the middle of an event says nothing."""
        rest = self._splitter.rest
        said = self._event(rest) if _is_whole(rest) else b""
        return said + (self._finish() if self._stop else b"")

    def _event(self, event: bytes) -> bytes:
        if self._over:
            return b""
        said = b"".join(self._say(part) for part in self._reader.read(event))
        return said or (_KEEP_ALIVE if event.startswith((b":", b"event: ping")) else b"")

    def _say(self, event: Event) -> bytes:
        if self._over:
            return b""
        match event:
            case Begin():
                return self._begin(event)
            case Spent():
                self.usage = updated(self.usage, event.usage)
                return b""
            case Finish():
                self._stop = event.stop
                self._sequence = event.sequence
                return self._begin() + self._blocks.flush()
            case Garbled() if self._stop is not None:
                return b""
            case Failed():
                self._over = True
                return self._begin() + self._writer.fail(UPSTREAM_BROKE + event.message)
            case End():
                return self._finish()
            case _:
                return self._begin() + self._blocks.take(event)

    def _begin(self, begin: Begin | None = None) -> bytes:
        """The stream's beginning, once."""
        if self._begun:
            return b""
        self._begun = True
        return self._writer.begin(begin or Begin(None, ""))

    def _finish(self) -> bytes:
        """The stream's end, once; nothing where there was no beginning. One that says nothing has none."""
        if self._over or not self._begun:
            return b""
        if self._stop is None and not self._blocks.any:
            return self._say(Failed("the stream ended without an answer"))
        self._over = True
        stop = self._stop or "end"
        if stop == "end" and self._blocks.called:
            stop = "tools"
        return self._blocks.flush() + self._writer.finish(stop, self._sequence, self.usage)


def _is_whole(event: bytes) -> bool:
    """Whether an event lacks nothing but the blank line at its end."""
    said = data(event)
    return said.strip() == DONE or load_object(said) is not None
