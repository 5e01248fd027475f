"""Reports on their way out: each is held for a moment, so that taking it back is simply not sending it."""

import json
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any

from reef.errors import ReefError, TimedOut, Unauthorized, Unavailable
from reef.ids import new_receipt

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

HOLD_S = 4.0


@dataclass(frozen=True, slots=True)
class Held:
    """One report to be, on one reference (a receipt, `session:ID` or `run:ID`). `due` is on the outbox's
    clock. Its own id makes it safe to send again, as it is, after a connection broke: `tried`."""

    reference: str
    scenario: str
    due: float
    score: float | None = None
    feedback: str | dict[str, str] | None = None
    report_id: str = field(default_factory=new_receipt)
    tried: bool = False

    def saying(self, **said: Any) -> "Held":
        """With `said` in it. One that was tried may have arrived: what differs from it is another report."""
        again = replace(self, report_id=new_receipt(), tried=False) if self.tried else self
        return replace(again, **said)

    def fields(self) -> dict[str, Any]:
        """The arguments of the client's `report`."""
        return {
            "references": [self.reference],
            "score": self.score,
            "feedback": self.feedback,
            "scenario": self.scenario,
            "agent_record_id": self.report_id,
        }

    def as_command(self) -> str:
        """The `reef report` that says the same, under the same id: one that arrived is not stored twice."""
        words = ["reef", "report", self.reference, "-s", self.scenario, "--id", self.report_id]
        if self.score is not None:
            words += ["--score", str(self.score)]
        if isinstance(self.feedback, str):
            words += ["--feedback", _as_option(self.feedback)]
        elif self.feedback is not None:
            words += ["--correction", self.feedback["correction"]]
        return shlex.join(words)


class Outbox:
    """Holds reports by reference. What is said of one again while it is held goes into the same report."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._held: dict[str, Held] = {}
        self._sending: dict[str, Held] = {}
        self._before: list[dict[str, Held | None]] = []

    def __bool__(self) -> bool:
        return bool(self._held)

    def get(self, reference: str) -> Held | None:
        return self._held.get(reference)

    def hold(self, targets: Iterable[tuple[str, str]], **said: Any) -> None:
        """Say `score` or `feedback` of these (reference, scenario) pairs: one act for `take_back`."""
        before: dict[str, Held | None] = {}
        for reference, scenario in targets:
            held = before[reference] = self._held.get(reference)
            due = self._clock() + HOLD_S
            held = replace(held, due=due) if held else Held(reference, scenario, due)
            self._held[reference] = held.saying(**said)
        if before:
            self._before.append(before)

    def take_back(self) -> list[str]:
        """Undo the last act on what is still held; the references that concerned."""
        while self._before:
            concerned = [item for item in self._before.pop().items() if item[0] in self._held]
            for reference, earlier in concerned:
                del self._held[reference]
                if earlier is not None:
                    self._held[reference] = replace(earlier, due=self._clock() + HOLD_S)
            if concerned:
                return [reference for reference, _ in concerned]
        return []

    def extend(self, references: Iterable[str], by: float = HOLD_S) -> None:
        """Hold these that much longer from now; a person is still writing."""
        for reference in references:
            if held := self._held.get(reference):
                self._held[reference] = replace(held, due=self._clock() + by)

    def seconds_left(self, held: Held) -> int:
        """Whole seconds, at least 1."""
        return max(ceil(held.due - self._clock()), 1)

    def take_due(self, *, everything: bool = False) -> list[Held]:
        """What is to be sent now, by `send`; with `everything` also what is on its way."""
        now = self._clock()
        due = [held for held in self._held.values() if everything or held.due <= now]
        for held in due:
            del self._held[held.reference]
        if everything:
            due += self._sending.values()
        self._sending |= {held.report_id: held for held in due}
        return due

    async def send(self, client: "Callable[[], AsyncClient]", held: Held) -> dict[str, Any] | None:
        """Send one; what the daemon answers, or None when it did not get through and is held again. `client`
        may find no daemon either, or one with another token. A call that ends in any other way, cancelled
        say, leaves it on its way. Raises `ReefError` where the daemon does not want it."""
        answer: dict[str, Any] | None = None
        try:
            answer = await client().report(**held.fields())
        except (Unavailable, TimedOut, Unauthorized):
            self._hold_again(replace(held, due=self._clock() + HOLD_S, tried=True))
        except ReefError:
            self._sending.pop(held.report_id, None)
            raise
        self._sending.pop(held.report_id, None)
        return answer

    def _hold_again(self, held: Held) -> None:
        """Hold what did not get through, with what was said of the same meanwhile."""
        newer = self._held.get(held.reference)
        if newer is not None:
            said = {"score": newer.score, "feedback": newer.feedback}
            held = held.saying(**{name: value for name, value in said.items() if value is not None})
            held = replace(held, due=newer.due)
        self._held[held.reference] = held


def _as_option(text: str) -> str:
    """`--feedback` takes what begins like a file or like JSON for that."""
    if text.lstrip().startswith(("@", "{", "[")):
        return json.dumps({"text": text}, ensure_ascii=False)
    return text
