"""History: the release chain, what each release changed, and deciding what is served."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Sparkline, Static

from reef_cli.tui.actions import bindings
from reef_cli.tui.deciding import Deciding
from reef_cli.tui.scenario_words import mean_score
from reef_cli.tui.screens.compare import CompareScreen
from reef_cli.tui.text import age, number, one_line, plain, short_id
from reef_cli.tui.widgets.row_list import Column, Row, RowList

Release = dict[str, Any]


class HistoryScreen(Deciding):
    mode = "history"
    ages = True
    concerns: ClassVar[frozenset[str]] = frozenset({"release", "step"})
    BINDINGS = bindings("history")
    DEFAULT_CSS = """
    HistoryScreen #plot { height: 2; margin: 0 1; }
    HistoryScreen #about { height: 6; border-top: solid $panel; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._releases: dict[str, Release] = {}
        self._scenario = ""
        self._marked: str | None = None
        self._everything = False

    def body(self) -> Iterable[Widget]:
        yield RowList(
            Column("STEP", 4),
            Column("RELEASE", 10),
            Column("", 8),
            Column("BY", 9),
            Column("AGE", 6),
            Column("SCORE", 5),
            Column("WHAT"),
            id="releases",
            empty="no release yet",
        )
        with Horizontal(id="plot"):
            yield Sparkline([], id="scores")
        with VerticalScroll(id="about", can_focus=False):
            yield Static(id="told")

    async def fetch(self) -> list[Release]:
        if self._scenario != self.reef.scenario:
            self._scenario, self._marked = self.reef.scenario, None
        if not self.reef.scenario:
            return []
        found = await self.reef.client.releases(self.reef.scenario)
        rows: list[Release] = found["releases"]
        return rows

    def show(self, data: list[Release]) -> None:
        shown = [row for row in data if self._everything or row["published"] or row["pending"]]
        self._releases = {str(row["step"]): row for row in shown}
        self.query_one(RowList).show(
            [_row(row, str(row["step"]) == self._marked, self.reef.now()) for row in shown]
        )
        published = [row for row in reversed(data) if row["published"]]
        means = [mean_score(row["metrics"] or {}) for row in published]
        scores = [mean for mean in means if mean is not None]
        self.query_one(Sparkline).data = scores
        self.query_one("#plot").display = len(scores) > 1
        self._tell()

    def on_row_list_highlighted(self) -> None:
        self._tell()

    def on_row_list_chosen(self) -> None:
        self.action_diff()

    def action_diff(self) -> None:
        """What the release under the cursor changed."""
        row = self._here_with_content()
        if row is not None:
            parent = row["parent_release_id"] or row["release_id"]
            self.app.push_screen(
                CompareScreen(self.reef.scenario, parent, _id(row), waits=bool(row["pending"]))
            )

    def action_mark(self) -> None:
        """Mark one release, then another: their difference is shown."""
        row = self._here_with_content()
        if row is None:
            return
        step = str(row["step"])
        if self._marked in (None, step):
            self._marked = None if self._marked == step else step
            if self._marked:
                self.notify("now mark the second")
            self.reload()
            return
        first = self._releases.get(self._marked or "")
        self._marked = None
        self.reload()
        if first is not None:
            older, newer = sorted((first, row), key=lambda each: each["step"])
            self.app.push_screen(CompareScreen(self.reef.scenario, _id(older), _id(newer)))

    def action_everything(self) -> None:
        self._everything = not self._everything
        self.reload()

    def action_check_out(self) -> None:
        if (row := self._here()) is not None:
            self.check_out(self.reef.scenario, row["release_id"], row["message"])

    def action_promote(self) -> None:
        if (row := self._here()) is not None:
            self.promote(self.reef.scenario, row["candidate_id"], row["message"])

    def action_reject(self) -> None:
        if (row := self._here()) is not None:
            self.reject(self.reef.scenario, row["candidate_id"], row["message"])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what the row under the cursor allows has a key."""
        if action not in ("check_out", "promote", "reject"):
            return True
        row = self._here() if self.is_mounted else None
        if row is None:
            return False
        return bool(row["published"] and not row["current"] if action == "check_out" else row["pending"])

    def _here_with_content(self) -> Release | None:
        row = self._here()
        if row is not None and not _id(row):
            self.notify(f"step {row['step']} made no release: there is nothing to compare")
            return None
        return row

    def _here(self) -> Release | None:
        return self._releases.get(self.query_one(RowList).key or "")

    def _tell(self) -> None:
        row = self._here()
        self.query_one("#told", Static).update(plain(about(row) if row else ""))
        self.refresh_bindings()


def _id(row: Release) -> str:
    """The release or candidate of a row; empty where the step made none."""
    return str((row["release_id"] if row["published"] else row["candidate_id"]) or "")


def _state(row: Release) -> str:
    if row["current"]:
        return "served"
    if row["pending"]:
        return "waits"
    return "" if row["published"] else "not out"


def _row(row: Release, marked: bool, now: datetime) -> Row:
    tone = "good" if row["current"] else "busy" if row["pending"] else "" if row["published"] else "quiet"
    tags = "".join(f"[{tag}] " for tag in row["tags"])
    cells = (
        str(row["step"]),
        short_id(_id(row)),
        _state(row),
        row["operation"],
        age(row["recorded_at"], now),
        number(mean_score(row["metrics"] or {})),
        one_line(f"{tags}{row['message']}"),
    )
    return Row(str(row["step"]), cells, tone, marked)


def about(row: Release) -> str:
    """One release in a few lines."""
    metrics = row["metrics"] or {}
    made = f"{_id(row)}  content {short_id(row['content_id'])}" if _id(row) else "no release"
    lines = [f"step {row['step']}: {made}", one_line(row["message"])]
    reason = one_line((metrics.get("selection") or {}).get("reason"))
    if reason and reason not in lines[1]:
        lines.append(reason)
    if row["rollback_target_release_id"]:
        lines.append(f"serves the content of {short_id(row['rollback_target_release_id'])} again")
    return "\n".join(lines)
