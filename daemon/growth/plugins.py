"""Finding a recipe by name: listing imports nothing, loading imports the one asked for."""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import ValidationError

from reef.errors import ConfigError
from reef.recipe import Recipe

GROUP = "reef.recipes"


def recipe_names() -> list[str]:
    return sorted(entry_points(group=GROUP).names)


@cache
def load_recipe(use: str) -> type[Recipe]:
    """The class behind a built-in or installed name, or `module:Class`.

    Raises:
        ConfigError: there is none, or it cannot be imported.
    """
    found = next(iter(entry_points(group=GROUP, name=use)), None)
    if found is None and ":" not in use:
        raise ConfigError(f"no recipe is named `{use}`", hint=f"installed: {', '.join(recipe_names())}")
    try:
        loaded = found.load() if found is not None else _dotted(use)
    except Exception as error:
        raise ConfigError(
            f"recipe `{use}` cannot be loaded: {error}", hint="check the module's own imports"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Recipe)):
        raise ConfigError(f"`{use}` is not a recipe", hint="a recipe subclasses reef.recipe.Recipe")
    return loaded


def make_recipe(use: str, options: dict[str, Any]) -> Recipe:
    """A recipe with its options. Raises `ConfigError` naming the wrong one."""
    kind = load_recipe(use)
    try:
        return kind(kind.Options.model_validate(options))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"recipe `{use}`: `{key}`: {first['msg']}") from error


def _dotted(use: str) -> Any:
    module, _, name = use.partition(":")
    return EntryPoint(name, f"{module}:{name}", GROUP).load() if name else import_module(module)
