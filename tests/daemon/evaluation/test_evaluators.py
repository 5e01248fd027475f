"""What counts as right, and the sentence that says why not."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.evaluation import evaluators
from daemon.evaluation.evaluators import load_evaluator
from reef.errors import ConfigError, ReefError
from reef.tasks import Episode, Grade, Task


def grade(answer: str, evaluator: str, **arguments: Any) -> Grade:
    task = Task("t", ({"role": "user", "content": "q"},), evaluator, arguments)
    return asyncio.run(load_evaluator(task).grade(Episode(task, "candidate", 0, answer)))


@pytest.mark.parametrize(
    ("answer", "evaluator", "arguments", "score"),
    [
        (" reef \n", "exact", {"expected": "reef"}, 1),
        (" reef", "exact", {"expected": "reef", "strip": False}, 0),
        ("Reef", "exact", {"expected": ["x", "reef"], "ignore_case": True}, 1),
        ("reef.", "exact", {"expected": "reef"}, 0),
        ("a b", "contains", {"expected": ["a", "b"]}, 1),
        ("a", "contains", {"expected": ["a", "b"]}, 0),
        ("a", "contains", {"expected": ["a", "b"], "match": "any"}, 1),
        ("c", "contains", {"expected": ["a", "b"], "match": "any"}, 0),
        ("ABC", "contains", {"expected": "b", "ignore_case": True}, 1),
        ("x = 12", "regex", {"pattern": r"\d+$"}, 1),
        ("ABC", "regex", {"pattern": "abc", "flags": ["ignore_case"]}, 1),
        ("ABC", "regex", {"pattern": "abc"}, 0),
        ("First 3, so the answer is 1,234.5.", "numeric", {"expected": 1234.5}, 1),
        ("7 - 10 = \u22123", "numeric", {"expected": -3}, 1),
        ("between 3-4", "numeric", {"expected": 4}, 1),
        ("about 3.1", "numeric", {"expected": 3.14, "tolerance": 0.05}, 1),
        ("-2.5e3", "numeric", {"expected": -2500}, 1),
        (".5", "numeric", {"expected": 0.5}, 1),
        ("none", "numeric", {"expected": 0}, 0),
    ],
)
def test_scores(answer: str, evaluator: str, arguments: dict[str, Any], score: float) -> None:
    found = grade(answer, evaluator, **arguments)
    assert found.score == score
    assert found.why


@pytest.mark.parametrize(
    ("evaluator", "arguments"),
    [
        ("exact", {}),
        ("exact", {"expected": []}),
        ("exact", {"expected": 3}),
        ("exact", {"expected": "x", "strip": 1}),
        ("contains", {"expected": "x", "match": "some"}),
        ("regex", {"pattern": "("}),
        ("regex", {"pattern": ""}),
        ("regex", {"pattern": "x", "flags": ["verbose"]}),
        ("numeric", {"expected": True}),
        ("numeric", {"expected": float("nan")}),
        ("numeric", {"expected": 1, "tolerance": -1}),
        ("numeric", {"expect": 1}),
        ("nope", {}),
    ],
)
def test_wrong_arguments(evaluator: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        grade("x", evaluator, **arguments)


def test_a_pattern_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluators, "REGEX_S", 0.2)
    with pytest.raises(ReefError, match=r'task `t`: the pattern "\(a\|aa\)\+\$" was given up after 0.2 s'):
        grade("a" * 4000 + "!", "regex", pattern="(a|aa)+$")


def test_others_go_on_while_a_pattern_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluators, "REGEX_S", 0.5)
    task = Task("t", (), "regex", {"pattern": "(a|aa)+$"})
    turns = 0

    async def go() -> None:
        nonlocal turns
        grading = asyncio.create_task(
            load_evaluator(task).grade(Episode(task, "candidate", 0, "a" * 4000 + "!"))
        )
        while not grading.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert isinstance(grading.exception(), ReefError)

    asyncio.run(go())
    assert turns > 3


def test_dotted_reference() -> None:
    assert grade("a", "daemon.evaluation.evaluators:Exact", expected="a").score == 1


@given(st.text())
def test_numeric_reads_any_answer(answer: str) -> None:
    assert grade(answer, "numeric", expected=1).score in (0.0, 1.0)
