"""One step: its story, the candidate's diff, and its episodes task by task."""

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from reef_cli.tui.actions import bindings
from reef_cli.tui.changes import Changes, changes
from reef_cli.tui.deciding import Deciding
from reef_cli.tui.screens.episode import EpisodeScreen
from reef_cli.tui.step_story import episode_rows, story
from reef_cli.tui.text import plain
from reef_cli.tui.widgets.diff_view import DiffView
from reef_cli.tui.widgets.row_list import Column, RowList


class StepScreen(Deciding):
    """On top of the list of steps; `escape` goes back."""

    mode = "step"
    concerns: ClassVar[frozenset[str]] = frozenset({"step", "episode", "release"})
    BINDINGS = bindings("step")
    DEFAULT_CSS = """
    StepScreen ContentSwitcher { height: 1fr; }
    StepScreen #told { padding: 0 1; }
    #trouble { height: auto; color: $text-error; padding: 0 1; }
    """

    def __init__(self, scenario: str, step: int) -> None:
        super().__init__()
        self.scenario = scenario
        self.step = step
        self.data: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        with ContentSwitcher(initial="story"):
            with VerticalScroll(id="story"):
                yield Static(id="told")
            with VerticalScroll(id="diff"):
                yield Static(id="trouble")
                yield DiffView()
            yield RowList(
                Column("TASK", 20),
                Column("NOW", 5),
                Column("CAND", 5),
                Column("RESULT", 8),
                Column("WHY"),
                id="episodes",
                empty="no episode yet",
            )

    async def fetch(self) -> tuple[dict[str, Any], Changes]:
        step = await self.reef.client.step(self.scenario, self.step)
        candidate, base = step["candidate_id"], step["base_release_id"]
        if not candidate:
            return step, Changes("")
        return step, await changes(
            self.reef.client, self.scenario, candidate, base, waits=bool(step["pending"])
        )

    def show(self, data: tuple[dict[str, Any], Changes]) -> None:
        self.data, changed = data
        progress = ((self.reef.status.get("scenarios") or {}).get(self.scenario) or {}).get("step")
        self.query_one("#told", Static).update(plain(story(self.data, progress)))
        trouble = self.query_one("#trouble", Static)
        trouble.update(plain(changed.trouble))
        trouble.display = bool(changed.trouble)
        self.query_one(DiffView).diff = changed.diff
        self.query_one("#episodes", RowList).show(episode_rows(self.data["episodes"]))

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        episodes = [episode for episode in self.data["episodes"] if episode["task"] == chosen.key]
        self.app.push_screen(EpisodeScreen(episodes))

    def action_view(self, name: str) -> None:
        self.query_one(ContentSwitcher).current = name
        self.query_one(f"#{name}").focus()

    def action_split(self) -> None:
        view = self.query_one(DiffView)
        view.split = not view.split

    def action_promote(self) -> None:
        if self._waits_for_review():
            self.promote(self.scenario, self.data["candidate_id"], self.data["reason"] or "")

    def action_reject(self) -> None:
        if self._waits_for_review():
            self.reject(self.scenario, self.data["candidate_id"], self.data["reason"] or "")

    def action_run(self) -> None:
        if self.data.get("waits_for") == "money":
            what = "It waits for money. It runs now, whatever today's budget says."
        else:
            what = "It is run again from its start, within today's budget."
        self._confirmed(f"Run step {self.step}", what, self._run, f"step {self.step} runs")

    def action_cancel(self) -> None:
        what = "It ends without a release; its reports are not used again."
        self._confirmed(f"Cancel step {self.step}", what, self._cancel, f"step {self.step} ends")

    def action_back(self) -> None:
        self.dismiss()

    async def _run(self) -> None:
        await self.reef.client.run_step(self.scenario, self.step)

    async def _cancel(self) -> None:
        await self.reef.client.cancel_step(self.scenario, self.step)

    def _waits_for_review(self) -> bool:
        if self.data.get("pending"):
            return True
        self.notify("only a candidate that waits for review is decided here", severity="warning")
        return False
