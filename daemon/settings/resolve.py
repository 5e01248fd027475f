"""Which recipe a scenario gets."""

from fnmatch import fnmatchcase

from daemon.settings.check import BUILT_IN
from daemon.settings.model import RecipeSection, Settings

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
            return entry.recipe, settings.recipe.get(entry.recipe) or RecipeSection(use=BUILT_IN)
    if is_unconfigured(settings):
        return UNCONFIGURED, RecipeSection.model_validate(
            {"use": UNCONFIGURED, "proposers": ["feedback", "demonstrations"]}
        )
    return BUILT_IN, settings.recipe.get(BUILT_IN) or RecipeSection(use=BUILT_IN)


def is_unconfigured(settings: Settings) -> bool:
    """Whether nobody has said which scenario learns how."""
    return settings.source is None and not settings.scenario and not settings.recipe
