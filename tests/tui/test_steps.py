"""A skipped step borrows nothing from the release it ran on; no key is offered that does not apply."""

from typing import Any

import pytest

from reef_cli.tui.screens.history import _row, about
from reef_cli.tui.screens.step import StepScreen
from tests.tui.test_scenario_words import NOW

SKIPPED = {
    "step": 9,
    "operation": "training",
    "release_id": "27794c33d7aaaa",
    "candidate_id": None,
    "content_id": "c0ffee",
    "published": False,
    "current": False,
    "pending": False,
    "tags": [],
    "recorded_at": "2026-01-01T11:55:00Z",
    "message": "nothing to learn",
    "metrics": {"selection": {"outcome": "skip", "reason": "nothing to learn"}},
    "rollback_target_release_id": None,
}


def test_a_skipped_step_shows_no_release_and_says_why_once() -> None:
    assert _row(SKIPPED, False, NOW).cells[:3] == ("9", "", "not out")
    assert about(SKIPPED) == "step 9: no release\nnothing to learn"


@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        ({"state": "done", "outcome": "select"}, set()),
        ({"state": "done", "outcome": "error"}, {"run"}),
        ({"state": "evaluating", "outcome": None}, {"cancel"}),
        ({"state": "waiting", "outcome": None, "waits_for": "money"}, {"run", "cancel"}),
        (
            {"state": "waiting", "outcome": None, "waits_for": "review", "pending": True},
            {"promote", "reject"},
        ),
        ({}, set()),
    ],
)
def test_what_a_step_offers(data: dict[str, Any], allowed: set[str]) -> None:
    screen = StepScreen("words", 1)
    screen.data = data
    decisions = ("promote", "reject", "run", "cancel")
    assert {name for name in decisions if screen.check_action(name, ())} == allowed
    assert screen.check_action("view", ("diff",))
