"""What all screens share: the bar on top, the footer, and loading that never blocks.

A screen says what it needs (`fetch`), shows it (`show`), and names the events after which it is stale
(`concerns`). However many events come, it loads at most every `SETTLE_S`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from reef._sse import Event
from reef.errors import DaemonUnreachable, ReefError
from reef_cli.tui.widgets.key_bar import KeyBar
from reef_cli.tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from reef_cli.tui.app import ReefApp

SETTLE_S = 0.25
TICK_S = 5.0


class ReefScreen(Screen[None]):
    """One mode of the app."""

    mode: ClassVar[str] = ""
    concerns: ClassVar[frozenset[str]] = frozenset()

    ages: ClassVar[bool] = False
    """Whether it shows how old things are, which is told anew every `TICK_S`."""

    _settling: Timer | None = None
    _loading: int = 0
    """Loads under way: more than one while one takes another's place."""
    _stale: bool = False
    """Something happened since the load under way began."""
    _shown: Any = None

    @property
    def reef(self) -> "ReefApp":
        return cast("ReefApp", self.app)

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield from self.body()
        yield KeyBar(self.mode)

    def body(self) -> Iterable[Widget]:
        """The widgets between the bar and the footer."""
        return ()

    async def fetch(self) -> Any:
        """Ask the daemon for what this screen shows. Raises `ReefError`."""

    def show(self, data: Any) -> None:
        """Hand what was fetched down to the widgets."""

    def on_mount(self) -> None:
        self.query_one(TopBar).screen_title = self.mode
        self.reef.update_bars()
        if self.ages:
            self.set_interval(TICK_S, self.show_again)

    def on_screen_resume(self) -> None:
        if self.reef.status:  # else it is loaded when the daemon answers
            self.reload()

    def happened(self, event: Event) -> None:
        """An event came. A screen that shows events themselves overrides this too."""
        if event.name in self.concerns or event.name == "gap":
            self.settle()

    def settle(self) -> None:
        """Load soon, once, however often this is called."""
        if self._settling is None:
            self._settling = self.set_timer(SETTLE_S, self._settled)

    def _settled(self) -> None:
        """Load, unless a load is under way: events that come faster than the daemon answers must not cancel
        it each time."""
        self._settling = None
        if self._loading:
            self._stale = True
        else:
            self.reload()

    @work(exclusive=True, group="load", exit_on_error=False)
    async def reload(self) -> None:
        """Load now, in place of a load that is under way."""
        if not self.is_current:
            return
        self._stale = False
        self._loading += 1
        try:
            data = await self.fetch()
        except ReefError as error:
            self.complain(error, asked=False)
            return
        finally:
            self._loading -= 1
            if self._stale and self.is_running:
                self._stale = False
                self.settle()
        self._shown = data
        self.show(data)

    def show_again(self) -> None:
        """Show what was fetched last once more: time went on, or the daemon went away."""
        if self.is_current and self._shown is not None:
            self.show(self._shown)

    def complain(self, error: ReefError, *, asked: bool = True) -> None:
        """Say what went wrong. While no daemon answers, what nobody `asked` for (loading) is passed over: the
        bar says it."""
        if isinstance(error, DaemonUnreachable):
            if asked:
                hint = "do it again once the daemon is back"
                self.notify(hint, title="not done: no daemon answers", severity="error", markup=False)
        elif asked or not self.reef.away:
            self.notify(error.hint or "", title=error.message, severity="error", markup=False)
