"""Traffic: the records as they come, and as far back as one scrolls."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from textual import work
from textual.widget import Widget
from textual.widgets import Input, Static

from reef.errors import ReefError
from reef_cli.tui.actions import bindings
from reef_cli.tui.contents import Contents
from reef_cli.tui.record_words import free_words, matcher, record_row, texts_of
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.screens.record import RecordScreen
from reef_cli.tui.tail import PAGE, Tail
from reef_cli.tui.text import plain
from reef_cli.tui.widgets.row_list import Column, Row, RowList

NEAR_END = 50
LOADED = 20_000
"""How many records a filter loads by itself."""
TYPING_S = 0.3


class TrafficScreen(ReefScreen):
    mode = "traffic"
    concerns: ClassVar[frozenset[str]] = frozenset({"record", "report"})
    BINDINGS = bindings("traffic")
    DEFAULT_CSS = """
    TrafficScreen #head { height: 1; padding: 0 1; color: $text-muted; }
    TrafficScreen Input, TrafficScreen Input:focus { height: 1; border: none; padding: 0 1; }
    TrafficScreen Input { display: none; }
    TrafficScreen Input.-open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._everywhere = False
        self._filter = ""
        self._tail = Tail()
        self._contents = Contents(self._tail)
        self._searching = False
        self._rows: dict[str, tuple[Row, dict[str, str]]] = {}
        """Rows and what a filter looks at, made once a record."""
        self._asking_older: Tail | None = None

    def body(self) -> Iterable[Widget]:
        yield Static(id="head")
        yield Input(placeholder="any text said in it, kind:turn, status:failed, model:..., session:...")
        yield RowList(
            Column("TIME", 8),
            Column("KIND", 8),
            Column("STATUS", 8),
            Column("MODEL"),
            Column("IN/OUT", 10),
            Column("COST", 8),
            Column("MS", 6),
            Column("RECEIPT", 12),
            id="records",
            empty="no record matches",
        )

    def on_mount(self) -> None:
        super().on_mount()
        rows = self.query_one(RowList)
        rows.focus()
        self.watch(rows, "scroll_y", self._look_further, init=False)

    async def fetch(self) -> Any:
        wanted = None if self._everywhere else self.reef.scenario or None
        if self._tail.scenario != wanted:
            self._tail, self._rows = Tail(wanted), {}
            self._contents = Contents(self._tail)
            self._searching = False
        self._contents.came(await self._tail.load_newest(self.reef.client))
        if not self._searching and self._contents.stale(free_words(self._filter)):
            self._search()

    def show(self, data: Any) -> None:
        matches = matcher(self._filter)
        known = [self._known(record) for record in self._tail.listed]
        if len(self._rows) > len(known) + PAGE:
            self._rows = {receipt: self._rows[receipt] for receipt in self._tail.receipts()}
        rows = [
            row
            for row, texts in known
            if not self._filter or matches(texts, partial(self._contents.hold, row.key))
        ]
        shown = self.query_one(RowList)
        was, scrolled = shown.cursor, shown.scroll_offset.y
        shown.show(rows)
        moved = shown.cursor - was
        if moved > 0 and (scrolled or shown.cursor >= shown.size.height - 1):
            shown.scroll_to(y=scrolled + moved, animate=False, immediate=True, force=True)
        self._tell(len(rows))
        self._look_further()

    def _known(self, record: dict[str, Any]) -> tuple[Row, dict[str, str]]:
        receipt = record["agent_record_id"]
        if receipt not in self._rows:
            self._rows[receipt] = record_row(record, with_scenario=self._everywhere), texts_of(record)
        return self._rows[receipt]

    def _tell(self, count: int) -> None:
        of = "all scenarios" if self._everywhere else f"scenario {self.reef.scenario}"
        loaded = len(self._tail.listed)
        known = f"{loaded} records" if self._tail.whole else f"the newest {loaded} records"
        searching = self._searching and not self._contents.whole(free_words(self._filter))
        reach = self._contents.reach(free_words(self._filter))
        if reach < loaded and not searching:
            known += f" (what was said: {reach:.0f})"
        told = f"{known} of {of} (a: {'one' if self._everywhere else 'all'})"
        if self._filter:
            told = f"{count} match `{self._filter}` in {told}"
            told += ", still searching ..." if searching else ""
        self.query_one("#head", Static).update(plain(told))

    # -- older ones

    def on_row_list_highlighted(self) -> None:
        self._look_further()

    def _look_further(self) -> None:
        """Load older records when the end of the list comes near; a filter looks only so far by itself."""
        shown = self.query_one(RowList)
        seen = max(shown.cursor, int(shown.scroll_offset.y) + shown.size.height)
        if self._tail.whole or seen < len(shown.rows) - NEAR_END:
            return
        if not self._filter or len(self._tail.listed) < LOADED:
            self._load_older()

    @work(group="older", exit_on_error=False)
    async def _load_older(self) -> None:
        tail = self._tail
        if self._asking_older is tail:
            return
        self._asking_older = tail
        try:
            await tail.load_older(self.reef.client)
        except ReefError as error:
            self.complain(error, asked=False)
            return
        finally:
            self._asking_older = None
        if tail is self._tail:
            self.show(None)

    # -- actions

    def action_everywhere(self) -> None:
        self._everywhere = not self._everywhere
        self.query_one(RowList).retitle(3, "SCENARIO MODEL" if self._everywhere else "MODEL")
        self.reload()

    def action_search(self) -> None:
        field = self.query_one(Input)
        field.add_class("-open")
        field.focus()

    def action_clear(self) -> None:
        self.query_one(Input).value = ""
        self._close_search()

    def on_input_changed(self, changed: Input.Changed) -> None:
        self._filter = changed.value.strip()
        self._search()
        self.show(None)

    def _search(self) -> None:
        words = free_words(self._filter)
        self._searching = bool(words)
        self._look_through(words, self._contents)

    @work(exclusive=True, group="search", exit_on_error=False)
    async def _look_through(self, words: list[str], contents: Contents) -> None:
        """Look for the filter's words in what was said, once no more of them is typed."""
        await asyncio.sleep(TYPING_S)
        try:
            while stale := contents.stale(words):
                async for _ in contents.look(self.reef.client, stale[0]):
                    self.show(None)
        except ReefError as error:
            self.complain(error, asked=False)
        self._searching = False
        self.show(None)

    def on_input_submitted(self) -> None:
        self._close_search()

    def _close_search(self) -> None:
        field = self.query_one(Input)
        field.set_class(bool(field.value), "-open")
        self.query_one(RowList).focus()

    def on_row_list_chosen(self, chosen: RowList.Chosen) -> None:
        self.app.push_screen(RecordScreen(chosen.key))
