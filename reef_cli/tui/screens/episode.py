"""One task's episodes: what each side answered, and why it scored so."""

from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from reef_cli.tui.text import number, one_line, safe


class EpisodeScreen(ModalScreen[None]):
    DEFAULT_CSS = """
    EpisodeScreen { align: center middle; }
    EpisodeScreen > VerticalScroll {
        width: 90%; height: 80%; border: round $primary; background: $surface; padding: 0 1;
    }
    """
    BINDINGS = [Binding("escape,enter", "dismiss", "Close")]

    def __init__(self, episodes: list[dict[str, Any]]) -> None:
        super().__init__()
        self._episodes = episodes

    def compose(self) -> ComposeResult:
        text = Text()
        for episode in self._episodes:
            side = "candidate" if episode["side"] == "candidate" else "served now"
            reused = ", reused" if episode["reused"] else ""
            text.append(
                f"{side}, run {episode['repeat'] + 1}{reused}: score {number(episode['score'])}\n", "bold"
            )
            text.append(f"{one_line(episode['why'])}\n", "italic")
            text.append(f"{safe(episode['answer']) or '(no answer)'}\n")
            text.append(f"receipt {safe(episode['receipt'])}\n\n", "dim")
        with VerticalScroll() as box:
            box.border_title = one_line(self._episodes[0]["task"]) if self._episodes else "episodes"
            box.border_subtitle = "escape closes, up and down scroll"
            yield Static(text)
