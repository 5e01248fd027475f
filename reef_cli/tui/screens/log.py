"""Log: the daemon's log lines as they come."""

from collections import deque
from collections.abc import Iterable
from typing import Any

from rich.text import Text
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import RichLog, Static

from reef.errors import ReefError
from reef_cli.tui.actions import bindings
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import plain, safe

POLL_S = 1.0
KEPT = 5000
LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3, "critical": 4}
SHOWN = ("debug", "info", "warning", "error")
"""What the filter goes through: each of these and worse."""
_STYLES = {"debug": "dim", "warning": "yellow", "error": "bold red", "critical": "bold red"}


class LogScreen(ReefScreen):
    """Follows while it is shown. Scrolling up holds it still; the bottom lets it go on."""

    mode = "log"
    BINDINGS = bindings("log")
    DEFAULT_CSS = """
    LogScreen #head { height: 1; padding: 0 1; color: $text-muted; }
    LogScreen RichLog { height: 1fr; padding: 0 1; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._level = SHOWN[0]
        self._boot: str | None = None
        self._poll: Timer | None = None

    def body(self) -> Iterable[Widget]:
        yield Static(id="head")
        yield RichLog(wrap=True, min_width=20, max_lines=KEPT, auto_scroll=False)

    def on_mount(self) -> None:
        super().on_mount()
        output = self.query_one(RichLog)
        output.focus()
        self.watch(output, "scroll_y", self._tell, init=False)

    async def fetch(self) -> list[dict[str, Any]]:
        boot = self.reef.status.get("started_at")
        if boot != self._boot:  # another start of the daemon counts from 1 again
            self._boot = boot
            self._lines.clear()
            self.query_one(RichLog).clear()
        after = self._lines[-1]["number"] if self._lines else 0
        lines: list[dict[str, Any]] = (await self.reef.client.logs(after=after, limit=2000))["lines"]
        return lines

    def show(self, data: list[dict[str, Any]]) -> None:
        known = self._lines[-1]["number"] if self._lines else 0
        new = [line for line in data if line["number"] > known]
        self._lines.extend(new)
        self._write(new)
        self._tell()
        self._again()

    def complain(self, error: ReefError, *, asked: bool = True) -> None:
        super().complain(error, asked=asked)
        self._again()

    def _again(self) -> None:
        if self._poll is not None:
            self._poll.stop()
        self._poll = self.set_timer(POLL_S, self.reload)

    def _write(self, lines: Iterable[dict[str, Any]]) -> None:
        output = self.query_one(RichLog)
        follows = output.is_vertical_scroll_end
        for line in lines:
            if LEVELS.get(line["level"], 0) >= LEVELS[self._level]:
                text = Text(safe(line["text"]), _STYLES.get(line["level"], ""))
                output.write(text, expand=True, scroll_end=follows)

    def _tell(self) -> None:
        follows = self.query_one(RichLog).is_vertical_scroll_end
        what = "all levels" if self._level == SHOWN[0] else f"{self._level} and worse"
        how = "follows" if follows else "holds still; end goes on"
        self.query_one("#head", Static).update(plain(f"{what} (v)  {how}"))

    def action_level(self) -> None:
        self._level = SHOWN[(SHOWN.index(self._level) + 1) % len(SHOWN)]
        output = self.query_one(RichLog)
        output.clear()
        output.scroll_home(animate=False, immediate=True)
        self._write(self._lines)
        output.scroll_end(animate=False)
        self._tell()
