"""A conversation: who said what, thinking, tool calls and their results."""

from collections.abc import Iterable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from reef_cli.tui.conversation import Part
from reef_cli.tui.text import safe

PART_CHARS = 20_000
PARTS = 300

_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}


class Transcript(VerticalScroll):
    """Shows parts under a head. Very long ones are cut and say so; the raw view has all of it."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; padding: 0 1; }
    """

    _shown: Text | None = None

    def compose(self) -> ComposeResult:
        yield Static()

    def show(self, parts: Sequence[Part], head: Iterable[str] = ()) -> None:
        """Show it from its head. The same again moves nothing."""
        text = rendered(parts, head)
        if text == self._shown:
            return
        self._shown = text
        self.query_one(Static).update(text)
        self.call_after_refresh(self.scroll_home, animate=False, immediate=True)


def rendered(parts: Sequence[Part], head: Iterable[str] = ()) -> Text:
    """The parts as styled text; what they say is never read as markup."""
    text = Text()
    for line in head:
        text.append(safe(line) + "\n", "dim")
    if len(parts) > PARTS:
        text.append(f"... {len(parts) - PARTS} earlier parts are left out here\n", "dim italic")
    before = None
    for part in parts[-PARTS:]:
        if part.role != before:
            text.append(f"\n{safe(part.role)}\n", _STYLES.get(part.role, "bold"))
            before = part.role
        if part.kind in ("call", "result"):
            sign = "-> calls" if part.kind == "call" else "<- result of"
            text.append(f"{sign} {safe(part.name)}\n", "bold")
        elif part.kind == "thinking":
            text.append("(thinking)\n", "italic")
        style = {"thinking": "italic dim", "other": "dim"}.get(part.kind, "")
        said = f"[{part.text}]" if part.kind == "other" else part.text
        text.append(_cut(safe(said)) + "\n", style)
    return text


def _cut(text: str) -> str:
    if len(text) <= PART_CHARS:
        return text
    return f"{text[:PART_CHARS]}\n... {len(text) - PART_CHARS} more characters; the raw view has them"
