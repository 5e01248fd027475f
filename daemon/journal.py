"""The journal: the daemon's latest log lines, kept in memory for clients that cannot see its files."""

import logging
from collections import deque
from dataclasses import dataclass

KEPT = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1 within one start of the daemon; `level` is logging's word in lower case."""

    number: int
    level: str
    text: str


class Journal(logging.Handler):
    """Install it on the root logger."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[Line] = deque(maxlen=KEPT)
        self._last = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._last += 1
        self._lines.append(Line(self._last, record.levelname.lower(), self.format(record)))

    def after(self, number: int, limit: int) -> list[Line]:
        """The newest `limit` lines with a higher number, oldest first."""
        assert self.lock is not None
        with self.lock:
            lines = list(self._lines)
        return [line for line in lines if line.number > number][-limit:]
