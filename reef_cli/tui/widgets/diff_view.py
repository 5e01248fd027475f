"""A unified diff, coloured by line, with the changed words of a line marked; side by side on request."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text
from textual.reactive import reactive
from textual.widgets import Static

from reef_cli.tui.text import safe

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
ADDED, REMOVED, CHANGED = "green", "red", "bold underline"


@dataclass(frozen=True, slots=True)
class Line:
    """`kind` is one of `file`, `hunk`, `+`, `-`, ` `."""

    kind: str
    text: str


def read(diff: str) -> list[Line]:
    """The lines of a unified diff that say something to a person."""
    lines, header = [], False
    for raw in safe(diff).splitlines():
        if raw.startswith("diff --git "):
            header = True
            lines.append(Line("file", raw.rpartition(" b/")[2]))
        elif raw.startswith("@@"):
            header = False
            lines.append(Line("hunk", raw))
        elif header or raw.startswith("\\"):
            continue
        elif raw[:1] in ("+", "-"):
            lines.append(Line(raw[0], raw[1:]))
        else:
            lines.append(Line(" ", raw[1:]))
    return lines


def pairs(lines: list[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    """What was beside what is: removed lines next to the added ones that replace them."""
    at = 0
    while at < len(lines):
        if lines[at].kind not in "+-":
            yield lines[at], lines[at]
            at += 1
            continue
        block = []
        while at < len(lines) and lines[at].kind in ("+", "-"):
            block.append(lines[at])
            at += 1
        old = [line for line in block if line.kind == "-"]
        new = [line for line in block if line.kind == "+"]
        for number in range(max(len(old), len(new))):
            yield (old[number] if number < len(old) else None), (new[number] if number < len(new) else None)


def words(old: str, new: str) -> tuple[Text, Text]:
    """Two versions of a line with the words marked that differ."""
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    before, after = Text(style=REMOVED), Text(style=ADDED)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        style = "" if tag == "equal" else CHANGED
        before.append("".join(left[a:b]), style)
        after.append("".join(right[c:d]), style)
    return before, after


def unified(diff: str) -> Text:
    text = Text()
    for old, new in pairs(read(diff)):
        for line in _unified(old, new):
            text.append_text(line).append("\n")
    return text


def _unified(old: Line | None, new: Line | None) -> list[Text]:
    if old is new and old is not None:
        return [_plain(old)]
    if old is not None and new is not None:
        before, after = words(old.text, new.text)
        return [Text("- ", REMOVED).append_text(before), Text("+ ", ADDED).append_text(after)]
    if old is not None:
        return [Text(f"- {old.text}", REMOVED)]
    return [Text(f"+ {new.text}", ADDED)] if new is not None else []


def _plain(line: Line) -> Text:
    if line.kind == "file":
        return Text(f"\n{line.text}", "bold")
    if line.kind == "hunk":
        return Text(line.text, "cyan")
    return Text(f"  {line.text}")


def side_by_side(diff: str) -> Table:
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    for old, new in pairs(read(diff)):
        if old is new and old is not None:
            shown = _plain(old)
            table.add_row(shown, Text() if old.kind in ("file", "hunk") else shown)
        elif old is not None and new is not None:
            before, after = words(old.text, new.text)
            table.add_row(Text("- ", REMOVED).append_text(before), Text("+ ", ADDED).append_text(after))
        else:
            table.add_row(
                Text(f"- {old.text}", REMOVED) if old else Text(),
                Text(f"+ {new.text}", ADDED) if new else Text(),
            )
    return table


class DiffView(Static):
    """Shows `diff`; `split` puts the versions side by side."""

    DEFAULT_CSS = "DiffView { height: auto; padding: 0 1; }"

    diff: reactive[str] = reactive("", layout=True)
    split: reactive[bool] = reactive(False, layout=True)

    def render(self) -> Text | Table:
        if not self.diff.strip():
            return Text("nothing changes", "dim")
        return side_by_side(self.diff) if self.split else unified(self.diff)
