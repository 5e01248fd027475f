"""Read the configuration: the file under flags, as one validated `Settings`.

The file is the one given (`-c`), else the `reef.toml` found upwards from the working folder, else
`<home>/reef.toml`, else there is none. TOML or YAML (by its ending), same keys. What the environment adds
where neither says anything is decided where it is used: the upstream in `daemon.runtimes`, the token in
`token.py`.
"""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from daemon.settings import overrides
from daemon.settings.check import check
from daemon.settings.home import Home
from daemon.settings.model import RecipeSection, Settings
from daemon.settings.overrides import Data, Flags
from daemon.settings.positions import KeyPath, Lines, toml_lines, yaml_document
from daemon.settings.where import Where, from_validation, shown
from reef.errors import ConfigError, ReefError
from reef.home import expanded, find_project_file

OptionsOf = Callable[[str], type[BaseModel]]
"""The model of a recipe's own options, by its `use`. Raises `ReefError` when there is no such recipe."""

NO_FLAGS = Flags()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and `where` each of them stands, for errors that only later checks can find."""

    settings: Settings
    where: Where


def find_config(given: Path | None, home: Home, cwd: Path | None = None) -> Path | None:
    """The configuration file that applies, or None.

    Raises:
        ConfigError: the one given is not there.
    """
    if given is not None:
        if not given.is_file():
            raise ConfigError(f"there is no file {given}", hint="write one with `reef init`")
        return given.absolute()
    found = find_project_file(cwd)
    return found or (home.config if home.config.is_file() else None)


def load_settings(
    file: Path | None,
    *,
    flags: Flags = NO_FLAGS,
    words: Sequence[str] = (),
    options_of: OptionsOf | None = None,
    cwd: Path | None = None,
) -> Loaded:
    """The settings of `file` (None: defaults) under `flags` and `words` (`--section.key VALUE ...`).

    `options_of` lets the keys that belong to a recipe be checked like all others; without it they are
    taken as they are. Relative paths count from the file's folder, those of flags from `cwd`.

    Raises:
        ConfigError: something in it is wrong; the message names the place.
    """
    data, lines = _read(file) if file else ({}, {})
    origins: dict[KeyPath, str] = {}
    for each in (*overrides.from_flags(flags, data), *overrides.parse_overrides(words)):
        overrides.apply(data, each, origins)
    where = Where(file, lines, origins)
    try:
        settings = Settings.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise from_validation(error, where, Settings) from error
    if options_of is not None:
        for name, recipe in settings.recipe.items():
            _check_options(name, recipe, options_of, where)
    settings = _with_paths(settings, file, origins, cwd or Path.cwd())
    check(settings, where)
    return Loaded(settings, where)


def _read(file: Path) -> tuple[Data, Lines]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {shown(file)}\n{error.strerror}", hint="check its permissions"
        ) from error
    text = _decoded(file, data)
    found, lines = _read_yaml(file, text) if file.suffix in (".yaml", ".yml") else _read_toml(file, text)
    if not isinstance(found, dict):
        raise ConfigError(f"{shown(file)} holds no sections", hint="start one with `reef:`")
    return found, lines


def _decoded(file: Path, data: bytes) -> str:
    """The text of a file, its lines ended by LF."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown(file)}:{line}: this is not UTF-8 text", hint="save it as UTF-8") from error


def _read_toml(file: Path, text: str) -> tuple[Any, Lines]:
    try:
        return tomllib.loads(text), toml_lines(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).rpartition(" (at ")
        line = place.removeprefix("line ").split(",")[0]
        at = line if line.isdigit() else len(text.splitlines()) or 1  # else at the end of the document
        raise ConfigError(f"{shown(file)}:{at}: {what or error}", hint="this is not valid TOML") from error


def _read_yaml(file: Path, text: str) -> tuple[Any, Lines]:
    try:
        data, lines = yaml_document(text)
        return (data if data is not None else {}), lines
    except yaml.MarkedYAMLError as error:
        at = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{shown(file)}{at}: {error.problem}", hint="this is not valid YAML") from error
    except yaml.reader.ReaderError as error:
        line, character = text.count("\n", 0, error.position) + 1, f"#x{error.character:04x}"
        raise ConfigError(
            f"{shown(file)}:{line}: the character {character} may not stand there",
            hint="this is not valid YAML",
        ) from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date that is none
        raise ConfigError(f"{shown(file)}: {error}", hint="this is not valid YAML") from error


def _check_options(name: str, recipe: RecipeSection, options_of: OptionsOf, where: Where) -> None:
    """Check the keys of `[recipe.NAME]` that belong to the recipe itself."""
    at = ("recipe", name)
    try:
        model = options_of(recipe.use)
    except ReefError as error:
        raise where.error((*at, "use"), error.message, hint=error.hint) from error
    try:
        model.model_validate_json(json.dumps(recipe.options(), default=str), strict=True)
    except ValidationError as error:
        raise from_validation(error, where, model, below=at, known=RecipeSection.model_fields) from error


def _with_paths(settings: Settings, file: Path | None, origins: Mapping[KeyPath, str], cwd: Path) -> Settings:
    """Every path absolute."""

    def resolved(path: Path | None, key: KeyPath) -> Path | None:
        if path is None:
            return None
        base = cwd if key in origins or file is None else file.parent
        return (base / expanded(path)).absolute()

    reef = settings.reef.model_copy(
        update={"model_path": resolved(settings.reef.model_path, ("reef", "model_path"))}
    )
    upstreams = tuple(
        upstream.model_copy(
            update={"api_key_file": resolved(upstream.api_key_file, ("upstream", index, "api_key_file"))}
        )
        for index, upstream in enumerate(settings.upstream)
    )
    recipes = {
        name: recipe.model_copy(update={"tasks": resolved(recipe.tasks, ("recipe", name, "tasks"))})
        for name, recipe in settings.recipe.items()
    }
    return settings.model_copy(
        update={"reef": reef, "upstream": upstreams, "recipe": recipes, "source": file}
    )
