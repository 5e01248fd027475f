"""What should stand where a value of the wrong kind does: pydantic's findings in our words."""

import json
import re
from typing import TYPE_CHECKING

from daemon.settings.positions import KeyPath

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_KINDS = {
    "tuple_type": "must be a list",
    "model_type": "must be a section",
    "dict_type": "must be a section",
}
_SUBJECT = re.compile(r"^(Input|String|Tuple|List|Dictionary|Value|Keys) should ")
_PREFIX = re.compile(r"\^([\w/:.-]+)")
"""A pattern that asks for a beginning and nothing else."""


def wanted_of(error: "ErrorDetails", path: KeyPath) -> tuple[str, str]:
    """What goes on after the key that stands at `path` ("must be a list"), and a hint where the kind of
    mistake gives one."""
    kind, message, given = error["type"], error["msg"], error["input"]
    if kind in _KINDS:
        return _KINDS[kind], _as_section(path, given, several=kind == "tuple_type")
    context = error.get("ctx") or {}
    if kind == "string_pattern_mismatch":
        beginning = _PREFIX.fullmatch(context["pattern"])
        return f"must begin with `{beginning[1]}`" if beginning else f"must match `{context['pattern']}`", ""
    if kind in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "must not be empty", ""
    if kind in ("value_error", "assertion_error"):
        return f"is wrong: {message.partition(', ')[2]}", ""
    return _SUBJECT.sub("must ", message), ""


def _as_section(path: KeyPath, given: object, *, several: bool) -> str:
    """How to write what holds other values."""
    name = ".".join(part for part in path if isinstance(part, str))
    if not several:
        section = f"[[{name}]]" if isinstance(path[-1], int) else f"[{name}]"
        return f"write {section}, with its keys in the lines below"
    if isinstance(given, dict):
        return f"write [[{name}]] with two brackets: there may be several"
    return f"write {path[-1]} = [{json.dumps(given, default=str)}]"
