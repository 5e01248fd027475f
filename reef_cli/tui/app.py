"""The app: modes, theme and wiring; nothing of what a screen shows."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import App
from textual.reactive import reactive

from reef_cli.tui.actions import bindings
from reef_cli.tui.live import Live
from reef_cli.tui.memory import remember_theme, remembered_theme
from reef_cli.tui.messages import Connected, Disconnected, Happened
from reef_cli.tui.palette import ReefCommands
from reef_cli.tui.screens import SCREENS, make_screen
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.screens.help import HelpScreen
from reef_cli.tui.screens.pick import PickScreen
from reef_cli.tui.widgets.row_list import RowList
from reef_cli.tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from reef.async_client import AsyncClient
    from reef_cli.tui.outbox import Held

DARK, LIGHT = "textual-dark", "textual-light"


class ReefApp(App[None]):
    """`connect` makes a client of the daemon; it is called again when the daemon was away. `now` tells what
    ages count from."""

    TITLE = "reef"
    COMMANDS = {ReefCommands}
    MODES = {mode: partial(make_screen, mode) for mode in SCREENS}
    DEFAULT_MODE = "home"
    BINDINGS = bindings("")
    CSS = """
    ReefScreen { overflow: hidden; }
    #errors { height: auto; color: $text-error; padding: 0 1; }
    """

    scenario: reactive[str] = reactive("")
    away: reactive[str] = reactive("")
    status: reactive[dict[str, Any]] = reactive(dict)

    def __init__(
        self, connect: "Callable[[], AsyncClient]", *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__()
        self.now = now
        self.live = Live(connect, self.post_message)
        self.away_since: datetime | None = None
        """When the daemon was found not to answer; None while it does."""
        self.unsent: list[Held] = []
        """Reports that could not be sent when the app ended."""

    @property
    def client(self) -> "AsyncClient":
        return self.live.client

    @property
    def modes_there(self) -> frozenset[str]:
        return frozenset(SCREENS)

    def on_mount(self) -> None:
        self.theme = LIGHT if remembered_theme() == LIGHT else DARK

    def on_ready(self) -> None:
        """Once the first paint is out, the daemon is asked."""
        self.call_after_refresh(self.follow)

    @work(group="live", exit_on_error=False)
    async def follow(self) -> None:
        await self.live.run()

    async def on_unmount(self) -> None:
        await self.live.close()

    # -- what the connection tells

    def on_connected(self, message: Connected) -> None:
        self.away, self.away_since = "", None
        self.adopt(message.status)
        for screen in self.shown():
            screen.reload()

    def on_disconnected(self, message: Disconnected) -> None:
        self.away_since = self.away_since or self.now()
        self.away = message.reason

    def on_happened(self, message: Happened) -> None:
        for screen in self.shown():
            screen.happened(message.event)

    def shown(self) -> list[ReefScreen]:
        """The screens of the mode in view, the one below a dialogue included."""
        return [screen for screen in self.screen_stack if isinstance(screen, ReefScreen)]

    def adopt(self, status: dict[str, Any]) -> None:
        """Take over what the daemon says of itself."""
        self.status = status
        found = status.get("scenarios") or {}
        if found and self.scenario not in found:  # the one with the latest traffic
            self.scenario = max(found, key=lambda name: found[name].get("last_record_at") or "")
        self.update_bars()

    def watch_away(self) -> None:
        self.update_bars()
        for screen in self.shown():
            screen.show_again()

    def watch_scenario(self) -> None:
        self.update_bars()
        for screen in self.shown():
            screen.settle()

    def update_bars(self) -> None:
        for screen in self.shown():
            for bar in screen.query(TopBar):
                bar.status, bar.away, bar.scenario = self.status, self.away, self.scenario
            for rows in screen.query(RowList):
                rows.away = bool(self.away)

    # -- actions that work everywhere

    def action_go(self, mode: str) -> None:
        """The list of a mode; what was opened on top of it earlier is closed."""
        self.switch_mode(mode)
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.call_after_refresh(self.update_bars)

    def action_help(self) -> None:
        shown = self.shown()
        self.push_screen(HelpScreen(shown[-1].mode if shown else ""))

    def action_pick_scenario(self) -> None:
        names = list(self.status.get("scenarios") or {})

        def picked(name: str | None) -> None:
            if name is not None:
                self.scenario = name

        self.push_screen(PickScreen("Scenario", names), picked)

    def action_toggle_dark(self) -> None:
        self.theme = LIGHT if self.theme == DARK else DARK
        remember_theme(self.theme)

    def action_help_quit(self) -> None:
        """`ctrl+c`, which copies where text is marked."""
        self.notify("q quits; the daemon goes on", title="Do you want to quit?")

    def perform(self, action: str, scope: str) -> None:
        """Run an action of the table, as its key would."""
        target = self.shown()[-1] if scope and self.shown() else self
        self.run_worker(self.run_action(action, target), exit_on_error=False)
