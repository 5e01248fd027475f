"""What the live connection tells the app."""

from dataclasses import dataclass
from typing import Any

from textual.message import Message

from reef._sse import Event


@dataclass
class Connected(Message):
    """The daemon answers; `status` is its `/reef/status`."""

    status: dict[str, Any]


@dataclass
class Disconnected(Message):
    """The daemon does not answer; it is tried again by itself."""

    reason: str


@dataclass
class Happened(Message):
    """One event of `/reef/events`."""

    event: Event
