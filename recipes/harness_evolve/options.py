"""The options of `harness_evolve`, and the words that its files share."""

from typing import Literal

from pydantic import Field

from reef.feedback import Report
from reef.recipe import RecipeOptions

ProposerName = Literal["feedback", "demonstrations", "reflect"]


class ReflectOptions(RecipeOptions):
    """`[recipe.NAME.reflect]`: what the model is shown and may answer."""

    max_exchanges: int = Field(8, ge=1)
    max_chars: int = Field(4000, ge=200)
    """Of each prompt and each answer that is shown."""
    max_tokens: int = Field(2048, ge=64)
    temperature: float = Field(0.0, ge=0)


class EvolveOptions(RecipeOptions):
    """`[recipe.NAME]`"""

    proposers: tuple[ProposerName, ...] = Field(("feedback", "demonstrations"), min_length=1)
    max_score: float = 0.0
    """Reports at or below it are lessons."""
    min_score: float = 1.0
    """Exchanges at or above it are worth showing as examples."""
    max_examples: int = Field(4, ge=1, le=64)
    reflect: ReflectOptions = ReflectOptions()


def is_well_scored(report: Report, options: EvolveOptions) -> bool:
    return report.score is not None and report.score >= options.min_score and report.score > options.max_score
