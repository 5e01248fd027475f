"""Recipes as they are configured: finding one by name (listing imports nothing), checking what it names."""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import ValidationError

from daemon.evaluation.evaluators import nearest
from daemon.evaluation.gate import load_policy
from daemon.evaluation.tasks import load_tasks
from daemon.harness.adapters import adapter
from daemon.harness.mutations import apply
from daemon.settings.load import Loaded
from daemon.settings.model import RecipeSection
from daemon.settings.resolve import only_passthrough
from reef.errors import ConfigError, ReefError
from reef.recipe import Recipe
from reef.tree import HarnessTree, Mutation

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
        raise ConfigError(f"no recipe is named `{use}`", hint=nearest(use, recipe_names()))
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


def check_recipes(loaded: Loaded) -> None:
    """Open what each `[recipe.NAME]` names before anything is served.

    Raises:
        ConfigError: a mistake in a task file or a seed, an adapter or a gate policy that is not there.
    """
    for name, section in loaded.settings.recipe.items():
        _refuse_passthrough(loaded, name, section)
        for key, look in (
            (("adapter",), lambda section=section: adapter(section.adapter)),
            (("gate", "policy"), lambda section=section: load_policy(section.gate)),
            (("seed",), lambda section=section: seed_tree(section)),
        ):
            try:
                look()
            except ReefError as error:
                raise loaded.where.error(("recipe", name, *key), error.message, hint=error.hint) from error


def _refuse_passthrough(loaded: Loaded, name: str, section: RecipeSection) -> None:
    """Growth needs a key of its own: a recipe that calls a model must find an upstream that has one."""
    tasks = load_tasks(section.tasks) if section.tasks is not None else ()
    recipe = make_recipe(section.use, section.options())
    if recipe.surface == "none" or not (tasks or recipe.needs_model(())):
        return
    upstreams = {section.upstream}
    for entry in loaded.settings.scenario:
        if entry.recipe == name and entry.upstream:
            upstreams.add(entry.upstream)
    found = (only_passthrough(loaded.settings, section.model, named) for named in upstreams)
    if upstream := next(filter(None, found), None):
        raise loaded.where.error(
            ("recipe", name),
            f"recipe `{name}` calls a model, and upstream `{upstream.name}` takes only its clients' own keys",
            hint="add an [[upstream]] with api_key_env and a model for it to ask",
            whole=True,
        )


def seed_tree(section: RecipeSection) -> HarnessTree:
    """The tree that a new scenario starts with."""
    seeds = [
        Mutation("create", entry.id, entry.name, entry.config, entry.disabled or None)
        for entry in section.seed
    ]
    return apply(HarnessTree(), seeds)


def _dotted(use: str) -> Any:
    module, _, name = use.partition(":")
    return EntryPoint(name, f"{module}:{name}", GROUP).load() if name else import_module(module)
