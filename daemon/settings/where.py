"""Errors of a configuration: each names file, line, section and key, and the nearest key that exists."""

import difflib
import json
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from daemon.scrub import MASK, is_key, masked
from daemon.settings.positions import KeyPath, Lines
from daemon.settings.wanted import wanted_of
from reef.errors import ConfigError

_SECRET = frozenset(("token", "api_key_env", "api_key_file"))
"""Settings whose wrong value may be a key, and is not shown."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where each value came from: a line of `file`, or a flag named in `origins`."""

    file: Path | None = None
    lines: Lines = field(default_factory=dict)
    origins: Mapping[KeyPath, str] = field(default_factory=dict)

    def error(self, path: KeyPath, message: str, *, hint: str = "", whole: bool = False) -> ConfigError:
        """The error for the value at `path`: `reef.toml:7 [reef]: message`. `whole`: `path` is a section, and
        the mistake is none of a single key."""
        return ConfigError(f"{self._place((*path, '') if whole else path)}{message}", hint=hint)

    def line(self, path: KeyPath) -> int:
        """The line of `path`, or of the nearest thing that encloses it; 0 where no file has it."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)

    def how_to_add(self, path: KeyPath) -> str:
        """The hint for a key that is missing at `path`: a line, or a flag where flags made what it is in."""
        if self._origin(path):
            return f"add --{'.'.join(map(str, path))} VALUE"
        return f"add a line `{path[-1]} = ...`"

    def _origin(self, path: KeyPath) -> str | None:
        return next(
            (self.origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.origins), None
        )

    def _place(self, path: KeyPath) -> str:
        if origin := self._origin(path):
            return f"{origin}: "
        section = _section(path, self.lines)
        line = self.line(path)
        name = f"{shown(self.file)}:{line}" if self.file and line else shown(self.file) if self.file else ""
        place = " ".join(part for part in (name, section) if part)
        return f"{place}: " if place else ""


def from_validation(
    error: ValidationError,
    where: Where,
    model: type[BaseModel],
    *,
    below: KeyPath = (),
    known: Collection[str] = (),
) -> ConfigError:
    """The first mistake (by line) that pydantic found, in our words.

    `below` is the path of what was validated, `known` further keys that are right there.
    """
    mistakes = [(where.line((*below, *each["loc"])), each) for each in error.errors(include_url=False)]
    _, first = min(mistakes, key=lambda pair: pair[0])
    inner: KeyPath = first["loc"]
    path = (*below, *inner)
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if first["type"] == "extra_forbidden":
        siblings = {*keys_of(model, inner[:-1]), *(known if len(inner) == 1 else ())}
        return unknown_key(where, path, key, siblings)
    if first["type"] == "missing":
        return where.error(path, f"`{key}` is missing", hint=where.how_to_add(path))
    wanted, hint = wanted_of(first, path)
    hint = hint or _example(model, inner) or "docs/reference/configuration.md lists the settings"
    given = "" if key in _SECRET else f", not {_brief(first['input'])}"
    whole = first["type"] in ("value_error", "assertion_error") and bool(keys_of(model, inner))
    return where.error(path, f"`{key}` {wanted}{given}", hint=hint, whole=whole)


def unknown_key(where: Where, path: KeyPath, key: str, known: Collection[str]) -> ConfigError:
    """`key` stands at `path`, where only `known` may."""
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(sorted(known))}"
    told = MASK.decode() if is_key(key) else key
    return where.error(path, f"`{told}` is not a setting", hint=hint)


def keys_of(model: type[BaseModel], path: KeyPath) -> set[str]:
    """The keys that may stand at `path` below `model`."""
    inner = _annotation(model, path)
    return set(inner.model_fields) if isinstance(inner, type) and issubclass(inner, BaseModel) else set()


def is_list(model: type[BaseModel], path: KeyPath) -> bool:
    """Whether a list belongs at `path` below `model`."""
    return get_origin(_annotation(model, path)) is tuple


def is_text(model: type[BaseModel], path: KeyPath) -> bool:
    """Whether a text belongs at `path` below `model`."""
    return _annotation(model, path) is str


def is_open(model: type[BaseModel], path: KeyPath) -> bool:
    """Whether a table belongs at `path` below `model` whose keys are the user's own."""
    return get_origin(_annotation(model, path)) is dict


def shown(file: Path) -> str:
    """A path as people write it: relative to the working folder when it lies below."""
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def _example(model: type[BaseModel], path: KeyPath) -> str:
    """A line that sets the key at `path` to its default, where it has one that says something."""
    inner = _annotation(model, path[:-1])
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)) or not path:
        return ""
    described = inner.model_fields.get(str(path[-1]))
    if described is None or not isinstance(described.default, str | int | float):
        return ""
    return f"for example `{path[-1]} = {json.dumps(described.default)}`"


def _annotation(model: type[BaseModel], path: KeyPath) -> Any:
    """The type of what belongs at `path`."""
    annotation: Any = model
    for segment in path:
        annotation = _descend(annotation, segment)
    return _plain(annotation)


def _descend(annotation: Any, segment: str | int) -> Any:
    annotation = _plain(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        described = annotation.model_fields.get(str(segment))
        return described.annotation if described else None
    arguments = get_args(annotation)
    return arguments[1 if get_origin(annotation) is dict else 0] if arguments else None


def _plain(annotation: Any) -> Any:
    """`X | None` as `X`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next((inner for inner in get_args(annotation) if inner is not type(None)), None)
    return annotation


def _section(path: KeyPath, lines: Lines) -> str:
    """The header over `path`: `[recipe.ready.gate]`, `[[upstream]]`, or nothing at the top."""
    table = path[:-1]
    while table and isinstance(path[len(table)], int):
        table = table[:-1]
    if not table:
        return ""
    name = ".".join(str(part) for part in table if isinstance(part, str))
    return f"[[{name}]]" if isinstance(table[-1], int) else f"[{name}]"


def _brief(value: Any) -> str:
    text = masked(json.dumps(value, default=str))
    return text if len(text) <= 40 else f"{text[:37]}..."
