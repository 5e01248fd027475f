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
from reef_cli.tui.widgets.view_names import ViewNames

VIEWS = ("story", "diff", "episodes")


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

    def __init__(self, scenario: str, step: int, view: str = "story") -> None:
        super().__init__()
        self._view = view
        self.scenario = scenario
        self.step = step
        self.data: dict[str, Any] = {}

    def body(self) -> Iterable[Widget]:
        yield ViewNames()
        with ContentSwitcher(initial=self._view):
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

    def on_mount(self) -> None:
        super().on_mount()
        self.action_view(self._view)

    async def fetch(self) -> tuple[dict[str, Any], Changes]:
        step = await self.reef.client.step(self.scenario, self.step)
        if step["state"] == "evaluating":  # how far it is, only the status tells
            self.reef.adopt(await self.reef.client.status())
        candidate, base = step["candidate_id"], step["base_release_id"]
        if not candidate:
            yet = "" if step["state"] == "done" else " yet"
            return step, Changes("", f"this step made no candidate{yet}: there is nothing to compare")
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
        self._tell()
        self.refresh_bindings()

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        episodes = [episode for episode in self.data["episodes"] if episode["task"] == chosen.key]
        self.app.push_screen(EpisodeScreen(episodes))

    def action_view(self, name: str) -> None:
        self._view = name
        self.query_one(ContentSwitcher).current = name
        self.query_one(f"#{name}").focus()
        self._tell()

    def _tell(self) -> None:
        """The line that stays in all views: which step, how it stands, and which view this is."""
        stands = self.data.get("outcome") or self.data.get("state") or "..."
        if self.data.get("state") == "waiting":
            stands = f"waits: {self.data['waits_for']}"
        columns = "  NOW served, CAND proposed" if self._view == "episodes" else ""
        before = f"step {self.step} of {self.scenario}: {stands}"
        self.query_one(ViewNames).show(VIEWS, self._view, before, columns)

    def on_view_names_chosen(self, chosen: ViewNames.Chosen) -> None:
        self.action_view(chosen.name)

    def action_split(self) -> None:
        view = self.query_one(DiffView)
        view.split = not view.split

    def action_promote(self) -> None:
        self.promote(self.scenario, self.data["candidate_id"], self.data["reason"] or "")

    def action_reject(self) -> None:
        self.reject(self.scenario, self.data["candidate_id"], self.data["reason"] or "")

    def action_run(self) -> None:
        if self.data.get("waits_for") == "money":
            what = "It waits for money. It runs now, whatever today's budget says."
        else:
            what = "It is run again from its start, within today's budget."
        self._confirmed(f"Run step {self.step}", what, self._run)

    def action_cancel(self) -> None:
        what = "It ends without a release; its reports are not used again."
        self._confirmed(f"Cancel step {self.step}", what, self._cancel)

    def action_back(self) -> None:
        self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the step's state allows has a key."""
        review = bool(self.data.get("pending"))
        state, money = self.data.get("state"), self.data.get("waits_for") == "money"
        allowed = {
            "promote": review,
            "reject": review,
            "run": money or self.data.get("outcome") == "error",
            "cancel": bool(state) and state not in ("done", "committing") and not review,
        }
        return allowed.get(action, True)

    async def _run(self) -> str:
        await self.reef.client.run_step(self.scenario, self.step)
        return f"step {self.step} runs"

    async def _cancel(self) -> str:
        await self.reef.client.cancel_step(self.scenario, self.step)
        return f"step {self.step} ends"
