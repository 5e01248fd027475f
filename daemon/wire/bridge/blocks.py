"""Puts a stream in order: one block after another, as two of the dialects want it.

Calls whose pieces arrive interleaved wait for the one before; text in a row is one block.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, Protocol

from daemon.wire.bridge.events import Begin, CallDelta, CallEnd, CallStart, Event, TextDelta, ThinkingDelta
from daemon.wire.bridge.names import Known, Names
from daemon.wire.bridge.neutral import NO_ARGUMENTS, NOTHING, Stop, Usage
from daemon.wire.bridge.reading import unwrapped
from daemon.wire.values import load_object


@dataclass(slots=True)
class Block:
    """A part of the answer. `pieces` are its text (of a call: the arguments) as far as it came, `sent` how
    many of them were written. `number` counts calls only; `call_id` and `tool` are the client's."""

    kind: Literal["text", "thinking", "call"]
    index: int = 0
    number: int = 0
    call_id: str = ""
    tool: Known = field(default_factory=lambda: Known(""))
    pieces: list[str] = field(default_factory=list)
    sent: int = 0
    looked_at: int = 0
    over: bool = False

    @property
    def whole(self) -> str:
        """Its text, as far as it came."""
        return "".join(self.pieces)

    def unsent(self) -> str:
        """What was not written yet, which it is then."""
        text = "".join(self.pieces[self.sent :])
        self.sent = len(self.pieces)
        return text

    def may_be_nothing(self) -> bool:
        """Whether what came so far is the beginning of what models write where there are no arguments."""
        return any(nothing.startswith(self.whole.strip()) for nothing in NOTHING)

    def is_object(self) -> bool:
        """Whether the arguments of a call are an object by now; each piece is looked at once."""
        came = "".join(self.pieces[self.looked_at :])
        self.looked_at = len(self.pieces)
        if not came.rstrip().endswith("}"):
            return False
        return load_object(self.whole.encode(errors="replace")) is not None


class Writer(Protocol):
    """Says a stream in one dialect. Blocks are opened, grow and are closed one after another."""

    def begin(self, begin: Begin) -> bytes: ...

    def open(self, block: Block) -> bytes: ...

    def delta(self, block: Block, text: str) -> bytes: ...

    def close(self, block: Block, text: str) -> bytes:
        """`text` is all of it; of a free-form tool's call what was inside of the object."""

    def fail(self, message: str) -> bytes:
        """The event that ends a stream that broke."""

    def finish(self, stop: Stop, sequence: str | None, usage: Usage) -> bytes:
        """The end of it all, the terminal event last."""


class Blocks:
    """Sorts the events of an answer's content and has them written."""

    def __init__(self, writer: Writer, names: Names) -> None:
        self._writer = writer
        self._names = names
        self._queue: deque[Block] = deque()
        self._calls: dict[int, Block] = {}
        self._made = 0
        self._open = False

    @property
    def called(self) -> bool:
        """Whether a tool was called."""
        return bool(self._calls)

    @property
    def any(self) -> bool:
        """Whether anything was said."""
        return self._made > 0

    def take(self, event: Event) -> bytes:
        match event:
            case TextDelta():
                self._grow("text", event.text)
            case ThinkingDelta():
                self._grow("thinking", event.text)
            case CallStart():
                number = len(self._calls)
                identity = self._names.call_id(event.id, number)
                tool = self._names.restored(event.name)
                self._calls[event.key] = self._add(Block("call", 0, number, identity, tool))
            case CallDelta() if (call := self._calls.get(event.key)) and not call.over:
                call.pieces.append(event.arguments)
            case CallEnd() if call := self._calls.get(event.key):
                call.over = True
            case _:
                pass
        return self._advance()

    def flush(self) -> bytes:
        """Nothing more comes: write and close all there is."""
        for block in self._queue:
            block.over = True
        return self._advance()

    def _grow(self, kind: Literal["text", "thinking"], text: str) -> None:
        last = self._queue[-1] if self._queue else None
        if text:
            block = last if last and last.kind == kind and not last.over else self._add(Block(kind))
            block.pieces.append(text)

    def _add(self, block: Block) -> Block:
        block.index = self._made
        self._made += 1
        self._queue.append(block)
        return block

    def _advance(self) -> bytes:
        said = b""
        while self._queue:
            block = self._queue[0]
            if not self._open:
                said += self._writer.open(block)
                self._open = True
            over = block.over or (len(self._queue) > 1 and _is_whole(block))
            custom = block.tool.custom
            if block.kind == "call" and not custom and not block.sent and block.may_be_nothing():
                if not over:
                    break
                if block.whole.strip() in NOTHING:
                    block.pieces = [NO_ARGUMENTS]
            if new := block.unsent() if not custom else unwrapped(block.whole) if over else "":
                said += self._writer.delta(block, new)
            if not over:
                break
            block.over = True
            said += self._writer.close(block, new if custom else block.whole)
            self._open = False
            self._queue.popleft()
        return said


def _is_whole(block: Block) -> bool:
    """Whether a block that is followed by another can be closed. Nothing says so of a chat's calls but their
    arguments, once they are an object."""
    return block.kind != "call" or block.is_object()
