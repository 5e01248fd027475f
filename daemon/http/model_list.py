"""`GET /v1/models` and `/v1/models/{id}`, in OpenAI's or Anthropic's shape."""

from collections.abc import Sequence
from typing import Any

from orjson import dumps

from daemon.serving.call import Answer
from reef.errors import NotFound
from reef.runtime import Runtime

_TOLD = 10
"""How many models the hint names."""


def model_list(
    models: Sequence[tuple[Runtime, str]], model_id: str, configured: Sequence[str], *, anthropic: bool
) -> Answer:
    """The answer for all models, or the one named. Raises NotFound when there is none of that name, with what
    there is; where nobody lists any that is what is `configured`, patterns too."""
    rows = [_anthropic(name) if anthropic else _openai(runtime, name) for runtime, name in models]
    if not model_id:
        page: dict[str, Any] = {"object": "list", "data": rows}
        if anthropic:
            ends = (rows[0]["id"], rows[-1]["id"]) if rows else (None, None)
            page = {"data": rows, "has_more": False, "first_id": ends[0], "last_id": ends[1]}
        return _json(page)
    for row in rows:
        if row["id"] == model_id:
            return _json(row)
    known = [row["id"] for row in rows[:_TOLD]] + ["..."] * (len(rows) > _TOLD) or configured or ["none"]
    raise NotFound(f"no upstream offers the model `{model_id}`", hint=f"there is: {', '.join(known)}")


def _openai(runtime: Runtime, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": runtime.name}


def _anthropic(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def _json(value: Any) -> Answer:
    return Answer(200, [("content-type", "application/json")], dumps(value))
