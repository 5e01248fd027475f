"""Asking once before something happens: yes or no, or a line of text."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from reef_cli.tui.text import plain

KEYS = "[b]enter[/b] does it   [b]escape[/b] does not"
_BOX = """
    align: center middle;
"""


class ConfirmScreen(ModalScreen[bool]):
    """Says what will happen; `enter` or `y` does it, `escape` or `n` does not."""

    DEFAULT_CSS = f"""
    ConfirmScreen {{ {_BOX} }}
    ConfirmScreen > Vertical {{
        width: 66; max-width: 100%; height: auto; border: round $warning; background: $surface; padding: 0 1;
    }}
    """
    BINDINGS = [Binding("y,enter", "answer(True)", "Yes"), Binding("n,escape", "answer(False)", "No")]

    def __init__(self, title: str, what: str) -> None:
        super().__init__()
        self._title = title
        self._what = what

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield Static(plain(self._what))
            yield Label(f"\n{KEYS}", classes="keys")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class LineScreen(ModalScreen[str | None]):
    """Asks for one line of text; ends with it, or with None."""

    DEFAULT_CSS = f"""
    LineScreen {{ {_BOX} }}
    LineScreen > Vertical {{
        width: 66; max-width: 100%; height: auto; border: round $warning; background: $surface; padding: 0 1;
    }}
    """
    BINDINGS = [Binding("escape", "dismiss", "Close")]

    def __init__(self, title: str, what: str, placeholder: str = "") -> None:
        super().__init__()
        self._title = title
        self._what = what
        self._placeholder = placeholder

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield Static(plain(self._what))
            yield Input(placeholder=self._placeholder)
            yield Label(KEYS, classes="keys")

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        self.dismiss(submitted.value)
