"""One record: what was said, its facts, its story, and its bytes."""

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static, TextArea

from reef_cli.render.reports import feedback_text
from reef_cli.tui.actions import bindings
from reef_cli.tui.conversation import Part, answered, asked
from reef_cli.tui.inbox_words import report_detail
from reef_cli.tui.record_words import facts, raw_text, story
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import plain, safe
from reef_cli.tui.widgets.transcript import Transcript
from reef_cli.tui.widgets.view_names import ViewNames

VIEWS = ("conversation", "story", "received", "forwarded", "response")
_BODIES = {"received": "request", "forwarded": "forwarded", "response": "response"}


class RecordScreen(ReefScreen):
    """Shown on top of the screen it was opened from; `record` is a receipt or another name of a record."""

    mode = "record"
    concerns: ClassVar[frozenset[str]] = frozenset({"report", "verdict", "step"})
    BINDINGS = bindings("record")
    DEFAULT_CSS = """
    RecordScreen #facts { height: auto; padding: 0 1; color: $text-muted; }
    RecordScreen #story { height: 1fr; padding: 0 1; }
    RecordScreen TextArea, RecordScreen TextArea:focus { height: 1fr; border: none; padding: 0 1; }
    """

    def __init__(self, record: str, view: str = "conversation") -> None:
        super().__init__()
        self._receipt = record
        self._view = view
        self._record: dict[str, Any] = {}
        self._raw: dict[str, str] = {}
        self._report: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        yield ViewNames()
        yield Static(id="facts")
        yield Transcript()
        with VerticalScroll(id="story"):
            yield Static()
        yield TextArea(read_only=True, show_line_numbers=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.reef.update_bars()
        self._turn_to(self._view)

    async def fetch(self) -> dict[str, Any]:
        client = self.reef.client
        record = await client.explain(self._receipt)
        if self._view in _BODIES and not self._raw and record["request_type"] == "inference":
            whole = await client.record(record["agent_record_id"], record["scenario"], raw=True)
            self._raw = {name: raw_text(body) for name, body in whole["raw"].items()}
        if record["request_type"] == "report":
            name = record["agent_record_id"]
            found = await client.reports(record["scenario"], agent_record_id=name)
            reports = (report for report in found["reports"] if report["agent_record_id"] == name)
            self._report = next(reports, {})  # a recording may not hold it
        return record

    def show(self, data: dict[str, Any]) -> None:
        first = not self._record
        self._record = data
        self.query_one("#facts", Static).update(plain("\n".join(facts(data))))
        payload = data["payload"]
        if data["request_type"] == "inference":
            if first:
                self.query_one(Transcript).show([*asked(payload), *answered(payload)])
            self.query_one("#story Static", Static).update(plain(story(data)))
            told = self._raw.get(_BODIES.get(self._view, ""), "")
        else:
            told = json.dumps(payload, indent=2, ensure_ascii=False)
            said = report_detail(self._report) if self._report else feedback_text(payload)
            self.query_one(Transcript).show([Part(data["request_type"], "text", said)])
            self.query_one("#story Static", Static).update(plain(said))
        area = self.query_one(TextArea)
        if (shown := safe(told)) != area.text:
            area.load_text(shown)

    def _turn_to(self, view: str) -> None:
        self._view = view
        body, tale, area = self.query_one(Transcript), self.query_one("#story"), self.query_one(TextArea)
        body.display = view == "conversation"
        tale.display = view == "story"
        area.display = view in _BODIES
        self.query_one("#facts").display = view not in _BODIES
        self.query_one(ViewNames).show(VIEWS, view)
        shown = area if area.display else tale if tale.display else body
        shown.focus()
        shown.scroll_home(animate=False, immediate=True)
        self.reload()

    def on_view_names_chosen(self, chosen: ViewNames.Chosen) -> None:
        self._turn_to(chosen.name)

    def action_next_view(self) -> None:
        self._turn_to(VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)])

    def action_raw(self) -> None:
        self._turn_to("conversation" if self._view in _BODIES else "received")

    def action_story(self) -> None:
        self._turn_to("conversation" if self._view == "story" else "story")

    def action_leave(self) -> None:
        self.dismiss()
