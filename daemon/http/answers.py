"""JSON answers of the `/reef/*` routes."""

import json
from typing import Any

import orjson
from starlette.responses import JSONResponse

DEEPEST = 200
"""Levels of what the fast writer does not take; many a reader stumbles over deeper ones."""


class Json(JSONResponse):
    """JSON that every client can read, whatever traffic it tells of: half a surrogate pair stays as its
    escape, a number that is none becomes null, and what is nested too deeply is left out."""

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content)
        except orjson.JSONEncodeError:
            said = json.dumps(_flatter(content, DEEPEST))
            plain = json.loads(said, parse_constant=lambda _: None)
            return json.dumps(plain, separators=(",", ":")).encode()


def _flatter(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return "[nested too deeply]"
    if isinstance(value, dict):
        return {key: _flatter(inner, levels - 1) for key, inner in value.items()}
    return [_flatter(inner, levels - 1) for inner in value]
