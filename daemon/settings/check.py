"""What is wrong with settings that are well-formed each by itself."""

import difflib

from daemon.settings.address import base_address
from daemon.settings.check_key import check_key
from daemon.settings.model import Settings
from daemon.settings.positions import KeyPath
from daemon.settings.where import Where
from reef.errors import Invalid
from reef.home import is_loopback

BUILT_IN = "record"
"""A recipe name that needs no section: it only records."""


def check(settings: Settings, where: Where) -> None:
    """Raise `ConfigError` for the first contradiction."""
    _check_address(settings, where)
    _check_upstreams(settings, where)
    _check_named_upstreams(settings, where)
    _check_scenarios(settings, where)
    _check_budgets(settings, where)
    _check_recipes(settings, where)


def _check_address(settings: Settings, where: Where) -> None:
    if not settings.reef.auth and not is_loopback(settings.reef.host):
        raise where.error(
            ("reef", "auth"),
            f"`auth = false` would let anyone who reaches {settings.reef.host} use your models",
            hint='keep `auth = true`, or bind to this machine: host = "127.0.0.1"',
        )


def _check_upstreams(settings: Settings, where: Where) -> None:
    seen: set[str] = set()
    for index, upstream in enumerate(settings.upstream):
        if not upstream.name.strip():
            raise where.error(
                ("upstream", index, "name"), "`name` is empty", hint='for example `name = "main"`'
            )
        if upstream.name in seen:
            raise where.error(
                ("upstream", index, "name"),
                f"two upstreams are named `{upstream.name}`",
                hint="give each its own name",
            )
        seen.add(upstream.name)
        check_key(upstream, index, where)
        try:
            base_address(upstream.base_url)
        except Invalid as error:
            at = ("upstream", index, "base_url")
            raise where.error(at, error.message, hint=error.hint) from error


def _check_named_upstreams(settings: Settings, where: Where) -> None:
    """What `fallback` and `upstream` name must be there."""
    known = {upstream.name for upstream in settings.upstream}
    named: list[tuple[KeyPath, str]] = []
    for index, upstream in enumerate(settings.upstream):
        if upstream.name in upstream.fallback:
            raise where.error(
                ("upstream", index, "fallback"),
                f"`{upstream.name}` cannot stand in for itself",
                hint="name another upstream",
            )
        named += [(("upstream", index, "fallback"), name) for name in upstream.fallback]
    named += [
        (("scenario", index, "upstream"), scenario.upstream)
        for index, scenario in enumerate(settings.scenario)
        if scenario.upstream is not None
    ]
    named += [
        (("recipe", name, "upstream"), recipe.upstream)
        for name, recipe in settings.recipe.items()
        if recipe.upstream is not None
    ]
    for path, name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f'add an [[upstream]] with name = "{name}"'
            raise where.error(path, f"there is no upstream `{name}`", hint=hint)


def _check_scenarios(settings: Settings, where: Where) -> None:
    known = {*settings.recipe, BUILT_IN}
    for index, scenario in enumerate(settings.scenario):
        if scenario.recipe not in known:
            near = difflib.get_close_matches(scenario.recipe, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"add a section [recipe.{scenario.recipe}]"
            raise where.error(
                ("scenario", index, "recipe"), f"there is no recipe `{scenario.recipe}`", hint=hint
            )


def _check_budgets(settings: Settings, where: Where) -> None:
    for index, budget in enumerate(settings.budget):
        if budget.usd_per_day is None and budget.tokens_per_day is None:
            raise where.error(
                ("budget", index),
                "this budget bounds nothing",
                hint="add `usd_per_day` or `tokens_per_day`",
                whole=True,
            )


def _check_recipes(settings: Settings, where: Where) -> None:
    for name, recipe in settings.recipe.items():
        if recipe.tasks is not None and not recipe.tasks.is_file():
            raise where.error(
                ("recipe", name, "tasks"),
                f"there is no task file {recipe.tasks}",
                hint="`reef init` writes one to start from",
            )
        if recipe.publish == "canary":
            raise where.error(
                ("recipe", name, "publish"),
                '`publish = "canary"` is not available yet',
                hint='use "auto" (the gate decides) or "review" (a person decides)',
            )
