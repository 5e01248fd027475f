"""Compare: the difference between two releases."""

from collections.abc import Iterable

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef_cli.tui.actions import bindings
from reef_cli.tui.changes import Changes, changes
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import short_id
from reef_cli.tui.widgets.diff_view import DiffView


class CompareScreen(ReefScreen):
    """On top of the history; `escape` goes back."""

    mode = "compare"
    BINDINGS = bindings("compare")
    DEFAULT_CSS = "#trouble { height: auto; color: $text-error; padding: 0 1; }"

    def __init__(self, scenario: str, older: str, newer: str, *, waits: bool = False) -> None:
        """`waits`: `newer` is a candidate that waits, so what counts is what promoting it would change."""
        super().__init__()
        self._scenario = scenario
        self._older = older
        self._newer = newer
        self._waits = waits

    def body(self) -> Iterable[Widget]:
        older = "what is served" if self._waits else short_id(self._older)
        yield Static(f" {older} .. {short_id(self._newer)}", markup=False)
        yield Static(id="trouble", markup=False)
        with VerticalScroll():
            yield DiffView()

    async def fetch(self) -> Changes:
        return await changes(self.reef.client, self._scenario, self._newer, self._older, waits=self._waits)

    def show(self, data: Changes) -> None:
        trouble = self.query_one("#trouble", Static)
        trouble.update(data.trouble)
        trouble.display = bool(data.trouble)
        self.query_one(DiffView).diff = data.diff

    def action_split(self) -> None:
        view = self.query_one(DiffView)
        view.split = not view.split

    def action_back(self) -> None:
        self.dismiss()
