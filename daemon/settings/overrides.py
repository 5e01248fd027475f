"""Values that do not come from the file: `--section.key VALUE` and the short flags of `reef up`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daemon.settings.positions import KeyPath
from reef.errors import ConfigError

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Override:
    """A value for `path`; `origin` is the flag that gave it, for errors."""

    path: KeyPath
    value: Any
    origin: str


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

    A value is read as a TOML literal where it is one, else as a string. In keys `-` equals `_`; a number
    picks an item of a list (`--upstream.0.model NAME`).

    Raises:
        ConfigError: a word that is no `--section.key`, or a key without a value.
    """
    found: list[Override] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--") or "." not in name or not all(name[2:].split(".")):
            raise ConfigError(f"`{word}` is not understood", hint="settings are given as --section.key VALUE")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"`{name}` needs a value", hint=f"write {name} VALUE")
            value = rest.pop(0)
        path = tuple(int(part) if part.isdigit() else part for part in name[2:].split("."))
        found.append(Override(path, _literal(value), name))
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


def apply(data: Data, override: Override) -> KeyPath:
    """Put one value into `data`, making the tables on the way. Returns the path it went to.

    Raises:
        ConfigError: the path leads through something that is no table, or to a list item that is not there.
    """
    place: Any = data
    path: KeyPath = ()
    for segment in override.path[:-1]:
        key = _key_in(place, segment, override)
        path = (*path, key)
        if isinstance(place, dict):
            place.setdefault(key, {})
        place = place[key]
    last = _key_in(place, override.path[-1], override)
    place[last] = override.value
    return (*path, last)


def _key_in(place: Any, segment: str | int, override: Override) -> Any:
    if isinstance(place, list) and isinstance(segment, int) and segment < len(place):
        return segment
    if isinstance(place, dict):
        name = str(segment)
        alike = (key for key in place if str(key).replace("-", "_") == name.replace("-", "_"))
        return next(alike, name.replace("-", "_"))
    raise ConfigError(f"{override.origin}: there is no `{segment}` to set", hint="check the keys in the file")


def _literal(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return value
