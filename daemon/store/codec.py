"""JSON columns: canonical text in, values out."""

from typing import Any

import orjson


def dump(value: Any) -> str | None:
    """Canonical JSON (sorted keys) as text; None stays NULL."""
    return None if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def load(text: str | None, default: Any = None) -> Any:
    return default if text is None else orjson.loads(text)
