"""Compare: the difference between two releases."""

from collections.abc import Iterable

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef_cli.tui.actions import bindings
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import short_id
from reef_cli.tui.widgets.diff_view import DiffView


class CompareScreen(ReefScreen):
    """On top of the history; `escape` goes back."""

    mode = "compare"
    BINDINGS = bindings("compare")

    def __init__(self, scenario: str, older: str, newer: str) -> None:
        super().__init__()
        self._scenario = scenario
        self._older = older
        self._newer = newer

    def body(self) -> Iterable[Widget]:
        yield Static(f" {short_id(self._older)} .. {short_id(self._newer)}", markup=False)
        with VerticalScroll():
            yield DiffView()

    async def fetch(self) -> str:
        return await self.reef.client.diff(self._scenario, self._older, self._newer)

    def show(self, data: str) -> None:
        self.query_one(DiffView).diff = data

    def action_split(self) -> None:
        view = self.query_one(DiffView)
        view.split = not view.split

    def action_back(self) -> None:
        self.dismiss()
