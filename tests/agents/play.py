"""What the provider does in each scenario, and what a client is asked to do in it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reef.runtime import Dialect
from tests.stub_dialects import sse
from tests.stub_provider import Answer, Asked, Fault, Reply, ToolCall

Scenario = Literal["text", "tool", "parallel", "busy", "cut", "broken", "refused", "long"]
SCENARIOS: dict[Scenario, str] = {
    "text": "a text",
    "tool": "a call that writes a file, then a text",
    "parallel": "two calls at once, each of which writes a file, then a text",
    "busy": "503 with `retry-after: 1`, then a text",
    "cut": "a stream that is cut in the middle of a call, then the call again whole, then a text",
    "broken": "a stream that ends with an error event, then a text",
    "refused": "400 for whatever is asked",
    "long": "as `tool`, but the call's prompt is said to be too long for the agent to go on with it",
}
STREAMED_ONLY: frozenset[Scenario] = frozenset({"cut", "broken"})
FILES: dict[Scenario, dict[str, str]] = {
    "tool": {"one.txt": "the first\n"},
    "parallel": {"one.txt": "the first\n", "two.txt": "the second\n"},
    "cut": {"one.txt": "the first\n"},
    "long": {"one.txt": "the first\n"},
}
"""The files that the calls write."""
_IN_A_CALL: dict[Dialect, int] = {"chat": 5, "messages": 9, "responses": 10}
"""How many events of a text and a call end in the middle of the call's arguments."""
TASK = "Write the files that are needed, then say that it is done."
TOO_LONG = 30_000
"""Tokens: within every agent's window, but past the point at which it sums up what was said."""
WRITING = "I write."
DONE = "All is done."
TITLE_S = 20
TITLE = "Writing files"
OVERLOADED = "502 upstream overloaded, try again"

Write = Callable[[str, str, str], ToolCall]
"""The call by which a client writes a file: a path, a text, the id of the call."""


@dataclass(frozen=True)
class Place:
    """Where one run happens. `root` is the daemon's base URL scoped to scenario and run, without `/v1`."""

    folder: Path
    root: str
    token: str
    session: str
    model: str = "M"

    @property
    def v1(self) -> str:
        return f"{self.root}/v1"


@dataclass(frozen=True)
class Said:
    """What a client printed or returned; `ok` unless it ended with an error."""

    ok: bool
    text: str


class Play:
    """The provider's part in one run: first the fault, then the calls, then the text.

    A request without tools is beside the work when an agent sends it (`agent`): it is given a title. Where
    it tells of the calls, it sums them up, and they are not made again. With `titles` a turn is answered only
    once the title was, so that the agent does not end before it.
    """

    def __init__(self, scenario: Scenario, write: Write, *, agent: bool, titles: bool = False) -> None:
        self._scenario = scenario
        self._agent = agent
        files = FILES.get(scenario, {})
        self._calls = tuple(
            write(path, text, f"call_{number}") for number, (path, text) in enumerate(files.items(), 1)
        )
        self._faulty = scenario in {"busy", "cut", "broken"}
        self._tokens = TOO_LONG if scenario == "long" else None
        self._summed = False
        self._titled = not titles

    async def __call__(self, asked: Asked) -> Answer:
        if self._agent and not asked.tools:
            self._titled = True
            self._summed |= WRITING.encode() in asked.body
            return TITLE
        async with asyncio.timeout(TITLE_S):
            while not self._titled:
                await asyncio.sleep(0.02)
        if self._scenario == "refused":
            return Fault(400, "this stub refuses whatever it is asked")
        faulty, self._faulty = self._faulty, False
        if faulty:
            return self._fault(asked.dialect)
        if self._calls and not asked.results and not self._summed:
            return Reply(WRITING, self._calls, prompt_tokens=self._tokens)
        return DONE

    def _fault(self, dialect: Dialect) -> Fault:
        if self._scenario == "busy":
            return Fault(503, "overloaded", {"retry-after": "1"})
        if self._scenario == "cut":
            return Fault(after=_IN_A_CALL[dialect], reply=Reply(WRITING, self._calls))
        return Fault(after=4, event=broken(dialect))


def broken(dialect: Dialect) -> bytes:
    """The dialect's own error event."""
    error = {"type": "overloaded_error", "message": OVERLOADED}
    if dialect == "messages":
        return sse({"type": "error", "error": error}, "error")
    if dialect == "chat":
        return sse({"error": error})
    failed = {"id": "resp_0", "object": "response", "status": "failed", "output": []}
    told = {"code": "server_error", "message": OVERLOADED}
    event = {"type": "response.failed", "sequence_number": 99, "response": failed | {"error": told}}
    return sse(event, "response.failed")
