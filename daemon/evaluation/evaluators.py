"""The built-in evaluators, and finding one by name.

To add one: a class here (or anywhere) and an entry point in the group `reef.evaluators`.
"""

import asyncio
import difflib
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import regex

from reef.errors import ConfigError, ReefError
from reef.evaluator import Evaluator
from reef.tasks import Episode, Grade, Task

GROUP = "reef.evaluators"
_SHOWN = 80
_NUMBER = re.compile(
    r"(?:(?<![\w.)])[-+])?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|(?<![\w.])[-+]?\.\d+"
)
_FLAGS = {"ignore_case": regex.IGNORECASE, "multiline": regex.MULTILINE, "dotall": regex.DOTALL}
REGEX_S = 2.0
"""Seconds of the processor that a search may take: some patterns would take years on some answers."""


class Exact(Evaluator):
    """The answer is one of the expected texts."""

    def __init__(self, expected: tuple[str, ...], strip: bool, ignore_case: bool) -> None:
        self.expected = expected
        self.strip = strip
        self.ignore_case = ignore_case

    @classmethod
    def build(cls, arguments: Mapping[str, Any]) -> "Exact":
        known(arguments, ("expected", "strip", "ignore_case"))
        return cls(
            _expected(arguments), _flag(arguments, "strip", True), _flag(arguments, "ignore_case", False)
        )

    async def grade(self, episode: Episode) -> Grade:
        if self._same(episode.answer) in map(self._same, self.expected):
            return Grade(1.0, "the answer is as expected")
        return Grade(0.0, f"expected {_quote(self.expected[0])}, got {_quote(episode.answer)}")

    def reveals(self) -> tuple[str, ...]:
        return self.expected

    def _same(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text


class Contains(Evaluator):
    """The answer holds all (or any) of the expected texts."""

    def __init__(self, expected: tuple[str, ...], any_of: bool, ignore_case: bool) -> None:
        self.expected = expected
        self.any_of = any_of
        self.ignore_case = ignore_case

    @classmethod
    def build(cls, arguments: Mapping[str, Any]) -> "Contains":
        known(arguments, ("expected", "match", "ignore_case"))
        match = arguments.get("match", "all")
        if match not in ("all", "any"):
            raise ConfigError("`match` must be `all` or `any`")
        return cls(_expected(arguments), match == "any", _flag(arguments, "ignore_case", False))

    async def grade(self, episode: Episode) -> Grade:
        answer = episode.answer.casefold() if self.ignore_case else episode.answer
        missing = [
            text for text in self.expected if (text.casefold() if self.ignore_case else text) not in answer
        ]
        if len(missing) < len(self.expected) if self.any_of else not missing:
            return Grade(1.0, "the answer holds what was expected")
        return Grade(0.0, f"{_quote(missing[0])} is not in {_quote(episode.answer)}")

    def reveals(self) -> tuple[str, ...]:
        return self.expected


class Regex(Evaluator):
    """A regular expression is found in the answer. In a thread and with a limit, which `re` has not."""

    def __init__(self, pattern: regex.Pattern[str]) -> None:
        self.pattern = pattern

    @classmethod
    def build(cls, arguments: Mapping[str, Any]) -> "Regex":
        known(arguments, ("pattern", "flags"))
        pattern, names = arguments.get("pattern"), arguments.get("flags", [])
        if not isinstance(pattern, str) or not pattern:
            raise ConfigError("`pattern` must be a text")
        flags = regex.VERSION0  # as `re` reads them
        for name in [names] if isinstance(names, str) else names:
            if name not in _FLAGS:
                raise ConfigError(f"`flags`: `{name}` is not a flag", hint=f"there are: {', '.join(_FLAGS)}")
            flags |= _FLAGS[name]
        try:
            return cls(regex.compile(pattern, flags))
        except regex.error as error:
            raise ConfigError(f"`pattern` is not a regular expression: {error}") from None

    async def grade(self, episode: Episode) -> Grade:
        try:
            found = await asyncio.to_thread(self.pattern.search, episode.answer, timeout=REGEX_S)
        except TimeoutError:
            raise ReefError(
                f"task `{episode.task.id}`: the pattern {_quote(self.pattern.pattern)} was given up after "
                f"{REGEX_S:g} s on an answer of {len(episode.answer)} characters",
                hint="a repetition inside a repetition, as in `(a+)+`, can take for ever: write it as one",
            ) from None
        if found:
            return Grade(1.0, "the pattern was found")
        return Grade(0.0, f"{_quote(self.pattern.pattern)} was not found in {_quote(episode.answer)}")


class Numeric(Evaluator):
    """The last number in the answer is the expected one, within a tolerance."""

    def __init__(self, expected: float, tolerance: float) -> None:
        self.expected = expected
        self.tolerance = tolerance

    @classmethod
    def build(cls, arguments: Mapping[str, Any]) -> "Numeric":
        known(arguments, ("expected", "tolerance"))
        tolerance = _number(arguments, "tolerance", 1e-9)
        if tolerance < 0:
            raise ConfigError("`tolerance` must not be negative")
        return cls(_number(arguments, "expected"), tolerance)

    async def grade(self, episode: Episode) -> Grade:
        numbers = _NUMBER.findall(episode.answer.replace("\u2212", "-"))
        if not numbers:
            return Grade(0.0, f"there is no number in {_quote(episode.answer)}")
        found = float(numbers[-1].replace(",", ""))
        right = abs(found - self.expected) <= self.tolerance
        return Grade(float(right), f"expected {self.expected:g}, got {found:g}")


def known(arguments: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise `ConfigError` for the first argument that is not one of `names`."""
    for name in arguments:
        if name not in names:
            raise ConfigError(f"`{name}` is not an argument of this evaluator", hint=nearest(name, names))


def nearest(word: str, names: Collection[str]) -> str:
    """A hint that names the nearest of `names`, else all of them."""
    near = difflib.get_close_matches(word, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(names)}"


def load_evaluator(task: Task) -> Evaluator:
    """The evaluator of a task, by entry point or as `module:Class`.

    Raises:
        ConfigError: there is none of that name, it cannot be imported, or its arguments are wrong.
    """
    return _evaluator_class(task.evaluator).build(task.arguments)


@cache
def _evaluator_class(name: str) -> type[Evaluator]:
    module, colon, attribute = name.partition(":")
    try:
        if colon:
            found = getattr(import_module(module), attribute)
        else:
            points = {point.name: point for point in entry_points(group=GROUP)}
            if name not in points:
                raise ConfigError(f"there is no evaluator `{name}`", hint=nearest(name, sorted(points)))
            found = points[name].load()
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the evaluator `{name}` cannot be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Evaluator)):
        raise ConfigError(
            f"`{name}` is not an evaluator", hint="it must be a subclass of reef.evaluator.Evaluator"
        )
    return found


def _expected(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    value = arguments.get("expected")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError("`expected` must be a text or a list of texts")
    return tuple(texts)


def _flag(arguments: Mapping[str, Any], name: str, default: bool) -> bool:
    value = arguments.get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"`{name}` must be true or false")
    return value


def _number(arguments: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = arguments.get(name, default)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or abs(value) == float("inf")
        or value != value
    ):
        raise ConfigError(f"`{name}` must be a number")
    return float(value)


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return f'"{flat}"' if len(flat) <= _SHOWN else f'"{flat[: _SHOWN - 3]}..."'
