"""Server-sent events as raw bytes: where one ends, and what its lines say.

Nothing here re-serialises: the events that come out, joined, are the bytes that went in.
"""

import re

_END = re.compile(rb"\n\r?\n")
_END_WITH_CR = re.compile(rb"(?:\n|\r(?=[^\n]))(?:\r?\n|\r(?=[^\n]))")
"""Where a CR may end a line by itself: one at the end of what has arrived may be half of a CRLF."""
_LINE_END = re.compile(rb"[\r\n]")
_DATA = re.compile(rb"(?:^|[\r\n])data:")
_FIELDS = (b"data", b"event", b"id", b"retry", b":")
_BOM = b"\xef\xbb\xbf"
"""May stand before the first event, and belongs to none."""


class EventSplitter:
    """Cuts a stream into events, whatever the chunks it arrives in; lines end with LF, CRLF or CR."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def rest(self) -> bytes:
        """What arrived of an event that has not ended."""
        return bytes(self._buffer)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the raw bytes of each event that `chunk` completes, the blank line at its end included."""
        buffer = self._buffer
        # An end may lie across the border of two chunks; what lies before was searched already.
        seen = max(len(buffer) - 2, 0)
        buffer += chunk
        events = []
        begin = 0
        pattern = _END if buffer.find(b"\r", seen) < 0 else _END_WITH_CR
        for match in pattern.finditer(buffer, seen):
            events.append(bytes(buffer[begin : match.end()]))
            begin = match.end()
        if begin:
            del buffer[:begin]
        return events


def split(body: bytes) -> tuple[list[bytes], bytes]:
    """Cut a whole stream: (complete events, what follows the last of them)."""
    splitter = EventSplitter()
    events = splitter.feed(body)
    return events, splitter.rest


def name(event: bytes) -> bytes:
    """The value of the event's last `event:` field, or nothing."""
    found = b""
    if b"event" in event:
        for line in _lines(event):
            if line.startswith(b"event:"):
                found = line[6:].strip()
    return found


def data(event: bytes) -> bytes:
    """The event's `data:` lines, joined with LF; comments and other fields are skipped."""
    lines = [line[5:].removeprefix(b" ") for line in _lines(event) if line.startswith(b"data:")]
    return lines[0] if len(lines) == 1 else b"\n".join(lines)


def is_event(event: bytes) -> bool:
    """Whether a reader of events finds anything in it: a field, a comment, or nothing but blank lines."""
    lines = [line for line in _lines(event) if line.strip()]
    return not lines or any(line.startswith(_FIELDS) for line in lines)


def _lines(event: bytes) -> list[bytes]:
    return event.removeprefix(_BOM).splitlines()


def splice(event: bytes, member: bytes) -> bytes:
    """Add `member` (`"key":value`) at the end of the JSON object in the event's data; no other byte changes.

    An event whose data is no object with members comes back as it is.
    """
    lines = [found.end() for found in _DATA.finditer(event)]
    if not lines:
        return event
    end = _LINE_END.search(event, lines[-1])
    brace = event.rfind(b"}", lines[-1], end.start() if end else len(event))
    if brace < 0:
        return event
    return event[:brace] + b"," + member + event[brace:]


def encode(payload: bytes, event: str = "") -> bytes:
    """One event with one line of data."""
    head = b"event: " + event.encode() + b"\n" if event else b""
    return head + b"data: " + payload + b"\n\n"
