"""The line at the top: which daemon, who answers, what needs a person."""

from typing import Any

from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from reef.money import dollars
from reef_cli.render.status import budget_words
from reef_cli.tui.text import one_line


class TopBar(Static):
    """Shows the daemon's state, the scenario in view and the newest error with its remedy."""

    DEFAULT_CSS = """
    TopBar { height: auto; min-height: 1; max-height: 3; background: $panel; padding: 0 1; }
    TopBar.-away { background: $error 40%; }
    """

    status: reactive[dict[str, Any]] = reactive(dict, layout=True)
    away: reactive[str] = reactive("", layout=True)
    scenario: reactive[str] = reactive("")
    screen_title: reactive[str] = reactive("")

    def watch_away(self, away: str) -> None:
        self.set_class(bool(away), "-away")

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"reef {self.screen_title}", "bold")
        if self.away:
            return text.append(f"  no daemon answers; trying again ...\n! {one_line(self.away)}")
        if self.scenario:
            text.append(f"  {one_line(self.scenario)}", "italic")
        for runtime in (self.status.get("serving") or {}).get("upstreams") or []:
            model = f" ({one_line(runtime['model'])})" if runtime.get("model") else ""
            text.append(f"  {one_line(runtime['name'])}{model} {runtime['state']}")
        if budget := self.status.get("budget"):
            text.append(f"  {dollars(budget['spent_usd'])} of {dollars(budget['usd_per_day'])} today")
        here = (self.status.get("scenarios") or {}).get(self.scenario) or {}
        if budgets := here.get("budgets"):
            fullest = max(budgets, key=lambda row: row["used"] / row["limit"])
            text.append(f"  budget {budget_words(fullest)}", "bold" if fullest["spent"] else "")
        if error := self.status.get("error"):
            text.append(f"\n! {one_line(error['message'])}", "bold")
            text.append(f"  {one_line(error.get('hint'))}")
        return text
