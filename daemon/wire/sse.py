"""Server-sent events as raw bytes: where one ends, and what its lines say.

Nothing here re-serialises: the events that come out, joined, are the bytes that went in.
"""

import re

_END = re.compile(rb"\n\r?\n")


class EventSplitter:
    """Cuts a stream into events, whatever the chunks it arrives in (LF or CRLF)."""

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
        for match in _END.finditer(buffer, seen):
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
        for line in event.splitlines():
            if line.startswith(b"event:"):
                found = line[6:].strip()
    return found


def data(event: bytes) -> bytes:
    """The event's `data:` lines, joined with LF; comments and other fields are skipped."""
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    if len(lines) == 1:
        return lines[0].rstrip(b"\r")
    return b"\n".join(line.rstrip(b"\r") for line in lines)


def splice(event: bytes, member: bytes) -> bytes:
    """Add `member` (`"key":value`) at the end of the JSON object in the event's data; no other byte changes.

    An event whose data is no object with members comes back as it is.
    """
    at = event.rfind(b"\ndata:")
    if at < 0 and not event.startswith(b"data:"):
        return event
    end = event.find(b"\n", at + 1)
    brace = event.rfind(b"}", at + 1, end if end >= 0 else len(event))
    if brace < 0:
        return event
    return event[:brace] + b"," + member + event[brace:]


def encode(payload: bytes, event: str = "") -> bytes:
    """One event with one line of data."""
    head = b"event: " + event.encode() + b"\n" if event else b""
    return head + b"data: " + payload + b"\n\n"
