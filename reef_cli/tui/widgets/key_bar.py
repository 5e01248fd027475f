"""The line at the bottom: the keys that work here, as many as fit, and always how to see them all.

One widget for all of them: Textual's own footer makes one for each, which is most of what a screen costs.
"""

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from reef_cli.tui.actions import Action, actions_in, shown_key, works

ALWAYS = ("help", "quit")
GAP = "  "


class KeyBar(Static):
    """Shows the actions of `scope`; a click performs one."""

    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; background: $panel; padding: 0 1; }"

    def __init__(self, scope: str) -> None:
        super().__init__()
        self._scope = scope

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def render(self) -> Text:
        shown = [action for action in actions_in(self._scope) if action.footer and works(action, self.screen)]
        always = [action for action in shown if action.id in ALWAYS]
        text, room = Text(no_wrap=True), self.size.width - sum(map(_width, always))
        for action in shown:
            if action in always or (room := room - _width(action)) < 0:
                continue
            _append(text, action)
        for action in always:
            _append(text, action)
        return text


def _width(action: Action) -> int:
    return cell_len(f"{shown_key(action)} {action.footer}{GAP}")


def _append(text: Text, action: Action) -> None:
    where = "screen" if action.scope else "app"
    click = Style.from_meta({"@click": f"{where}.{action.id}"})
    text.append(shown_key(action), Style(bold=True) + click)
    text.append(f" {action.footer}", click).append(GAP)
