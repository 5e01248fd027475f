"""A unified diff, its lines coloured by file type, with the changed words marked; side by side on request."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rich.style import Style
from rich.table import Table
from rich.text import Span, Text
from textual.reactive import reactive
from textual.widgets import Static

from reef_cli.tui.text import safe

if TYPE_CHECKING:
    from rich.syntax import Syntax

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
CHANGED = "bold underline"
_DARK = {"+": "on #10301c", "-": "on #3a1517"}
_LIGHT = {"+": "on #d7f5df", "-": "on #fbdcdc"}


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


def changed_words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The spans (start, end) of two versions of a line in which they differ."""
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    before: list[tuple[int, int]] = []
    after: list[tuple[int, int]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for spans, pieces, start, end in ((before, left, a, b), (after, right, c, d)):
            if start < end:
                at = sum(map(len, pieces[:start]))
                spans.append((at, at + sum(map(len, pieces[start:end]))))
    return before, after


class Painter:
    """Lines of one diff as styled text, their syntax coloured by the type of the file they belong to.

    What was added or removed is told by its sign; colours only help.
    """

    def __init__(self, *, dark: bool = True) -> None:
        self._tones, self._theme = (_DARK, "ansi_dark") if dark else (_LIGHT, "ansi_light")
        self._syntax: Syntax | None = None

    def shared(self, line: Line) -> Text:
        """A line that both versions have, or a heading."""
        if line.kind == "file":
            self._syntax = syntax_of(line.text, self._theme)
            return Text(f"\n{line.text}", "bold")
        if line.kind == "hunk":
            return Text(line.text, "cyan")
        return Text("  ").append_text(self._code(line.text))

    def changed(self, old: Line | None, new: Line | None) -> tuple[Text | None, Text | None]:
        """A removed line and the one that replaces it, the words marked that differ; either may be None."""
        removed, added = changed_words(old.text, new.text) if old and new else ([], [])
        return self._signed(old, removed) if old else None, self._signed(new, added) if new else None

    def _signed(self, line: Line, marks: list[tuple[int, int]]) -> Text:
        code = self._code(line.text)
        for start, end in marks:
            code.stylize(CHANGED, start, end)
        text = Text(style=self._tones[line.kind]).append(f"{line.kind} ", "bold")
        return text.append_text(code)

    def _code(self, text: str) -> Text:
        if self._syntax is None or not text.strip():
            return Text(text)
        code = self._syntax.highlight(text)
        code.rstrip()
        code.style = ""
        code.spans = [Span(at, end, _ink(style)) for at, end, style in code.spans if isinstance(style, Style)]
        return code if code.plain == text.rstrip() else Text(text)


def _ink(style: Style) -> Style:
    """The style without its background, which would hide the tone of the line."""
    return Style(color=style.color, bold=style.bold, italic=style.italic, underline=style.underline)


@cache
def syntax_of(name: str, theme: str) -> "Syntax":
    """What colours the lines of a file of this name."""
    from rich.syntax import Syntax

    return Syntax("", Syntax.guess_lexer(name), theme=theme, background_color="default")


def unified(diff: str, *, dark: bool = True) -> Text:
    text, painter = Text(), Painter(dark=dark)
    for old, new in pairs(read(diff)):
        same = old is new and old is not None
        for line in (painter.shared(old),) if same and old else painter.changed(old, new):
            if line is not None:
                text.append_text(line).append("\n")
    return text


def side_by_side(diff: str, *, dark: bool = True) -> Table:
    painter = Painter(dark=dark)
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    for old, new in pairs(read(diff)):
        if old is new and old is not None:
            shown = painter.shared(old)
            table.add_row(shown, Text() if old.kind in ("file", "hunk") else shown)
        else:
            before, after = painter.changed(old, new)
            table.add_row(before or Text(), after or Text())
    return table


class DiffView(Static):
    """Shows `diff`; `split` puts the versions side by side."""

    DEFAULT_CSS = "DiffView { height: auto; padding: 0 1; }"

    diff: reactive[str] = reactive("", layout=True)
    split: reactive[bool] = reactive(False, layout=True)

    def render(self) -> Text | Table:
        if not self.diff.strip():
            return Text("nothing changes", "dim")
        shown = side_by_side if self.split else unified
        return shown(self.diff, dark=self.app.current_theme.dark)
