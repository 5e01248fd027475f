"""Runtimes: who answers and why, the storage, the budget, and which daemon this is."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from reef.money import dollars
from reef_cli.render.text import size
from reef_cli.tui.screens.base import ReefScreen
from reef_cli.tui.text import age, safe
from reef_cli.tui.widgets.row_list import NO_DAEMON

_STATES = {"ready": "green", "failed": "bold red", "down": "bold red"}


class RuntimesScreen(ReefScreen):
    mode = "runtimes"
    ages = True
    concerns: ClassVar[frozenset[str]] = frozenset({"record", "error"})
    DEFAULT_CSS = """
    RuntimesScreen VerticalScroll { height: 1fr; padding: 0 1; }
    """

    def body(self) -> Iterable[Widget]:
        with VerticalScroll():
            yield Static()

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(VerticalScroll).focus()

    async def fetch(self) -> dict[str, Any]:
        return await self.reef.client.status()

    def show(self, data: dict[str, Any]) -> None:
        if not self.reef.away:
            self.reef.adopt(data)
        self.show_again()

    def show_again(self) -> None:
        """While nobody answers, what was known of the daemon is not told as if it held."""
        told = Text()
        if since := self.reef.away_since:
            told.append(f"! {NO_DAEMON}\n", "bold")
            told.append(f"{safe(self.reef.away)}\nnobody answers since {since.astimezone():%H:%M:%S}\n")
        elif self._shown is not None:
            told = described(self._shown, self.reef.now())
        self.query_one("VerticalScroll Static", Static).update(told)


def described(status: dict[str, Any], now: datetime) -> Text:
    """The daemon's status as text."""
    text = Text()
    serving = status["serving"]
    _head(text, "Who answers")
    if serving.get("why"):
        text.append(f"{safe(serving['why'])}\n")
    if not serving["upstreams"]:
        text.append("! nobody: name one in reef.toml ([[upstream]]), or start with --upstream URL\n", "bold")
    for at, upstream in enumerate(serving["upstreams"]):
        text.append("\n")
        text.append(safe(upstream["name"]), "bold")
        text.append(f"  {safe(upstream['state'])}", _STATES.get(upstream["state"], "yellow"))
        text.append("  asked first\n" if at == 0 and len(serving["upstreams"]) > 1 else "\n")
        for name in ("kind", "model", "url", "detail", "hint"):
            _field(text, name, upstream.get(name))
        if waiting := upstream.get("waiting"):
            _field(text, "queue", f"{waiting} wait for their turn")
    storage, budget = status["storage"], status["budget"]
    _head(text, "\nStorage")
    _field(text, "kind", storage["kind"])
    _field(text, "size", f"{size(storage['bytes'])}, {storage['records']} records")
    _field(text, "state", "can be written" if storage["writable"] else "! cannot be written")
    _head(text, "\nBudget of growing")
    _field(text, "today", f"{dollars(budget['spent_usd'])} of {dollars(budget['usd_per_day'])}")
    _head(text, "\nDaemon")
    _field(text, "version", status["version"])
    _field(text, "home", status["home"])
    _field(text, "url", status["url"])
    _field(text, "process", f"{status['pid']}, up for {age(status['started_at'], now)}")
    if error := status.get("error"):
        _head(text, "\nNeeds a person")
        text.append(f"! {safe(error['message'])}\n  {safe(error.get('hint'))}\n", "bold")
    if hint := status.get("hint"):
        text.append(f"\n{safe(hint)}\n")
    return text


def _head(text: Text, words: str) -> None:
    text.append(f"{words}\n", "bold underline")


def _field(text: Text, name: str, value: object) -> None:
    if value:
        text.append(f"  {name:<9}", "dim")
        text.append(f"{safe(value)}\n")
