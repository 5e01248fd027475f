"""A recording of a daemon's life: its events, unchanged, and what it answered while they came.

`reef tui --demo` replays the one that comes with Reef; tests and pictures use it too. `make recording`
takes a new one from a real `reef demo` (see `record.py`).
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from reef._sse import Event

FILE = "demo.json"


@dataclass(slots=True)
class Recording:
    """Times are seconds since the first event. `answers[target]` are the bodies as they changed."""

    began: str
    events: list[tuple[float, Event]] = field(default_factory=list)
    answers: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    @classmethod
    def shipped(cls) -> "Recording":
        """The one that comes with Reef."""
        return cls.loads(files("reef_cli.tui").joinpath(FILE).read_text("utf-8"))

    @classmethod
    def loads(cls, text: str) -> "Recording":
        data = json.loads(text)
        bodies: list[str] = [_text(body) for body in data["bodies"]]
        return cls(
            data["began"],
            [(at, Event(identity, name, told)) for at, identity, name, told in data["events"]],
            {
                target: [(at, bodies[number]) for at, number in changes]
                for target, changes in data["answers"].items()
            },
        )

    def dumps(self) -> str:
        """Compact JSON; a body that comes twice is kept once."""
        numbers: dict[str, int] = {}
        answers = {
            target: [(at, numbers.setdefault(body, len(numbers))) for at, body in changes]
            for target, changes in sorted(self.answers.items())
        }
        events = [(at, event.id, event.name, event.data) for at, event in self.events]
        data = {
            "began": self.began,
            "events": events,
            "answers": answers,
            "bodies": [_value(body) for body in numbers],
        }
        lines = [f"{json.dumps(key)}: {_lines(value)}" for key, value in data.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def keep(self, at: float, target: str, body: str) -> None:
        """Note an answer, unless it is what was answered before."""
        changes = self.answers.setdefault(target, [])
        if not changes or changes[-1][1] != body:
            changes.append((at, body))

    def answer(self, target: str, at: float) -> str | None:
        """The body that `target` had at a time; before its first, that one."""
        changes = self.answers.get(target)
        if not changes:
            return None
        return changes[max(bisect_right([moment for moment, _ in changes], at) - 1, 0)][1]

    @property
    def seconds(self) -> float:
        return self.events[-1][0] if self.events else 0.0

    def write(self, folder: Path) -> Path:
        file = folder / FILE
        file.write_text(self.dumps(), "utf-8")
        return file


def _value(body: str) -> Any:
    """A body as JSON where it is an object, so that the file can be read and compared."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return value if isinstance(value, dict) else body


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(value: Any) -> str:
    """One line an element."""

    def compact(element: Any) -> str:
        return json.dumps(element, ensure_ascii=False, separators=(",", ":"))

    if isinstance(value, list):
        return "[\n" + ",\n".join(map(compact, value)) + "\n]"
    if isinstance(value, Mapping):
        return "{\n" + ",\n".join(f"{json.dumps(key)}:{compact(each)}" for key, each in value.items()) + "\n}"
    return compact(value)
