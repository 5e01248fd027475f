"""Text from the wire made safe and fitting for a terminal.

Model output may hold escape sequences and direction marks; shown as they are they could move the cursor
or disguise what is written. Nothing from the wire is ever read as markup.
"""

from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.text import Text

_UNSAFE = {
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    *(0x200E, 0x200F, 0x061C),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
}
_SHOWN = dict.fromkeys(_UNSAFE, "�") | {0x0D: None}


def safe(value: object) -> str:
    """`value` as text without control characters; line breaks and tabs stay."""
    text = "" if value is None else str(value)
    return text.translate(_SHOWN).expandtabs(4)


def one_line(value: object) -> str:
    """`value` on one line."""
    return " ".join(safe(value).split())


def fit(text: str, width: int) -> str:
    """`text` in exactly `width` cells: cut with an ellipsis, or padded. Wide characters count as two."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    return set_cell_size(text, width)


def plain(value: object) -> Text:
    """Text that no markup in it can change."""
    return Text(safe(value), no_wrap=False)


def short_id(value: object) -> str:
    return safe(value)[:10]


def age(moment: str | None, now: datetime) -> str:
    """How long ago an RFC 3339 time was: `12 s`, `3 min`, `5 h`, `2 d`."""
    if not moment:
        return ""
    seconds = (now - datetime.fromisoformat(moment)).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(int(seconds), 0)} s"


def clock(moment: str | None) -> str:
    """The local time of day of an RFC 3339 time."""
    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S") if moment else ""


def number(value: float | None) -> str:
    """`1`, `0.25`, or nothing."""
    return "" if value is None else f"{value:g}"
