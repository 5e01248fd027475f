"""Values that do not come from the file: `--section.key VALUE` and the short flags of `reef up`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from daemon.settings.model import Settings
from daemon.settings.positions import KeyPath
from daemon.settings.where import is_list, is_open, is_text
from reef.errors import ConfigError

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Override:
    """A value for `path`; `origin` is the flag that gave it, for errors."""

    path: KeyPath
    value: Any
    origin: str
    word: str | None = None
    """The value as it was written, where that was on a command line."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The short flags of `reef up` and `reef serve`."""

    port: int | None = None
    upstream: str | None = None
    api: tuple[str, ...] = ()
    model: str | None = None
    upstream_key_env: str | None = None
    no_auth: bool = False
    engine: str | None = None


def parse_overrides(words: Sequence[str]) -> tuple[Override, ...]:
    """`["--reef.port", "8900", "--growth.usd-per-day=2"]` as overrides.

    A value is read as a TOML literal where it is one, else as a string. In keys `-` equals `_`, except in
    names that are the user's own. A number picks an item of a list (`--upstream.0.model NAME`), or adds one
    where it is the next. A name with a dot in it stands in quotes, as in TOML.

    Raises:
        ConfigError: a word that is no `--section.key`, or a key without a value.
    """
    found: list[Override] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not (path := _path(name)):
            raise ConfigError(f"`{word}` is not understood", hint="settings are given as --section.key VALUE")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"`{name}` needs a value", hint=f"write {name} VALUE")
            value = rest.pop(0)
        found.append(Override(path, _literal(value), name, value))
    return tuple(found)


def from_flags(flags: Flags, data: Data) -> tuple[Override, ...]:
    """The short flags as overrides of `data`.

    `--upstream` replaces every configured upstream; `--api`, `--model` and `--upstream-key-env` belong to
    it, or to the first one that is configured.

    Raises:
        ConfigError: `--api` or `--upstream-key-env` with no upstream to belong to.
    """
    found: list[Override] = []
    if flags.port is not None:
        found.append(Override(("reef", "port"), flags.port, "--port"))
    if flags.engine is not None:
        found.append(Override(("engine", "kind"), flags.engine, "--engine"))
    if flags.no_auth:
        found.append(Override(("reef", "auth"), False, "--no-auth"))
    of_upstream = (
        ("api", "--api", list(flags.api) or None),
        ("model", "--model", flags.model),
        ("api_key_env", "--upstream-key-env", flags.upstream_key_env),
    )
    if flags.upstream is not None:
        found.append(Override(("upstream",), [{"name": "main", "base_url": flags.upstream}], "--upstream"))
    there = flags.upstream is not None or bool(data.get("upstream"))
    for key, flag, value in of_upstream:
        if value is None:
            continue
        if there:
            found.append(Override(("upstream", 0, key), value, flag))
        elif key == "model":
            found.append(Override(("reef", "model"), value, flag))
        else:
            raise ConfigError(f"`{flag}` says nothing without an upstream", hint="add --upstream URL")
    return tuple(found)


def apply(data: Data, override: Override, origins: dict[KeyPath, str]) -> None:
    """Put one value into `data`, making the tables and the next item of a list on the way. What it made or
    set is noted in `origins`.

    Raises:
        ConfigError: the path leads through something that is no table, or skips an item of a list.
    """
    place: Any = data
    path: KeyPath = ()
    override = _as_meant(override)
    for segment in override.path[:-1]:
        key = _key_in(place, path, segment, override)
        path = (*path, key)
        if isinstance(place, list) and key == len(place):
            place.append({})
            origins[path] = override.origin
        elif isinstance(place, dict) and key not in place:
            place[key] = [] if is_list(Settings, path) else {}
            origins[path] = override.origin
        place = place[key]
    last = _key_in(place, path, override.path[-1], override)
    if isinstance(place, list) and last == len(place):
        place.append(override.value)
    else:
        place[last] = override.value
    origins[(*path, last)] = override.origin


def _as_meant(override: Override) -> Override:
    """A text is the word itself, a list may be one word, and a name of the user's own may have dots in it."""
    path, value = override.path, override.value
    if override.word is None:
        return override
    for at in range(1, len(path)):
        if is_open(Settings, path[:at]) and is_text(Settings, path[: at + 1]):
            path = (*path[:at], ".".join(map(str, path[at:])))
            break
    if is_text(Settings, path):
        value = value if isinstance(value, str) else override.word
    elif is_list(Settings, path) and isinstance(value, str):
        value = [value]
    return replace(override, path=path, value=value)


def _key_in(place: Any, path: KeyPath, segment: str | int, override: Override) -> Any:
    """How `place`, which stands at `path`, calls what a flag calls `segment`."""
    if isinstance(place, list):
        if isinstance(segment, int) and segment <= len(place):
            return segment
        name = ".".join(map(str, path))
        if isinstance(segment, int):
            raise ConfigError(
                f"{override.origin}: `{name}` has no number {segment}",
                hint=f"its entries are counted from 0; a new one would be --{name}.{len(place)}",
            )
        raise ConfigError(
            f"{override.origin}: `{name}` is a list, and `{segment}` is no number of an entry",
            hint=f"write --{name}.0.{segment} for the first entry",
        )
    if isinstance(place, dict):
        name = str(segment)
        if name in place or is_open(Settings, path):
            return name
        alike = (key for key in place if str(key).replace("-", "_") == name.replace("-", "_"))
        return next(alike, name.replace("-", "_"))
    raise ConfigError(f"{override.origin}: there is no `{segment}` to set", hint="check the keys in the file")


def _path(word: str) -> KeyPath:
    """The keys of `--section.key`; none where it is something else. Names in quotes are read as TOML has
    them; others may have characters in them that it would not take."""
    name = word.removeprefix("--")
    keys = name.split(".")
    if '"' in name or "'" in name:
        try:
            keys, place = [], tomllib.loads(f"{name} = 0")
        except tomllib.TOMLDecodeError:
            return ()
        while isinstance(place, dict) and len(place) == 1:
            ((key, place),) = place.items()
            keys.append(key)
    if not word.startswith("--") or len(keys) < 2 or not all(keys):
        return ()
    return tuple(int(key) if key.isdecimal() else key for key in keys)


def _literal(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return value
