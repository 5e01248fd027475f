"""Picking one of a few: which scenario the screens show."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from reef_cli.tui.text import plain


class PickScreen(ModalScreen[str | None]):
    """Ends with the name that was picked, or None."""

    DEFAULT_CSS = """
    PickScreen { align: center middle; }
    PickScreen > OptionList { width: 50; max-width: 100%; max-height: 80%; border: round $primary; }
    """
    BINDINGS = [Binding("escape", "dismiss", "Close")]

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = names

    def compose(self) -> ComposeResult:
        options = OptionList(*(Option(plain(name), id=str(at)) for at, name in enumerate(self._names)))
        options.border_title = self._title
        options.border_subtitle = "enter picks, escape closes"
        yield options

    def on_option_list_option_selected(self, selected: OptionList.OptionSelected) -> None:
        self.dismiss(self._names[selected.option_index])
