"""Help: the keys that work where it was asked for."""

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from reef_cli.tui.actions import actions_in, shown_keys


class HelpScreen(ModalScreen[None]):
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 74; max-width: 100%; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    """
    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close")]

    def __init__(self, scope: str) -> None:
        super().__init__()
        self._scope = scope

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2))
        table.add_row("[b]key[/b]", "[b]does[/b]")
        for action in actions_in(self._scope):
            table.add_row(shown_keys(action), f"{action.title}: {action.help}")
        table.add_row("up down enter", "Move and open. The mouse works too.")
        table.add_row("ctrl+p", "Every action by name.")
        with VerticalScroll() as box:
            box.border_title = f"Keys in {self._scope or 'reef'}"
            box.border_subtitle = "escape closes, up and down scroll"
            yield Static(table)
