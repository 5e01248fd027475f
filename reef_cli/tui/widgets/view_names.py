"""The names of a screen's views, the one in sight in brackets; a click on another turns to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from reef_cli.tui.text import one_line, plain


class ViewNames(Static):
    """One line: words before the names, the names, words behind them."""

    DEFAULT_CSS = """
    ViewNames { height: 1; padding: 0 1; background: $boost; }
    """

    @dataclass
    class Chosen(Message):
        """The name of a view was clicked."""

        name: str

    _names: Sequence[str] = ()
    _begin = 0

    def show(self, names: Sequence[str], shown: str, before: str = "", behind: str = "") -> None:
        self._names = names
        before = f"{one_line(before)}  " if before else ""
        self._begin = cell_len(before)
        told = "".join(f"[{name}]" if name == shown else f" {name} " for name in names)
        self.update(plain(f"{before}{told}{behind}"))

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        end = self._begin
        for name in self._names:
            start, end = end, end + cell_len(name) + 2
            if offset is not None and start <= offset.x < end:
                self.post_message(self.Chosen(name))
