"""Writing: feedback on an answer, or the answer that would have been right."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, TextArea


@dataclass(frozen=True, slots=True)
class Written:
    """`text` may be empty beside a score; `score` is None where none was given. A `draft` is not sent; an
    empty one is what is left of an earlier draft."""

    text: str
    score: float | None = None
    draft: bool = False


class WriteScreen(ModalScreen[Written | None]):
    """Ends with what was written, or None. Begins with a `draft` where there is one."""

    DEFAULT_CSS = """
    WriteScreen { align: center middle; }
    WriteScreen > Vertical {
        width: 76; max-width: 100%; height: 14; border: round $primary; background: $surface; padding: 0 1;
    }
    WriteScreen TextArea, WriteScreen TextArea:focus { height: 1fr; border: none; background: $boost; }
    WriteScreen Input, WriteScreen Input:focus { height: 1; border: none; padding: 0; background: $boost; }
    WriteScreen Label { color: $text-muted; }
    """
    BINDINGS = [
        Binding("ctrl+s", "save", "Send", priority=True),
        Binding("escape", "leave", "Leave", priority=True),
    ]

    def __init__(self, title: str, draft: str = "") -> None:
        super().__init__()
        self._title = title
        self._draft = draft

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield TextArea(self._draft, tab_behavior="focus")
            yield Input(placeholder="a score beside it, 0 bad to 1 good, may stay empty", type="number")
            yield Label("ctrl+s sends it, tab goes to the score, escape keeps it as a draft")

    def on_input_submitted(self) -> None:
        self.action_save()

    def action_leave(self) -> None:
        text = self.query_one(TextArea).text
        self._end(Written(text if text.strip() else "", draft=True))

    def action_save(self) -> None:
        text = self.query_one(TextArea).text.strip()
        said = self.query_one(Input).value
        try:
            score = float(said) if said else None
        except ValueError:
            self.notify("a score is a number, for example 0 or 0.5", severity="error", markup=False)
            return
        if score is not None and not 0 <= score <= 1:
            told = "a score is 0 (bad) to 1 (good), for example 0.7"
            self.notify(told, severity="error", markup=False)
            return
        self._end(Written(text, score, draft=not text and score is None))

    def _end(self, written: Written) -> None:
        """Nothing written is worth a word only where there was a draft."""
        nothing = written.draft and not written.text and not self._draft
        self.dismiss(None if nothing else written)
