"""Task files: reading TOML (`[[task]]`) or JSON lines, with errors that name file, line, task and key."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from daemon.evaluation.evaluators import load_evaluator, nearest
from daemon.harness.text import comparable
from reef.errors import ConfigError
from reef.feedback import text_of
from reef.tasks import Split, Task

MIN_REVEALING_CHARS = 20
"""An expected answer of this length or more gives a gate task away."""

_HINT = "`reef init` writes a task file to compare with"
_HEADER = re.compile(r"\s*\[\[\s*task\s*\]\]")
_TOML_AT = re.compile(r"\(at line (\d+)")
Row = tuple[str, dict[str, Any]]
"""Where a task stands (`tasks.toml:12`), and its keys."""


class _Keys(BaseModel):
    """The keys of a task that are not its evaluator's."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: str = Field(pattern=r"^[A-Za-z0-9._:/-]{1,128}$")
    prompt: str | None = Field(None, min_length=1)
    messages: list[dict[str, Any]] | None = Field(None, min_length=1)
    evaluator: str
    split: Split = "train"
    group: str | None = Field(None, min_length=1)
    weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    timeout_s: float = Field(120.0, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(None, ge=1)
    must_pass: bool = False


_KNOWN = tuple(_Keys.model_fields)


def load_tasks(path: Path) -> tuple[Task, ...]:
    """The tasks of a `.toml` or `.jsonl` file, in its order.

    Raises:
        ConfigError: it cannot be read, or a task in it is wrong.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot read the tasks in {path}: {error.strerror}", hint="`reef init` writes an example"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: this is not UTF-8 text", hint="save it as UTF-8") from None
    match path.suffix:
        case ".toml":
            rows = _toml_rows(path, text)
        case ".jsonl" | ".ndjson":
            rows = list(_json_rows(path, text))
        case _:
            raise ConfigError(f"{path}: not a task file", hint="tasks are read from .toml or .jsonl files")
    try:
        return parse_tasks(rows)
    except ConfigError as error:
        raise ConfigError(error.message, hint=error.hint or _HINT) from None


def parse_tasks(rows: Iterable[Row]) -> tuple[Task, ...]:
    """Check tasks that were read already. Raises `ConfigError`."""
    found: dict[str, Task] = {}
    places: dict[str, str] = {}
    for where, keys in rows:
        task = _task(where, keys)
        if task.id in found:
            raise ConfigError(f"{where}: task `{task.id}` is there already, at {places[task.id]}")
        found[task.id], places[task.id] = task, where
    return tuple(found.values())


def leaks(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Texts that a candidate may not contain: gate prompts and long expected answers of gate tasks."""
    gate = [task for task in tasks if task.split == "gate"]
    answers = (text for task in gate for text in load_evaluator(task).reveals())
    return (
        *filter(None, map(prompt_of, gate)),
        *(text for text in answers if len(" ".join(text.split())) >= MIN_REVEALING_CHARS),
    )


def prompt_of(task: Task) -> str:
    """The text of the last user message of a task."""
    users = [message for message in task.messages if message.get("role") == "user"]
    return text_of(users[-1].get("content")) if users else ""


def is_gate_prompt(tasks: Sequence[Task], text: str) -> bool:
    """Whether `text` is, as words, the prompt of a gate task."""
    words = comparable(text)
    return any(comparable(prompt_of(task)) == words for task in tasks if task.split == "gate")


def _task(where: str, keys: dict[str, Any]) -> Task:
    name = keys.get("id")
    place = f"{where}: task `{name}`" if isinstance(name, str) else where
    try:
        read = _Keys.model_validate(keys)
    except ValidationError as error:
        raise _explained(place, keys, error) from None
    extra = read.model_extra or {}
    if (read.prompt is None) == (read.messages is None):
        typo = next((hint for key in extra if (hint := _meant(key, ("prompt", "messages")))), "")
        raise ConfigError(f"{place}: give either `prompt` or `messages`", hint=typo)
    messages = read.messages or [{"role": "user", "content": read.prompt}]
    if any(not isinstance(message.get("role"), str) for message in messages):
        raise ConfigError(f"{place}: `messages`: each needs a `role` and a `content`")
    task = Task(
        id=read.id,
        messages=tuple(messages),
        evaluator=read.evaluator,
        arguments=extra,
        split=read.split,
        group=read.group,
        weight=read.weight,
        timeout_s=read.timeout_s,
        max_tokens=read.max_tokens,
        must_pass=read.must_pass,
    )
    try:
        load_evaluator(task)
    except ConfigError as error:
        typo = next(
            (hint for key in extra if f"`{key}`" in error.message and (hint := _meant(key, _KNOWN))), ""
        )
        raise ConfigError(f"{place}: {error.message}", hint=typo or error.hint) from None
    return task


def _meant(key: str, names: Sequence[str]) -> str:
    hint = nearest(key, names)
    return hint if hint.startswith("did") else ""


def _explained(place: str, keys: dict[str, Any], error: ValidationError) -> ConfigError:
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0])
    if first["type"] == "missing":
        typo = next(
            (name for name in keys if name not in _KNOWN and nearest(name, (key,)).startswith("did")), None
        )
        if typo:
            return ConfigError(f"{place}: `{typo}` is not a key of a task", hint=f"did you mean `{key}`?")
        return ConfigError(f"{place}: `{key}` is missing")
    return ConfigError(f"{place}: `{key}`: {first['msg'].lower()}")


def _toml_rows(path: Path, text: str) -> list[Row]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_AT.search(str(error))
        line = found[1] if found else len(text.splitlines())  # else at the end of the document
        raise ConfigError(f"{path}:{line}: not TOML: {error}", hint=_HINT) from None
    if strange := next((key for key in data if key != "task"), None):
        raise ConfigError(f"{path}: `{strange}` is not a key here", hint="tasks are written as `[[task]]`")
    tasks = data.get("task", [])
    if not isinstance(tasks, list):
        raise ConfigError(f"{path}: `task` must be a list", hint="write `[[task]]`, with two brackets")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    # a header inside a multi-line text would shift every number: then no line is named
    places = [f":{line}" for line in lines] if len(lines) == len(tasks) else [""] * len(tasks)
    return [(f"{path}{place}", task) for place, task in zip(places, tasks, strict=True)]


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            keys = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{where}: not JSON: {error.msg} (column {error.colno})", hint=_HINT) from None
        if not isinstance(keys, dict):
            raise ConfigError(f"{where}: a task must be an object", hint=_HINT)
        yield where, keys
