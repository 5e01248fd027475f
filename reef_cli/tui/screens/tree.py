"""Tree: the served harness by entry, and as it is rendered."""

from collections.abc import Iterable
from typing import Any, ClassVar

from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef_cli.tui.actions import bindings
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import plain, safe
from reef_cli.tui.widgets.row_list import Column, Row, RowList


class TreeScreen(ReefScreen):
    mode = "tree"
    concerns: ClassVar[frozenset[str]] = frozenset({"release"})
    BINDINGS = bindings("tree")
    DEFAULT_CSS = """
    TreeScreen RowList { width: 40%; }
    TreeScreen VerticalScroll { width: 60%; border-left: solid $panel; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._harness: dict[str, Any] = {}
        self._rendered = False

    def body(self) -> Iterable[Widget]:
        with Horizontal():
            yield RowList(Column("ENTRY"), Column("KIND", 10), id="entries", empty="an empty harness")
            with VerticalScroll():
                yield Static(id="text")

    async def fetch(self) -> dict[str, Any]:
        return await self.reef.client.harness(self.reef.scenario) if self.reef.scenario else {}

    def show(self, data: dict[str, Any]) -> None:
        self._harness = data
        if self._rendered:
            rows = [Row(path, (path, "file")) for path in data.get("files") or {}]
        else:
            rows = [_row(entry) for entry in data.get("entries") or []]
        self.query_one(RowList).show(rows)
        self._tell()

    def on_row_list_highlighted(self) -> None:
        self._tell()

    def action_rendered(self) -> None:
        self._rendered = not self._rendered
        self.show(self._harness)

    def _tell(self) -> None:
        key = self.query_one(RowList).key
        text = ""
        if self._rendered:
            text = (self._harness.get("files") or {}).get(key or "", "")
        else:
            for entry in self._harness.get("entries") or []:
                if entry["id"] == key:
                    text = _text(entry)
        self.query_one("#text", Static).update(plain(text))


def _row(entry: dict[str, Any]) -> Row:
    kind = entry["name"] + (" off" if entry["disabled"] else "")
    return Row(entry["id"], (entry["id"], kind), "quiet" if entry["disabled"] else "")


def _text(entry: dict[str, Any]) -> str:
    """An entry's config as people read it."""
    config = entry["config"]
    if turns := config.get("turns"):
        return "\n\n".join(
            f"user: {safe(turn['user'])}\nassistant: {safe(turn['assistant'])}" for turn in turns
        )
    return "\n\n".join(
        f"{key}:\n{safe(value)}" if key != "text" else safe(value) for key, value in config.items()
    )
