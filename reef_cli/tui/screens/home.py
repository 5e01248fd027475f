"""Home: every scenario and what growth does right now."""

from collections import Counter, deque
from collections.abc import Iterable
from time import monotonic
from typing import Any, ClassVar

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef._sse import Event
from reef_cli.tui.scenario_words import about
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import age, one_line, plain, short_id
from reef_cli.tui.widgets.row_list import Column, Row, RowList

SPARK = "▁▂▃▄▅▆▇█"
SPARK_SLOTS, SLOT_S = 8, 5.0


class HomeScreen(ReefScreen):
    mode = "home"
    ages = True
    DEFAULT_CSS = "HomeScreen #about { height: 6; border-top: solid $panel; padding: 0 1; }"
    concerns: ClassVar[frozenset[str]] = frozenset(
        {"record", "report", "verdict", "step", "episode", "release", "error"}
    )

    def __init__(self) -> None:
        super().__init__()
        self._traffic: dict[str, deque[float]] = {}
        self._started: dict[tuple[str, int], tuple[float, int]] = {}
        self._complaints: deque[str] = deque(maxlen=3)
        self._states: dict[str, dict[str, Any]] = {}
        self._pointed_at = ""
        """The scenario that the bar was moved to last, by whom ever."""

    def body(self) -> Iterable[Widget]:
        yield RowList(
            Column("SCENARIO", 13),
            Column("RELEASE", 15),
            Column("TRAFFIC", SPARK_SLOTS),
            Column("WAITS", 22),
            Column("GROWTH"),
            id="scenarios",
            empty="no scenario yet: the first request makes one (see `reef env`)",
        )
        with VerticalScroll(id="about", can_focus=False):
            yield Static(id="told")
        yield Static(id="errors")

    async def fetch(self) -> dict[str, Any]:
        return await self.reef.client.status()

    def show(self, data: dict[str, Any]) -> None:
        self.reef.adopt(data)
        rows = [self._row(name, state) for name, state in data["scenarios"].items()]
        self._states = data["scenarios"]
        shown = self.query_one(RowList)
        shown.show(rows)
        if self.reef.scenario != self._pointed_at:  # chosen elsewhere: the bar follows
            self._pointed_at = self.reef.scenario
            shown.cursor = next((at for at, row in enumerate(rows) if row.key == self.reef.scenario), 0)
        self._tell()
        self.query_one("#errors", Static).update(plain("\n".join(self._complaints)))

    def happened(self, event: Event) -> None:
        scenario = event.data.get("scenario") or ""
        if event.name == "record":
            self._traffic.setdefault(scenario, deque(maxlen=10_000)).append(monotonic())
        elif event.name == "episode":
            key = (scenario, event.data["step"])
            self._started.setdefault(key, (monotonic(), event.data["done"]))
        elif event.name == "error":
            self._complaints.append(f"! {one_line(event.data['message'])}  {one_line(event.data['hint'])}")
        super().happened(event)

    def on_row_list_highlighted(self) -> None:
        """The row under the bar is the chosen scenario."""
        if name := self.query_one(RowList).key:
            self._pointed_at = self.reef.scenario = name
        self._tell()

    def _tell(self) -> None:
        name = self.query_one(RowList).key or ""
        state = self._states.get(name)
        self.query_one("#told", Static).update(plain(about(name, state, self.reef.now()) if state else ""))

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        self.reef.scenario = chosen.key
        self.reef.action_go("steps" if "steps" in self.reef.modes_there else "home")

    def _row(self, name: str, state: dict[str, Any]) -> Row:
        last = state["last_committed_step"] or {}
        decided = ((last.get("metrics") or {}).get("selection") or {}).get("outcome") or ""
        served = state.get("head") or {}
        head = f"{short_id(state['release_id'])[:8]} {age(served.get('recorded_at'), self.reef.now())}"
        running = state["step"]
        tone = "busy" if running or state["pending_reviews"] else ""
        growth = self._growth(name, running) if running else f"last {decided}" if decided else "idle"
        return Row(name, (name, head, self._spark(name), _waits(state), growth), tone)

    def _growth(self, scenario: str, running: dict[str, Any]) -> str:
        told = str(running["state"])
        if not running["total"]:
            return told
        told += f" {running['done']}/{running['total']}"
        began = self._started.get((scenario, running["step"]))
        if began and running["done"] > began[1]:
            pace = (monotonic() - began[0]) / (running["done"] - began[1])
            told += f" {(running['total'] - running['done']) * pace:.0f} s left"
        return told

    def _spark(self, scenario: str) -> str:
        """Records in each of the last slots of time."""
        now = monotonic()
        slots = Counter(int((now - at) // SLOT_S) for at in self._traffic.get(scenario, ()))
        counts = [slots[slot] for slot in reversed(range(SPARK_SLOTS))]
        top = max(counts)
        return (
            "".join(SPARK[count * (len(SPARK) - 1) // top] if count else " " for count in counts)
            if top
            else ""
        )


def _waits(state: dict[str, Any]) -> str:
    batch, counts = state["batch"], state["counts"]
    parts = [f"{state['pending_reviews']} to review"] if state["pending_reviews"] else []
    parts += [f"{counts['pending']} pending"] if counts["pending"] else []
    parts += [f"batch {batch['have']}/{batch['need']}"] if state["surface"] != "none" else []
    return ", ".join(parts)
