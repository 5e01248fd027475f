"""A table that stays quick with tens of thousands of rows: only the lines on the screen are ever drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from reef_cli.tui.text import fit

NO_DAEMON = "no daemon answers: start one with `reef up`; this screen finds it by itself"


@dataclass(frozen=True, slots=True)
class Column:
    """`width` in cells; with 0 it gets its `share` of what is left."""

    title: str
    width: int = 0
    share: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """`key` names what the row shows; `tone` is `good`, `bad`, `busy`, `quiet` or empty."""

    key: str
    cells: tuple[str, ...]
    tone: str = ""
    marked: bool = False


class RowList(ScrollView, can_focus=True):
    """Rows under a header line, with a cursor. The cursor stays on its key when the rows change."""

    COMPONENT_CLASSES = {"row--header", "row--cursor", "row--good", "row--bad", "row--busy", "row--quiet"}
    DEFAULT_CSS = """
    RowList { height: 1fr; background: $surface; overflow-x: hidden; }
    RowList > .row--header { color: $text-muted; text-style: bold; }
    RowList > .row--cursor { background: $primary 30%; text-style: bold; }
    RowList:focus > .row--cursor { background: $primary 60%; }
    RowList > .row--good { color: $text-success; }
    RowList > .row--bad { color: $text-error; }
    RowList > .row--busy { color: $text-warning; }
    RowList > .row--quiet { color: $text-muted; }
    """
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "jump(0)", "Top", show=False),
        Binding("end", "jump(-1)", "Bottom", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]

    rows: reactive[tuple[Row, ...]] = reactive((), layout=False)
    cursor: reactive[int] = reactive(0)
    away: reactive[bool] = reactive(False)
    """No daemon answers, so nobody knows whether there are rows."""

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row."""

        source: "RowList"
        key: str

        @property
        def control(self) -> "RowList":
            return self.source

    @dataclass
    class Chosen(Message):
        """Enter or a click on the row under the cursor."""

        source: "RowList"
        key: str

        @property
        def control(self) -> "RowList":
            return self.source

    def __init__(self, *columns: Column, id: str | None = None, empty: str = "nothing here") -> None:
        super().__init__(id=id)
        self._columns = columns
        self._empty = empty

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        return self.rows[self.cursor].key if self.rows else None

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows. The cursor follows its key; a key that is gone leaves it where it was."""
        key = self.key
        kept = next((at for at, row in enumerate(rows) if row.key == key), min(self.cursor, len(rows) - 1))
        self.rows = tuple(rows)
        self.set_reactive(RowList.cursor, max(kept, 0))
        self.virtual_size = Size(0, len(rows) + 1)
        self.refresh()
        if self.key != key and self.key is not None:
            self.post_message(self.Highlighted(self, self.key))

    def retitle(self, at: int, title: str) -> None:
        """Give the column `at` another title."""
        columns = [*self._columns]
        columns[at] = replace(columns[at], title=title)
        self._columns = tuple(columns)
        self.refresh()

    def go_to(self, key: str) -> None:
        """Put the cursor on this row, where it is listed."""
        self.cursor = next((at for at, row in enumerate(self.rows) if row.key == key), self.cursor)

    def watch_cursor(self, cursor: int) -> None:
        self.scroll_to_region(Region(0, cursor, 1, 2), animate=False)
        self.refresh()
        if self.key is not None:
            self.post_message(self.Highlighted(self, self.key))

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.rows) - 1))

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(self.size.height - 2, 1)

    def action_jump(self, to: int) -> None:
        self.cursor = to if to >= 0 else len(self.rows) - 1

    def action_choose(self) -> None:
        if self.key is not None:
            self.post_message(self.Chosen(self, self.key))

    def on_click(self, event: Click) -> None:
        at = event.y + self.scroll_offset.y - 1
        if not 0 <= at < len(self.rows):
            return
        if at == self.cursor:
            self.action_choose()
        self.cursor = at

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y == 0:
            style = base + self.get_component_rich_style("row--header")
            return self._strip([column.title for column in self._columns], width, style)
        at = y - 1 + self.scroll_offset.y
        if not self.rows and y >= 2:
            style = base + self.get_component_rich_style("row--quiet")
            told = wrap(NO_DAEMON if self.away else self._empty, max(width - 3, 1))
            line = told[y - 2] if y - 2 < len(told) else ""
            return Strip([Segment(fit(f"  {line}", width), style)], width)
        if at >= len(self.rows):
            return Strip.blank(width, base)
        row = self.rows[at]
        style = base
        if row.tone:
            style += self.get_component_rich_style(f"row--{row.tone}")
        if at == self.cursor:
            style += self.get_component_rich_style("row--cursor")
        return self._strip(row.cells, width, style, mark="*" if row.marked else " ")

    def _strip(self, cells: Sequence[str], width: int, style: Style, mark: str = " ") -> Strip:
        shown = [fit(cell, size) for cell, size in zip(cells, self._widths(width), strict=True) if size]
        return Strip([Segment(fit(mark + " ".join(shown), width), style)], width)

    def _widths(self, width: int) -> list[int]:
        """Cells for each column: fixed ones as they are, the rest shared."""
        fixed = sum(column.width for column in self._columns)
        shares = sum(column.share for column in self._columns if not column.width)
        left = max(width - 1 - fixed - (len(self._columns) - 1), 0)
        return [column.width or left * column.share // shares for column in self._columns]
