"""What the interface remembers from one run to the next: the theme.

Losing it costs a key press, so failures are silent.
"""

import json
import os
from pathlib import Path


def _file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "reef" / "tui.json"


def remembered_theme() -> str | None:
    """The theme that was chosen last; None where nothing can be read."""
    try:
        found = json.loads(_file().read_text("utf-8"))["theme"]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None
    return str(found)


def remember_theme(name: str) -> None:
    """Keep it for the next run, where that can be written."""
    try:
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"theme": name}) + "\n", "utf-8")
    except (OSError, RuntimeError):
        return
