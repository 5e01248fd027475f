"""Which recipe a scenario gets, and which upstreams that recipe may ask."""

from fnmatch import fnmatchcase

from daemon.settings.check import BUILT_IN
from daemon.settings.model import RecipeSection, Settings, UpstreamSection

UNCONFIGURED = "harness_evolve"
"""The recipe of every scenario where there is no configuration file. It costs nothing: no model is asked."""


def recipe_for(settings: Settings, scenario: str) -> tuple[str, RecipeSection]:
    """The configured name and section of the recipe that `scenario` learns by.

    The first `[[scenario]]` whose `match` fits (shell patterns, case counts) wins; none: `record`. With no
    configuration at all: `harness_evolve` with the proposers that cost nothing, whose candidates wait for
    a person.
    """
    for entry in settings.scenario:
        if fnmatchcase(scenario, entry.match):
            section = settings.recipe.get(entry.recipe) or RecipeSection(use=BUILT_IN)
            if entry.upstream is not None:
                section = section.model_copy(update={"upstream": entry.upstream})
            return entry.recipe, section
    if is_unconfigured(settings):
        return UNCONFIGURED, RecipeSection.model_validate(
            {"use": UNCONFIGURED, "proposers": ["feedback", "demonstrations"]}
        )
    return BUILT_IN, settings.recipe.get(BUILT_IN) or RecipeSection(use=BUILT_IN)


def only_passthrough(
    settings: Settings, model: str | None, upstream: str | None = None
) -> UpstreamSection | None:
    """The upstream whose clients' keys a recipe would need to ask for `model`; None where it needs none."""
    named = [section for section in settings.upstream if section.name == upstream]
    if not named and model is not None:
        named = [section for section in settings.upstream if _takes(section, model)]
    asked = named or settings.upstream
    if not asked or (not named and settings.reef.model_path is not None):
        return None
    return asked[0] if all(upstream.auth == "passthrough" for upstream in asked) else None


def _takes(section: UpstreamSection, model: str) -> bool:
    patterns = (*section.models, *section.alias)
    return section.model == model or any(fnmatchcase(model, pattern) for pattern in patterns)


def is_unconfigured(settings: Settings) -> bool:
    """Whether nobody has said which scenario learns how."""
    return settings.source is None and not settings.scenario and not settings.recipe
