"""Steps: what growing did in a scenario, newest first."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from textual.widget import Widget

from reef_cli.tui.actions import bindings
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.screens.step import StepScreen
from reef_cli.tui.text import age, one_line
from reef_cli.tui.widgets.row_list import Column, Row, RowList

TONES = {"select": "good", "reject": "bad", "error": "bad", "inconclusive": "quiet", "skip": "quiet"}


class StepsScreen(ReefScreen):
    mode = "steps"
    ages = True
    concerns: ClassVar[frozenset[str]] = frozenset({"step", "release"})
    BINDINGS = bindings("steps")

    def body(self) -> Iterable[Widget]:
        yield RowList(
            Column("STEP", 4),
            Column("STATE", 13),
            Column("PROPOSER", 14),
            Column("AGE", 6),
            Column("DECISION"),
            id="steps",
            empty="no step yet: a step begins when enough reports may teach (see the inbox)",
        )

    async def fetch(self) -> list[dict[str, Any]]:
        if not self.reef.scenario:
            return []
        found = await self.reef.client.steps(self.reef.scenario)
        steps: list[dict[str, Any]] = found["steps"]
        return steps

    def show(self, data: list[dict[str, Any]]) -> None:
        self.query_one(RowList).show([_row(step, self.reef.now()) for step in data])

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        self.app.push_screen(StepScreen(self.reef.scenario, int(chosen.key)))

    def action_diff(self) -> None:
        """What the candidate of the step under the cursor changes."""
        if key := self.query_one(RowList).key:
            self.app.push_screen(StepScreen(self.reef.scenario, int(key), "diff"))


def _row(step: dict[str, Any], now: datetime) -> Row:
    state = step["outcome"] or step["state"]
    if step["state"] == "waiting":
        state = f"waits: {step['waits_for']}"
    tone = TONES.get(step["outcome"] or "", "busy" if step["state"] != "done" else "")
    told = one_line(step["decision"] or step["reason"] or "")
    cells = (str(step["step"]), state, step["proposer"] or "", age(step["started_at"], now), told)
    return Row(str(step["step"]), cells, tone)
