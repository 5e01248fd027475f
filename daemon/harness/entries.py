"""What each kind of entry holds, and bringing it into the one spelling a tree is stored in."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from daemon.harness.text import document, has_control_characters, plain, plain_json
from daemon.releases.paths import check_path
from reef.errors import Refused
from reef.ids import is_entry_id
from reef.tree import Entry, EntryKind

MAX_ENTRY_BYTES = 100_000
EXTENSIONS = {
    "typescript": "ts",
    "javascript": "js",
    "python": "py",
    "shell": "sh",
    "toml": "toml",
    "json": "json",
}
"""Languages of a `code_extension`, with the ending of their file."""

_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def _text(clean: Callable[[str], str]) -> AfterValidator:
    def check(value: str) -> str:
        if has_control_characters(value):
            raise ValueError("holds control characters")
        return clean(value)

    return AfterValidator(check)


def _required(clean: Callable[[str], str]) -> AfterValidator:
    def check(value: str) -> str:
        if not (cleaned := clean(value)).strip():
            raise Refused("empty", "holds no text")
        return cleaned

    return AfterValidator(check)


def _file_name(value: str) -> str:
    if not _FILE_NAME.fullmatch(value):
        raise ValueError("use 1-64 of a-z 0-9 _ -, starting with a letter or digit")
    return value


def _language(value: str) -> str:
    if value not in EXTENSIONS:
        raise ValueError(f"use one of {', '.join(EXTENSIONS)}")
    return value


Document = Annotated[str, _text(plain), _required(document)]
Said = Annotated[str, _text(plain), _required(plain)]
Line = Annotated[str, _text(lambda value: " ".join(plain(value).split()))]
Name = Annotated[str, AfterValidator(_file_name)]


class Config(BaseModel):
    """A kind's `config`. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Rules(Config):
    text: Document


class Skill(Config):
    name: Name
    description: Annotated[Line, _required(str)]
    text: Document
    files: dict[str, Annotated[str, _text(plain)]] = Field(default_factory=dict)


class AgentCommand(Config):
    name: Name
    description: Line = ""
    text: Document


class Values(Config):
    values: dict[str, JsonValue]


class CodeExtension(Config):
    name: Name
    adapter: Name
    language: Annotated[str, AfterValidator(_language)]
    text: Document


class Turn(Config):
    user: Said
    assistant: Said


class Examples(Config):
    turns: list[Turn] = Field(min_length=1, max_length=64)


MODELS: dict[EntryKind, type[Config]] = {
    "rules": Rules,
    "skill": Skill,
    "agent_command": AgentCommand,
    "config": Values,
    "code_extension": CodeExtension,
    "examples": Examples,
}


def check_entry(entry: Entry) -> Entry:
    """The entry in its stored spelling (Unicode NFC, LF, no empty options).

    Raises:
        Refused: rule `path` (an id or file name that is not legal), `invalid-config`, `empty` or
            `too-large`.
    """
    if not is_entry_id(entry.id):
        raise Refused("path", f"`{entry.id[:80]}` cannot be an entry's id", hint="use 1-64 of a-z 0-9 -")
    model = MODELS.get(entry.name)
    if model is None:
        raise Refused(
            "invalid-config", f"`{entry.name}` is not a kind of entry", hint=f"there are: {', '.join(MODELS)}"
        )
    try:
        checked = model.model_validate(dict(entry.config)).model_dump()
        size = len(json.dumps(checked, ensure_ascii=False, allow_nan=False).encode())
    except ValidationError as error:
        raise _explained(entry, error) from None
    except Refused as error:
        raise Refused(error.rule, f"entry `{entry.id}` {error.message}") from None
    except (ValueError, RecursionError):
        raise Refused("invalid-config", f"entry `{entry.id}` holds something that JSON cannot") from None
    if size > MAX_ENTRY_BYTES:
        raise Refused("too-large", f"entry `{entry.id}` holds {size} bytes, more than {MAX_ENTRY_BYTES}")
    if isinstance(checked.get("files"), dict):
        for path in checked["files"]:
            check_path(path)
    slim = {key: value for key, value in plain_json(checked).items() if not (key in _OPTIONAL and not value)}
    return replace(entry, config=cast(dict[str, Any], slim), disabled=bool(entry.disabled))


_OPTIONAL = ("files", "description")


def _explained(entry: Entry, error: ValidationError) -> Refused:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "config"
    return Refused(
        "invalid-config",
        f"entry `{entry.id}` ({entry.name}): `{where}`: {first['msg'].removeprefix('Value error, ').lower()}",
        hint=f"its config takes: {', '.join(MODELS[entry.name].model_fields)}",
    )
