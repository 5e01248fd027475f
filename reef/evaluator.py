"""The contract of an evaluator: grade one finished episode.

An evaluator comes by entry point (`reef.evaluators`) or as `module:Class` in a task file.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from reef.tasks import Episode, Grade


class Evaluator(ABC):
    """Built once per task from the keys that sit beside `evaluator` in the task file."""

    @classmethod
    @abstractmethod
    def build(cls, arguments: Mapping[str, Any]) -> "Evaluator":
        """Check the arguments. Raises `reef.errors.ConfigError` naming the wrong one."""

    @abstractmethod
    async def grade(self, episode: Episode) -> Grade:
        """Return a score in [0, 1] with a sentence why.

        A grader that cannot grade (its tool is missing, it crashed) raises `ReefError`; that is an
        error of the step, never a score.
        """

    def reveals(self) -> tuple[str, ...]:
        """Texts that would give the answer away; a candidate that contains a long one is refused."""
        return ()
