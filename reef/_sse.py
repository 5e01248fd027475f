"""Server-sent events, read from bytes as they come."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event of `/reef/events`; `name` is `record`, `report`, `step`, ... and `id` is `<boot>-<n>`."""

    id: str
    name: str
    data: dict[str, Any] = field(default_factory=dict)


class EventReader:
    """Feed it bytes, get the events that are complete. Comments and events without data are passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, list[str]] = {}

    def feed(self, chunk: bytes) -> list[Event]:
        """Raises ValueError when an event's data is not a JSON object."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found: list[Event] = []
        for line in lines:
            text = line.rstrip(b"\r").decode("utf-8", "replace")
            if text:
                name, _, value = text.partition(":")
                self._fields.setdefault(name, []).append(value.removeprefix(" "))
            elif event := self._take():
                found.append(event)
        return found

    def _take(self) -> Event | None:
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        data = json.loads("\n".join(fields["data"]))
        if not isinstance(data, dict):
            raise ValueError("an event's data must be a JSON object")
        return Event(fields.get("id", [""])[-1], fields.get("event", ["message"])[-1], data)
