"""Inbox: turns that nobody judged yet, and reports that wait or did not count."""

import asyncio
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef_cli.render.text import count
from reef_cli.tui.actions import bindings
from reef_cli.tui.conversation import Part, answered, prompt_of
from reef_cli.tui.inbox_words import (
    heading,
    held_for,
    named_by,
    report_detail,
    report_row,
    turn_head,
    turn_row,
)
from reef_cli.tui.outbox import HOLD_S
from reef_cli.tui.screens.record import RecordScreen
from reef_cli.tui.screens.sending import Sending
from reef_cli.tui.screens.write import WriteScreen, Written
from reef_cli.tui.text import plain
from reef_cli.tui.turns import wholes
from reef_cli.tui.widgets.row_list import Column, RowList
from reef_cli.tui.widgets.transcript import Transcript

WRITING_S = 24 * 3600.0
REPORT_STATES = ("pending", "ineligible", "eligible")


class InboxScreen(Sending):
    """Two lists, of turns and of reports, and what is under the cursor."""

    mode = "inbox"
    concerns: ClassVar[frozenset[str]] = frozenset({"record", "report", "verdict", "step"})
    CSS_PATH = "inbox.tcss"
    BINDINGS = bindings("inbox")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    def __init__(self) -> None:
        super().__init__()
        self._reports: dict[str, dict[str, Any]] = {}
        self._marked: set[str] = set()
        self._whole = False
        self._drafts: dict[str, str] = {}

    def body(self) -> Iterable[Widget]:
        yield Static(id="head")
        with Container(id="both"):
            yield RowList(
                Column("AGE", 6),
                Column("SCORE", 14),
                Column("PROMPT", share=2),
                Column("ANSWER"),
                id="turns",
                empty="no turn waits for feedback",
            )
            yield RowList(
                Column("AGE", 6),
                Column("STATE", 8),
                Column("SAYS", 20),
                Column("WHY"),
                id="reports",
                empty="no report waits, and all counted",
            )
            yield Transcript(id="turn")
            with VerticalScroll(id="report"):
                yield Static()

    def on_mount(self) -> None:
        super().on_mount()
        self._show_side(reports=False)

    # -- what is there

    async def fetch(self) -> Any:
        client, scenario = self.reef.client, self.reef.scenario or None
        turns, *reports = await asyncio.gather(
            self.turns.load(client, scenario),
            *(client.reports(scenario, state=state) for state in REPORT_STATES),
        )
        return turns, [report for answer in reports for report in answer["reports"]]

    def show(self, data: Any) -> None:
        _, reports = data
        newest = sorted(reports, key=lambda report: str(report["created_at"]), reverse=True)
        self._reports = {report["agent_record_id"]: report for report in newest}
        self.tell_what_became(newest)
        self._marked &= {turn["agent_record_id"] for turn in self.turns.listed}
        self.show_turns()
        self._show_detail()

    def show_turns(self) -> None:
        now, away = self.reef.now(), bool(self.reef.away)
        reports = [report_row(report, self.outbox, now, away=away) for report in self._reports.values()]
        self.query_one("#reports", RowList).show(reports)
        rows = [
            turn_row(
                turn,
                self.outbox,
                marked=turn["agent_record_id"] in self._marked,
                now=now,
                away=away,
            )
            for turn in self.turns.open
        ]
        self.query_one("#turns", RowList).show(rows)
        states = [report["state"] for report in self._reports.values()]
        waiting = away and bool(self.outbox)
        told = heading(self.turns, states, marked=len(self._marked), whole=self._whole, waiting=waiting)
        self.query_one("#head", Static).update(plain(told))

    def _show_side(self, *, reports: bool) -> None:
        for name in ("#reports", "#report"):
            self.query_one(name).display = reports
        for name in ("#turns", "#turn"):
            self.query_one(name).display = not reports
        self.query_one("#reports" if reports else "#turns").focus()

    def _turn(self) -> dict[str, Any] | None:
        """The turn under the cursor; None while the reports are shown."""
        rows = self.query_one("#turns", RowList)
        return self.turns.get(rows.key) if rows.display and rows.key else None

    def on_row_list_highlighted(self, moved: RowList.Highlighted) -> None:
        self._show_detail()
        rows = self.query_one("#turns", RowList)
        if moved.source is rows and self.turns.more and rows.cursor == len(rows.rows) - 1:
            self.turns.widen()
            self.settle()

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        """Open the turn, or the first exchange that a report names."""
        report = self._reports.get(chosen.key)
        found = chosen.key if report is None else next((pair["receipt"] for pair in report["pairs"]), None)
        if found:
            self.app.push_screen(RecordScreen(found))

    def _show_detail(self) -> None:
        report = self._reports.get(self.query_one("#reports", RowList).key or "")
        told = plain(report_detail(report)) if report else ""
        self.query_one("#report", VerticalScroll).query_one(Static).update(told)
        turn = self.turns.get(self.query_one("#turns", RowList).key or "")
        parts: list[Part] = []
        if turn:
            parts = [Part("user", "text", prompt_of(turn["payload"])), *answered(turn["payload"])]
        head = turn_head(turn, held_for(turn, self.outbox)) if turn else ()
        self.query_one("#turn", Transcript).show(parts, head)

    # -- saying something of a turn

    def action_sides(self) -> None:
        self._show_side(reports=not self.query_one("#reports").display)

    def action_score(self, score: float) -> None:
        self._say(self._targets(), score=score)

    def action_tenths(self, key: str) -> None:
        self.action_score(int(key) / 10)

    def action_feedback(self) -> None:
        self._write("Feedback", correction=False)

    def action_correction(self) -> None:
        self._write("The answer that would have been right", correction=True)

    def action_mark(self) -> None:
        if turn := self._turn():
            self._marked ^= {turn["agent_record_id"]}
            self.show_turns()
            self.query_one("#turns", RowList).action_move(1)

    def action_whole(self) -> None:
        turn = self._turn()
        if turn and not wholes(turn):
            hint = "send the header x-reef-tag-session or x-reef-tag-run with its requests"
            self.notify(hint, title="this turn names no session and no run", severity="error", markup=False)
            return
        self._whole = not self._whole and turn is not None
        self.show_turns()

    def action_only(self) -> None:
        self._whole = False
        self._marked.clear()
        self.show_turns()

    def action_take_back(self) -> None:
        references = set(self.outbox.take_back())
        turns = [
            turn["agent_record_id"]
            for turn in self.turns.open
            if references & {turn["agent_record_id"], wholes(turn)}
        ]
        told = f"took back what was said of {count(max(len(turns), 1), 'turn')}"
        self.notify(
            told if references else "nothing is held any more",
            severity="information" if references else "warning",
            markup=False,
        )
        self.show_turns()
        if turns:
            self.query_one("#turns", RowList).go_to(turns[0])
        self._show_detail()

    def _targets(self) -> dict[str, str]:
        """What the next word goes to: reference to scenario. On a report it is what that report names."""
        reports = self.query_one("#reports", RowList)
        if reports.display:
            report = self._reports.get(reports.key or "")
            found = dict.fromkeys(named_by(report), report["scenario"]) if report else {}
            if not found:
                self.notify("no turn is named here: r shows the turns", severity="warning", markup=False)
            return found
        at = self._turn()
        if at is None:
            self.notify("no turn is here to be judged", severity="warning", markup=False)
            return {}
        marked = [turn for turn in self.turns.open if turn["agent_record_id"] in self._marked]
        return {
            (self._whole and wholes(turn)) or turn["agent_record_id"]: turn["scenario"]
            for turn in marked or [at]
        }

    def _write(self, title: str, *, correction: bool) -> None:
        targets = self._targets()
        if not targets:
            return
        self.outbox.extend(targets, WRITING_S)
        name = " ".join([title, *sorted(targets)])

        def written(what: Written | None) -> None:
            self.outbox.extend(targets, HOLD_S)
            if what is None:
                return
            self._drafts.pop(name, None)
            if what.draft and not what.text:
                self.notify("draft thrown away", markup=False)
                return
            if what.draft:
                self._drafts[name] = what.text
                self.notify("kept as a draft: the same key opens it again", markup=False)
                return
            said: dict[str, Any] = {}
            if what.text:
                said["feedback"] = {"correction": what.text} if correction else what.text
            if what.score is not None:
                said["score"] = what.score
            self._say(targets, **said)

        several = f" on {len(targets)} turns" if len(targets) > 1 else ""
        self.app.push_screen(WriteScreen(title + several, self._drafts.get(name, "")), written)

    def _say(self, targets: dict[str, str], **said: Any) -> None:
        if not targets:
            return
        self.outbox.hold(targets.items(), **said)
        several = bool(self._marked)
        self._marked.clear()
        self._whole = False
        self.show_turns()
        if several:
            self._show_detail()
        elif self.query_one("#turns").display:
            self.query_one("#turns", RowList).action_move(1)
